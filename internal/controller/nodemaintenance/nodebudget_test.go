package nodemaintenance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// aNodeBudget limits the nodes of all pools, and lists these for their maintenances.
func aNodeBudget(admitted ...string) *v1alpha1.NodeBudget {
	b := &v1alpha1.NodeBudget{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "uid-of-web", Generation: 1}}
	b.Spec.AppliesTo = v1alpha1.NodeBudgetOfAll
	b.Spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpExists}},
	}}}
	for _, node := range admitted {
		b.Status.Working = append(b.Status.Working, v1alpha1.BudgetNode{
			Name: node, NodeMaintenanceName: "m-" + node, NodeMaintenanceUID: types.UID("uid-of-m-" + node),
		})
	}
	return b
}

// limited is a world in which each node has a maintenance, with a manager that reads NodeBudgets.
func limited(t *testing.T, nodes []string, more ...client.Object) (*world, *reconciler) {
	t.Helper()
	for _, name := range nodes {
		node := aNode(name)
		node.Labels["pool"] = name
		more = append(more, node, aPod("pod-"+name, name), aMaintenance("m-"+name, name))
	}
	w := newWorld(t, more...)
	r := w.manager()
	r.nodeBudgets.served = func() (served, known bool) { return true, true }
	r.nodeBudgets.synced.Store(true)
	return w, r
}

// runDue runs what is due, without any event.
func (w *world) runDue(r *reconciler) {
	w.t.Helper()
	w.must(runDue(w.t.Context(), r, w.clock))
}

// change writes a NodeBudget and returns it as it was.
func (w *world) change(change func(*v1alpha1.NodeBudget)) (was, is *v1alpha1.NodeBudget) {
	w.t.Helper()
	is = &v1alpha1.NodeBudget{}
	w.get(is, "", "web")
	was = is.DeepCopy()
	change(is)
	status := is.DeepCopy()
	w.must(w.api.Update(w.t.Context(), is))
	status.ResourceVersion = is.ResourceVersion
	w.must(w.api.Status().Update(w.t.Context(), status))
	return was, status
}

// admitting lists these nodes.
func admitting(nodes ...string) func(*v1alpha1.NodeBudget) {
	return func(b *v1alpha1.NodeBudget) { b.Status.Working = aNodeBudget(nodes...).Status.Working }
}

// dueNodes are the members that are due.
func (w *world) dueNodes(r *reconciler) []string {
	names := []string{}
	for _, member := range r.dueBy(w.clock.Now()) {
		names = append(names, member.Name)
	}
	slices.Sort(names)
	return names
}

