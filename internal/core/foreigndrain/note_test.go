package foreigndrain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/foreigndrain"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func tainted(key, value string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-7"},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule}}},
	}
}

func says(status corev1.ConditionStatus, reason string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-7"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: v1alpha1.NodeDrainInProgress, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(noon)},
	}}}
}

func TestWhoElseIsAtANode(t *testing.T) {
	leaving := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "node-7", DeletionTimestamp: &metav1.Time{Time: noon}, Finalizers: []string{"karpenter.sh/termination"},
	}}
	disrupted := tainted("karpenter.sh/disrupted", "")
	disrupted.ObjectMeta = leaving.ObjectMeta
	deleted := leaving.DeepCopy()
	deleted.Finalizers = []string{"example.com/keep"}
	for name, test := range map[string]struct {
		node    *corev1.Node
		removes bool
		want    string
	}{
		"nobody": {node: &corev1.Node{}},
		"the cluster-autoscaler": {
			tainted("ToBeDeletedByClusterAutoscaler", "1772366400"), true,
			"The cluster-autoscaler drains node node-7 to remove it since 2026-03-01T12:00:00Z (taint ToBeDeletedByClusterAutoscaler). It takes the taint away if it gives up. " +
				"If the cluster-autoscaler does not run any more: kubectl taint node node-7 ToBeDeletedByClusterAutoscaler:NoSchedule-",
		},
		"Karpenter, before it deletes the node": {
			tainted("karpenter.sh/disrupted", ""), true,
			"Karpenter drains node node-7 to remove it (taint karpenter.sh/disrupted). It takes the taint away if it gives up. " +
				"If Karpenter does not run any more: kubectl taint node node-7 karpenter.sh/disrupted:NoSchedule-",
		},
		"Karpenter, which has deleted the node": {
			disrupted, true,
			"Karpenter drains node node-7 to remove it since 2026-03-01T12:00:00Z (taint karpenter.sh/disrupted). It takes the taint away if it gives up. " +
				"If Karpenter does not run any more: kubectl taint node node-7 karpenter.sh/disrupted:NoSchedule-",
		},
		"Karpenter, about to taint it": {
			leaving, true,
			"Karpenter drains node node-7 to remove it since 2026-03-01T12:00:00Z (finalizer karpenter.sh/termination). The node is being deleted and goes when Karpenter is through with it.",
		},
		"somebody has deleted it": {node: deleted},
		"the cluster-autoscaler thinks of it": {
			node: tainted("DeletionCandidateOfClusterAutoscaler", "1"),
			want: "The cluster-autoscaler thinks of removing node node-7 (taint DeletionCandidateOfClusterAutoscaler).",
		},
		"kubectl drain": {
			node: says(corev1.ConditionTrue, "KubectlDrainStarted"),
			want: "Kubectl drain drains node node-7 since 2026-03-01T12:00:00Z (condition DrainInProgress with reason KubectlDrainStarted). The budgets hold for both. If nobody else drains the node any more: " +
				`kubectl patch node node-7 --subresource=status -p '{"status":{"conditions":[{"$patch":"delete","type":"DrainInProgress"}]}}'`,
		},
		"kubectl drain, which is through": {node: says(corev1.ConditionFalse, "KubectlDrainSucceeded")},
		"we do":                           {node: says(corev1.ConditionTrue, v1alpha1.ReasonNodeMaintenance)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, strings.Join(foreigndrain.Notes(test.node), "\n")); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			if got := foreigndrain.Removing(test.node); got != test.removes {
				t.Errorf("somebody removes it: %t, want %t", got, test.removes)
			}
		})
	}
}

func TestPodsThatAskKarpenter(t *testing.T) {
	for value, asks := range map[string]bool{"true": true, "20m": true, "10m": false, "false": false, "": false, "-1h": false, "x": false} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"karpenter.sh/do-not-disrupt": value}}}
		started := metav1.NewTime(noon.Add(-15 * time.Minute))
		pod.Status.StartTime = &started
		if got := foreigndrain.OfPod(pod, noon); (got != "") != asks || asks && !strings.Contains(got, value) {
			t.Errorf("%q: %q, want that it asks: %t", value, got, asks)
		}
	}
	if got := foreigndrain.OfPod(&corev1.Pod{}, noon); got != "" {
		t.Errorf("a pod without the annotation: %q", got)
	}
	unstarted := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"karpenter.sh/do-not-disrupt": "1s"}}}
	if foreigndrain.OfPod(unstarted, noon) == "" {
		t.Error("nobody knows since when it runs, so that it asks still")
	}
}
