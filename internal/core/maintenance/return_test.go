package maintenance_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Two maintenances of one node differ in how deep they drain. The deep one ends,
// its DaemonSet pod comes back, and the shallow one, whose recorded targets still
// cover the pod, leaves it alone: its Drained stays true throughout.
func TestADrainedDaemonSetPodIsNotEvacuatedAgainForAShallowerMaintenance(t *testing.T) {
	w := newWorld(t, "one")
	w.runners.DaemonSets = true
	shallow := w.maintenance("shallow", drain, nil, "one")
	shallow.Spec.DrainDepth = v1alpha1.PodTypeDefault
	deep := w.maintenance("deep", drain, nil, "one")
	before := w.run("one", 1, 0, ofDaemonSet)
	if diff := cmp.Diff(names(before), names(requested(only(w.pass().Nodes).Evacuate))); diff != "" {
		t.Fatalf("for the deep maintenance, evacuated (-want +got):\n%s", diff)
	}
	w.remove(before[0].UID)
	w.pass()
	deep.Spec.Stage = complete
	w.pass()

	w.run("one", 1, 0, ofDaemonSet)
	for range 3 {
		for _, d := range w.pass().Nodes {
			if len(d.Evacuate) > 0 {
				t.Errorf("evacuated %v for a maintenance that leaves DaemonSets alone", names(requested(d.Evacuate)))
			}
		}
		if !isTrue(shallow.Status.Conditions, v1alpha1.ConditionDrained) {
			t.Errorf("conditions are %+v, want Drained", shallow.Status.Conditions)
		}
	}
}

// No event tells that a pod has outlived its grace period. So the pass that sees it
// terminate says when to look again: at the first moment that finds it overdue.
func TestAPodThatOutlivesItsGraceIsLookedAtAfterThatMoment(t *testing.T) {
	w := newWorld(t, "one")
	m := w.maintenance("m", drain, nil, "one")
	pods := w.run("one", 2, 0)
	w.pass()
	pods[0].DeletionTimestamp = metaTime(w.now.Add(30 * time.Second))
	pods[1].DeletionTimestamp = metaTime(w.now.Add(40 * time.Second))
	overdue := func() bool {
		return slices.ContainsFunc(m.Status.NodeStatuses[0].Blockers, func(b v1alpha1.Blocker) bool {
			return b.Type == v1alpha1.BlockerTerminatingGrace
		})
	}
	wait := w.pass().RequeueAfter
	if overdue() || wait < 30*time.Second || wait >= 50*time.Second {
		t.Fatalf("overdue is %v and the next pass is due in %s; want false, and soon after the first deadline in 30s", overdue(), wait)
	}
	due := w.now.Add(wait)
	w.now = due.Add(-time.Second)
	if again := w.pass().RequeueAfter; overdue() || again != time.Second {
		t.Errorf("a second before, overdue is %v and the next pass is due in %s; want false and 1s", overdue(), again)
	}
	w.now = due
	if again := w.pass().RequeueAfter; !overdue() || again != 10*time.Second {
		t.Errorf("then overdue is %v and the next pass is due in %s; want true, and 10s for the second pod", overdue(), again)
	}
	w.now = due.Add(10 * time.Second)
	if again := w.pass().RequeueAfter; again != 0 {
		t.Errorf("when both are overdue the next pass is due in %s, want never", again)
	}
}
