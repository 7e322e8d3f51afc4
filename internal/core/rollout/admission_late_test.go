package rollout_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/difference"
)

// While nobody knows whether a NodeMaintenance exists, its entry stays where it is, and counts.
func TestNodeOfANodeMaintenanceThatCouldNotBeReadStaysAdmitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b")
	then(limited(forAll), requested("first", "a"), settled)(w)
	uid := w.maintenances[0].UID
	w.limitTo("tight", forAll)
	w.limitTo("rollouts")
	w.maintenances = nil
	requested("second", "b")(w)
	w.unknown = map[string]bool{"first": true}
	for range 2 {
		d := w.decide()
		difference.None(t, "nodes", []string{"rollouts", "shared a/first/" + string(uid), "tight"}, working(d))
		for _, b := range d.Budgets {
			if b.Status.UnavailableCount != 1 {
				t.Errorf("%s counts %d", b.Budget.Name, b.Status.UnavailableCount)
			}
		}
	}
	w.unknown = map[string]bool{}
	admitted(w)
	difference.None(t, "nodes", []string{"shared (1) b/second", "tight (1) b/second", "rollouts (1)", "held b/second"}, w.allotted())
}

// A node that some budgets list, because another could not be written or was created later, keeps its
// place there, as a manager with an older state may cordon it.
func TestNodeThatSomeNodeBudgetsListKeepsItsPlaces(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]story{
		"the other has room":    {func(w *world) { listed(w, "one", "b", "young") }, []string{"one (1) b/young", "two (1) b/young", "held b/young"}},
		"the other is full":     {then(func(w *world) { listed(w, "one", "b", "young") }, node("c", unschedulable)), []string{"one (2) b/young", "two (2)", "held"}},
		"the other is repaired": {then(func(w *world) { listed(w, "one", "b", "young") }, node("c", unschedulable), settled, node("c", func(n *corev1.Node) { n.Spec.Unschedulable = false })), []string{"one (1) b/young", "two (1) b/young", "held b/young"}},
		"two wait for each other": {
			func(w *world) {
				listed(w, "one", "b", "young")
				listed(w, "two", "a", "old")
			}, []string{"one (1) a/old", "two (1) a/old", "held a/old"},
		},
		"two wait for each other, the youngest by name": {
			func(w *world) {
				listed(w, "one", "a", "old")
				listed(w, "two", "b", "young")
			}, []string{"one (1) a/old", "two (1) a/old", "held a/old"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "a", "b", "c")
			w.limitTo("one", forAll)
			w.limitTo("two", forAll)
			then(requested("old", "a"), requested("young", "b"), test.happens)(w)
			admitted(w)
			difference.None(t, "nodes", test.want, w.allotted())
		})
	}
}

// A manager that acts late, by what it saw before a second budget held the node, exceeds no limit.
func TestNodeThatIsTakenLateExceedsNoNodeBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c")
	then(limited(forAll), requested("first", "a"), settled)(w)
	seen := slices.Clone(w.budgets)
	w.join("d", labelled(poolLabel, "b"), unschedulable)
	w.limitTo("tight", forAll, over(&corev1.NodeSelector{NodeSelectorTerms: terms([]string{"a", "d"})}))
	then(requested("second", "b"), admitted)(w)
	w.take(seen, func(m *v1alpha1.NodeMaintenance) bool { return m.Name == "first" })
	admitted(w)
	difference.None(t, "nodes", []string{"shared (1) a/first", "tight (2) a/first", "held a/first"}, w.allotted())
}
