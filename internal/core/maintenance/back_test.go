package maintenance_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// comeBack has a node be back for a maintenance, whose locks are given away.
func (w *world) comeBack(node string, m *v1alpha1.NodeMaintenance) {
	w.observe(node, func(status *v1alpha1.DrainRecordStatus) {
		status.Locks = nil
		status.Boots = &v1alpha1.RecordedBoots{MaintenanceUID: m.UID, RebootCount: 1, ReturnedTime: metaTime(w.now)}
	})
}

// says is what a maintenance says: its Drained, its summary, and of each node.
func says(m *v1alpha1.NodeMaintenance) []string {
	drained := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrained)
	words := []string{string(drained.Status), m.Status.Summary}
	for i := range m.Status.NodeStatuses {
		words = append(words, m.Status.NodeStatuses[i].NodeRef.Name+": "+m.Status.NodeStatuses[i].DrainMessage)
	}
	return words
}

// announces is what a node announces of its maintenance: the conditions that are True.
func (w *world) announces(node string) string {
	var words []string
	for _, c := range w.find(node).Status.Conditions {
		if c.Reason == v1alpha1.ReasonNodeMaintenance && c.Status == corev1.ConditionTrue {
			words = append(words, string(c.Type))
		}
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// TestANodeOfAPoolIsBack: one maintenance reboots two nodes, one after the other. The
// first one is not to be rebooted again when it is back, and is cordoned until the end.
func TestANodeOfAPoolIsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one", "two")
	m := inPlace(w.maintenance("m", drain, nil, "one", "two"), 300)
	w.budget("db")
	w.run("one", 1, 0, stays, label("app", "db"))
	w.run("two", 1, 0, stays, label("app", "db"))
	for range 3 {
		w.pass()
	}
	w.take("one", "db")
	w.pass()
	w.pass()
	if got := w.announces("one"); got != "Drained MaintenanceInProgress" {
		t.Errorf("node one announces %q", got)
	}

	w.comeBack("one", m)
	events := w.pass().Maintenances[0].Events
	w.take("two", "db")
	w.pass()
	w.pass()
	const back = "Back since 2026-03-01T07:00:00Z: its pods are ready, and it holds no locks."
	if diff := cmp.Diff([]string{"True", "2/2 nodes drained, 1 back", "one: " + back, "two: Drained."}, says(m)); diff != "" {
		t.Errorf("it says (-want +got):\n%s", diff)
	}
	if got := w.announces("one") + ", " + w.announces("two"); got != ", Drained MaintenanceInProgress" {
		t.Errorf("the nodes announce %q: node one would be rebooted again", got)
	}
	if len(events) > 0 {
		t.Errorf("these events say it again: %v", events)
	}
	if !w.find("one").Spec.Unschedulable {
		t.Error("node one is not cordoned any more")
	}
	w.expectRecord("it is kept until the end", "one", "m 300s: pod-0001(db) lock db")
	m.Spec.Stage = complete
	w.expectRecord("it is complete", "one", "m 300s: pod-0001(db) lock db complete")
}

// TestANodeThatIsBackIsNotDrainedForOthers: whoever else wants to reboot it needs the
// locks again, which it gets when the first maintenance is complete.
func TestANodeThatIsBackIsNotDrainedForOthers(t *testing.T) {
	t.Parallel()
	w, m, _ := rebooting(t)
	younger := inPlace(w.maintenance("younger", drain, nil, "one"), 300)
	w.pass()
	w.take("one", "db")
	w.pass()
	if !isTrue(younger.Status.Conditions, v1alpha1.ConditionDrained) {
		t.Fatal("both share the locks")
	}
	w.comeBack("one", m)
	w.pass()
	w.pass()
	want := []string{"False", "0/1 nodes drained", "one: Waiting for NodeMaintenance m to be complete: for it the node is back, and has no locks any more."}
	if diff := cmp.Diff(want, says(younger)); diff != "" {
		t.Errorf("the younger one says (-want +got):\n%s", diff)
	}
	m.Spec.Stage = complete
	w.pass()
	w.expectRecord("the younger one has the node", "one", "younger 300s: pod-0001(db) lock db")
	want = []string{"False", "0/1 nodes drained, 1 budget not locked", "one: Waiting for the lock of PodDisruptionBudget default/db."}
	if diff := cmp.Diff(want, says(younger)); diff != "" {
		t.Errorf("the younger one says (-want +got):\n%s", diff)
	}
}

// TestAnOrdinaryDrainOfANodeThatIsBack: the other maintenance leaves no pod there.
func TestAnOrdinaryDrainOfANodeThatIsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one")
	m := inPlace(w.maintenance("m", drain, nil, "one"), 300)
	w.budget("db")
	w.run("one", 1, 0, stays, label("app", "db"))
	w.pass()
	w.pass()
	w.take("one", "db")
	w.comeBack("one", m)
	other := w.maintenance("other", drain, nil, "one")
	w.pass()
	w.pass()
	if isTrue(other.Status.Conditions, v1alpha1.ConditionDrained) || isTrue(m.Status.Conditions, v1alpha1.ConditionDrained) {
		t.Errorf("drained with a pod that has to leave: %q, %q", says(m), says(other))
	}
}