// expectCordoned compares which of the nodes one, two and three are cordoned.
func (w *world) expectCordoned(what string, want ...string) {
	w.t.Helper()
	var list corev1.NodeList
	w.must(w.api.List(w.t.Context(), &list))
	var got []string
	for i := range list.Items {
		if node := &list.Items[i]; node.Spec.Unschedulable {
			got = append(got, node.Name)
		} else if len(node.Annotations) > 0 {
			w.t.Errorf("%s: node %s has annotations %v", what, node.Name, node.Annotations)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s: cordoned nodes (-want +got):\n%s", what, diff)
	}
}

func TestAdmittedNodeIsDueAlone(t *testing.T) {
	t.Parallel()
	w, r := limited(t, []string{"one", "two"}, aNodeBudget())
	w.reconcile(r)
	w.expectCordoned("nothing is admitted")
	w.clock.Step(10 * time.Second)
	w.runDue(r)
	if got := w.blockersOf("m-one"); !strings.HasPrefix(got, "NodeBudget: ") {
		t.Errorf("the blockers of a node that waits are %q", got)
	}
	if len(w.evacuations()) > 0 {
		t.Errorf("evacuated are %v", w.evacuatedPods())
	}
	was, is := w.change(admitting("one"))
	r.nodeBudgetMatters(was, is)
	if diff := cmp.Diff([]string{"one"}, w.dueNodes(r)); diff != "" {
		t.Errorf("due (-want +got):\n%s", diff)
	}
	w.runDue(r)
	w.expectCordoned("one is admitted", "one")
	if diff := cmp.Diff([]string{"pod-one"}, w.evacuatedPods()); diff != "" {
		t.Errorf("evacuated (-want +got):\n%s", diff)
	}
	// What is no longer said of a node that is cordoned concerns nothing.
	was, is = w.change(admitting("two"))
	r.nodeBudgetMatters(was, is)
	if diff := cmp.Diff([]string{"two"}, w.dueNodes(r)); diff != "" {
		t.Errorf("due (-want +got):\n%s", diff)
	}
	w.runDue(r)
	w.expectCordoned("two is admitted instead", "one", "two")
}

// The event of an admission may come after a pass has read the budgets, and before it notes that the
// node waits.
func TestAdmissionDuringAPassIsNotMissed(t *testing.T) {
	t.Parallel()
	w, r := limited(t, []string{"one", "two"}, aNodeBudget())
	decide := r.decide
	admitted := false
	r.decide = func(s maintenance.Snapshot) maintenance.Decision {
		if !admitted {
			admitted = true
			r.nodeBudgetMatters(w.change(admittingAll))
		}
		return decide(s)
	}
	w.reconcile(r)
	w.expectCordoned("admitted during the first pass", "one", "two")
}

func admittingAll(b *v1alpha1.NodeBudget) { admitting("one", "two")(b) }

// While budgets are unknown, nodes that are cordoned drain, and others wait.
func TestUnknownNodeBudgetsHoldOnlyNewNodes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		unknown, known func(w *world, r *reconciler)
		within         time.Duration
	}{
		"no answer whether they are served": {
			unknown: func(_ *world, r *reconciler) {
				r.nodeBudgets.served = func() (served, known bool) { return false, false }
				r.nodeBudgets.synced.Store(false)
			},
			known: func(_ *world, r *reconciler) {
				r.nodeBudgets.served = func() (served, known bool) { return false, true }
				r.touchHeld(nil)
			},
		},
		"the watch has not listed them": {
			unknown: func(_ *world, r *reconciler) { r.nodeBudgets.synced.Store(false) },
			known: func(_ *world, r *reconciler) {
				r.nodeBudgets.synced.Store(true)
				r.touchHeld(nil)
			},
		},
		"the list fails": {
			unknown: func(w *world, _ *reconciler) { w.api.Refuse = refuseRead("list NodeBudget") },
			known:   func(w *world, _ *reconciler) { w.api.Refuse = nil },
			within:  lastRetry,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, r := limited(t, []string{"one"})
			w.reconcile(r)
			w.expectCordoned("no budgets", "one")
			test.unknown(w, r)
			two := aNode("two")
			two.Labels["pool"] = "two"
			for _, object := range []client.Object{two, aPod("pod-two", "two"), aPod("pod-three", "one"), aMaintenance("m-two", "two")} {
				w.must(w.api.Create(t.Context(), object))
			}
			w.reconcile(r)
			w.clock.Step(10 * time.Second)
			w.runDue(r)
			w.expectCordoned("unknown", "one")
			if diff := cmp.Diff([]string{"pod-one", "pod-three"}, w.evacuatedPods()); diff != "" {
				t.Errorf("unknown: evacuated (-want +got):\n%s", diff)
			}
			if got := w.blockersOf("m-two"); !strings.HasPrefix(got, "NodeBudget: ") {
				t.Errorf("blockers are %q", got)
			}
			test.known(w, r)
			w.clock.Step(test.within)
			w.runDue(r)
			w.expectCordoned("known", "one", "two")
		})
	}
}

func TestNodeBudgetsThatAreNotServedHoldNothing(t *testing.T) {
	t.Parallel()
	for name, served := range map[string]func() (served, known bool){
		"rights for rollouts are missing": nil,
		"the CRD is not installed":        func() (served, known bool) { return false, true },
	} {
		w, r := limited(t, []string{"one"}, aNodeBudget())
		r.nodeBudgets.served = served
		r.nodeBudgets.synced.Store(false)
		w.reconcile(r)
		w.expectCordoned(name, "one")
	}
}

func TestDeletedNodeBudgetLetsAllNodesGo(t *testing.T) {
	t.Parallel()
	w, r := limited(t, []string{"one", "two", "three"}, aNodeBudget())
	w.reconcile(r)
	w.clock.Step(10 * time.Second)
	w.runDue(r)
	w.expectCordoned("before")
	w.must(w.api.Delete(t.Context(), aNodeBudget()))
	r.touchHeld(nil)
	w.runDue(r)
	w.expectCordoned("deleted", "one", "three", "two")
	r.touchHeld(nil)
	if due := w.dueNodes(r); len(due) > 0 {
		t.Errorf("nodes that wait no longer are due: %v", due)
	}
}

