package maintenance_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// A node that does not answer has a pod that terminates. The maintenance for a Machine that
// goes does not wait for the pod, as Cluster API does not; any other one waits.
func TestTerminatingPodsOfADeadNode(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ready      corev1.ConditionStatus
		ofMachine  bool
		after      time.Duration
		skewed     bool
		want       string
		wantRepeat time.Duration
	}{
		"a Machine goes from it":           {corev1.ConditionUnknown, true, 2 * time.Second, false, v1alpha1.ReasonDrained, 0},
		"within its grace period":          {corev1.ConditionUnknown, true, -5 * time.Second, false, v1alpha1.ReasonBlocked, 6*time.Second + time.Millisecond},
		"right after it":                   {corev1.ConditionUnknown, true, time.Second, false, v1alpha1.ReasonBlocked, time.Millisecond},
		"by a clock that is not trusted":   {corev1.ConditionUnknown, true, time.Hour, true, v1alpha1.ReasonBlocked, 0},
		"a person maintains it":            {corev1.ConditionUnknown, false, time.Hour, false, v1alpha1.ReasonBlocked, 0},
		"the node is ready":                {corev1.ConditionTrue, true, time.Hour, false, v1alpha1.ReasonBlocked, 0},
		"the node answers and is not well": {corev1.ConditionFalse, true, time.Hour, false, v1alpha1.ReasonBlocked, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "one")
			w.clockSkewed = test.skewed
			m := w.maintenance("m", drain, nil, "one")
			if test.ofMachine {
				makeForMachine(m)
			}
			w.find("one").Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: test.ready}}
			w.run("one", 1, 0, func(pod *corev1.Pod) { pod.DeletionTimestamp = metaTime(w.now.Add(-test.after)) })
			w.pass()
			d := w.pass()
			if got := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrained); got.Reason != test.want {
				t.Errorf("Drained is %+v, want %s", got, test.want)
			}
			if test.wantRepeat > 0 && d.RequeueAfter != test.wantRepeat {
				t.Errorf("decided again after %s, want %s", d.RequeueAfter, test.wantRepeat)
			}
		})
	}
}

// makeForMachine has a maintenance drain for a Machine.
func makeForMachine(m *v1alpha1.NodeMaintenance) {
	m.Labels = map[string]string{v1alpha1.BridgeLabel: "cluster-api"}
	m.Annotations = map[string]string{v1alpha1.BridgeMachineAnnotation: "infra/worker-1"}
}

// What asked for the pod is withdrawn when nobody waits for the pod, and the status says that
// the pod may still run.
func TestTheEvacuationOfAPodOnADeadNodeIsWithdrawn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one")
	m := w.maintenance("m", drain, nil, "one")
	makeForMachine(m)
	pod := w.run("one", 1, 0)[0]
	w.pass()
	w.pass()
	w.end(pod, 30)
	w.find("one").Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	if w.pass(); w.evacuations[pod.UID] == nil {
		t.Fatal("the Evacuation is withdrawn while the pod is waited for")
	}
	w.now = w.now.Add(32 * time.Second)
	if w.pass(); w.evacuations[pod.UID] != nil {
		t.Error("the Evacuation is not withdrawn")
	}
	if s := m.Status.NodeStatuses[0]; len(s.Retained) != 1 || s.Retained[0].Type != v1alpha1.BlockerNodeUnreachable {
		t.Errorf("the status does not say that the pod may still run: %+v", s)
	}
}
