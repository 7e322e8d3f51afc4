package nodemaintenance

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// untilNoon is a drain whose deadline gives its two nodes back in an hour.
func untilNoon(t *testing.T) *world {
	t.Helper()
	upgrade := aMaintenance("upgrade", "old")
	upgrade.Spec.Deadline = &v1alpha1.Deadline{Time: metav1.NewTime(noon.Add(time.Hour)), OnDeadline: v1alpha1.DeadlineGiveBack}
	return newWorld(t, aNode("one"), aNode("two"), upgrade, aPod("a", "one"))
}

func TestDeadlineGivesLateNodeBack(t *testing.T) {
	t.Parallel()
	w := untilNoon(t)
	r := w.manager()
	w.passes(r, noon.Add(time.Hour))
	w.reconcile(r)
	w.evacuateAll()
	w.reconcile(r)
	if !w.node("two").Spec.Unschedulable || w.node("one").Spec.Unschedulable || len(w.evacuations()) > 0 {
		t.Errorf("cordoned are one %t and two %t, evacuated %v", w.node("one").Spec.Unschedulable, w.node("two").Spec.Unschedulable, w.evacuations())
	}
	m := w.maintenance("upgrade")
	if len(m.Spec.CompletedNodes) != 1 || m.Spec.CompletedNodes[0].Name != "one" || m.Annotations[v1alpha1.GivenBackAnnotation] == "" {
		t.Errorf("given back are %v, recorded is %q", m.Spec.CompletedNodes, m.Annotations)
	}
	if past := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionPastDeadline); past == nil || past.Reason != v1alpha1.ReasonGivenBack {
		t.Errorf("PastDeadline is %+v", past)
	}
	for _, object := range []string{"NodeMaintenance/upgrade", "Node/one"} {
		if !slices.ContainsFunc(w.api.Events(), func(e string) bool {
			return strings.HasPrefix(e, v1alpha1.EventNodeGivenBack+" on "+object+": ")
		}) {
			t.Errorf("no event about %s: %q", object, w.api.Events())
		}
	}
}

// The cache of the manager may not show yet that a deadline was postponed.
func TestPostponedDeadlineGivesNothingBack(t *testing.T) {
	t.Parallel()
	w := untilNoon(t)
	r := w.manager()
	w.passes(r, noon.Add(59*time.Minute))
	postponed := false
	w.api.Refuse = func(request string) error {
		if postponed || !strings.HasPrefix(request, "patch NodeMaintenance") {
			return nil
		}
		postponed = true
		m := w.maintenance("upgrade")
		m.Spec.Deadline.Time, m.Generation = metav1.NewTime(noon.Add(2*time.Hour)), m.Generation+1
		w.must(w.api.Update(t.Context(), m))
		return nil
	}
	w.passes(r, noon.Add(61*time.Minute))
	if !postponed {
		t.Fatal("nothing was to be given back")
	}
	if m := w.maintenance("upgrade"); len(m.Spec.CompletedNodes) > 0 || !w.node("one").Spec.Unschedulable {
		t.Errorf("given back are %v, and one is cordoned: %t", m.Spec.CompletedNodes, w.node("one").Spec.Unschedulable)
	}
	w.passes(r, noon.Add(2*time.Hour))
	if m := w.maintenance("upgrade"); len(m.Spec.CompletedNodes) != 1 {
		t.Errorf("at the new deadline, given back are %v", m.Spec.CompletedNodes)
	}
}

// Nodes are left alone until the write that gives them back is in the API.
func TestRefusedGiveBackChangesNoNode(t *testing.T) {
	t.Parallel()
	w := untilNoon(t)
	r := w.manager()
	w.passes(r, noon.Add(59*time.Minute))
	w.api.Refuse = func(request string) error {
		if strings.HasPrefix(request, "patch NodeMaintenance") {
			return errRefused
		}
		return nil
	}
	w.passes(r, noon.Add(61*time.Minute))
	if !w.node("one").Spec.Unschedulable {
		t.Error("one is free without a record")
	}
	w.api.Refuse = nil
	w.passes(r, noon.Add(70*time.Minute))
	w.reconcile(r)
	if w.node("one").Spec.Unschedulable {
		t.Error("one stays cordoned")
	}
}
