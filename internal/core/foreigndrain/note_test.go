package foreigndrain_test

import (
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/foreigndrain"
	"ebbtide.dev/ebbtide/test/golden"
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

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

func TestForeignDrainsOfANodeAreNoted(t *testing.T) {
	leaving := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "node-7", DeletionTimestamp: &metav1.Time{Time: noon}, Finalizers: []string{"karpenter.sh/termination"},
	}}
	disrupted := tainted("karpenter.sh/disrupted", "")
	disrupted.ObjectMeta = leaving.ObjectMeta
	deleted := leaving.DeepCopy()
	deleted.Finalizers = []string{"example.com/keep"}
	for name, test := range map[string]struct {
		node    *corev1.Node
		notes   int
		removes bool
	}{
		"none":                                  {&corev1.Node{}, 0, false},
		"the cluster-autoscaler":                {tainted("ToBeDeletedByClusterAutoscaler", "1772366400"), 1, true},
		"Karpenter, before it deletes the node": {tainted("karpenter.sh/disrupted", ""), 1, true},
		"Karpenter, which has deleted the node": {disrupted, 1, true},
		"Karpenter, about to taint it":          {leaving, 1, true},
		"a deletion by another client":          {deleted, 0, false},
		"a candidate of the cluster-autoscaler": {tainted("DeletionCandidateOfClusterAutoscaler", "1"), 1, false},
		"kubectl drain":                         {says(corev1.ConditionTrue, "KubectlDrainStarted"), 1, false},
		"kubectl drain, completed":              {says(corev1.ConditionFalse, "KubectlDrainSucceeded"), 0, false},
		"Ebbtide":                               {says(corev1.ConditionTrue, v1alpha1.ReasonNodeMaintenance), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			notes := foreigndrain.Notes(test.node)
			if len(notes) != test.notes {
				t.Errorf("notes are %q, want %d", notes, test.notes)
			}
			for _, note := range notes {
				golden.Message(t, note)
			}
			if got := foreigndrain.Removing(test.node); got != test.removes {
				t.Errorf("another tool removes it: %t, want %t", got, test.removes)
			}
		})
	}
}

func TestObjectionOfAPodIsFound(t *testing.T) {
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