func TestWhichNodeBudgetEventsMatter(t *testing.T) {
	t.Parallel()
	all, none := []string{"one", "three", "two"}, []string{}
	before := aNodeBudget("one")
	for name, test := range map[string]struct {
		old, now any
		want     []string
	}{
		"a new budget":           {nil, before, all},
		"nothing changes":        {before, aNodeBudget("one"), none},
		"the summary changes":    {before, changed(before, func(b *v1alpha1.NodeBudget) { b.Status.Summary = "1 of 1" }), none},
		"the spec changes":       {before, changed(before, func(b *v1alpha1.NodeBudget) { b.Generation++ }), all},
		"it is being deleted":    {before, changed(before, func(b *v1alpha1.NodeBudget) { b.DeletionTimestamp = &metav1.Time{Time: noon} }), all},
		"a node is admitted":     {before, aNodeBudget("one", "two"), []string{"two"}},
		"one more, one less":     {before, aNodeBudget("three"), []string{"one", "three"}},
		"another order":          {aNodeBudget("one", "two"), aNodeBudget("two", "one"), none},
		"one that does not wait": {before, aNodeBudget("one", "four"), none},
		"for another maintenance": {before, changed(before, func(b *v1alpha1.NodeBudget) {
			b.Status.Working = []v1alpha1.BudgetNode{{Name: "one", NodeMaintenanceUID: "other"}}
		}), []string{"one"}},
		"of a rollout": {before, changed(before, func(b *v1alpha1.NodeBudget) {
			b.Status.Working = append(slices.Clone(b.Status.Working), v1alpha1.BudgetNode{Name: "two", NodeRolloutName: "patch"})
		}), none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.manager()
			r.nodeBudgets.hold(all, all, 0, false)
			begun := r.nodeBudgets.changes.Load()
			r.nodeBudgetMatters(test.old, test.now)
			if diff := cmp.Diff(test.want, w.dueNodes(r)); diff != "" {
				t.Errorf("due (-want +got):\n%s", diff)
			}
			if again := r.nodeBudgets.hold(all, all, begun, false); len(test.want) > 0 && again != atOnce {
				t.Errorf("a decision that was begun before is made again after %s", again)
			}
		})
	}
}

func TestDecisionIsMadeAgainOnlyWhileNodesWait(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		waiting []string
		begun   uint64
		unread  bool
		want    time.Duration
	}{
		"nothing waits":                 {begun: 1, unread: true},
		"nothing has changed":           {waiting: []string{"one"}, begun: 2},
		"budgets have changed":          {waiting: []string{"one"}, begun: 1, want: atOnce},
		"unread":                        {waiting: []string{"one"}, begun: 2, unread: true, want: lastRetry},
		"unread, and they have changed": {waiting: []string{"one"}, begun: 1, unread: true, want: atOnce},
	} {
		r := newWorld(t).manager()
		r.touchHeld(nil)
		r.touchHeld(nil)
		if got := r.nodeBudgets.hold([]string{"one"}, test.waiting, test.begun, test.unread); got != test.want {
			t.Errorf("%s: it is decided again after %s, want %s", name, got, test.want)
		}
	}
}

// A budget that admits a node each second costs one decision each second, however many wait.
func TestManyWaitingNodesAreNotDecidedAgain(t *testing.T) {
	t.Parallel()
	const nodes = 5000
	w := newWorld(t)
	r := w.manager()
	names := make([]string, nodes)
	for i := range names {
		names[i] = fmt.Sprintf("node-%04d", i)
		r.nodeBudgets.hold(names[i:i+1], names[i:i+1], 0, false)
	}
	was := aNodeBudget()
	for second := range 60 {
		is := aNodeBudget(names[max(0, second-9) : second+1]...)
		is.Status.Summary = fmt.Sprint(second)
		r.nodeBudgetMatters(was, is)
		want := []string{names[second]}
		if second > 9 {
			want = []string{names[second-10], names[second]}
		}
		if diff := cmp.Diff(want, w.dueNodes(r)); diff != "" {
			t.Fatalf("second %d: due (-want +got):\n%s", second, diff)
		}
		r.schedule = newSchedule()
		was = is
	}
	r.nodeBudgets.hold(names, nil, 0, false)
	r.touchHeld(nil)
	if due := w.dueNodes(r); len(due) > 0 {
		t.Errorf("%d nodes are due that wait no longer", len(due))
	}
}
