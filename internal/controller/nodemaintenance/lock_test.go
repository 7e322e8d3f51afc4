package nodemaintenance

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/drainrecord"
)

// inPlace is a maintenance whose nodes are away for a minute.
func inPlace(m *v1alpha1.NodeMaintenance) *v1alpha1.NodeMaintenance {
	m.Spec.InPlace = &v1alpha1.InPlace{ExpectedDowntimeSeconds: 60}
	return m
}

// aReplica is a pod of the database that stays on its node.
func aReplica(name, node string) *corev1.Pod {
	pod := aPod(name, node)
	pod.Labels = map[string]string{"app": "db", v1alpha1.OnUpgradeLabel: "stay"}
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	return pod
}

// aBudget protects the pods of an application.
func aBudget(app string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: app, UID: types.UID(app), Generation: 1},
		Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: 1},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
	}
}

// newInPlaceDrain is a world in which a replica stays on node one while another
// pod leaves it, and everything leaves node two, whose manager dies after so many
// writes; it lives on if they are negative.
func newInPlaceDrain(t *testing.T, dies int) *drain {
	t.Helper()
	three := aNode("three")
	three.Labels = nil
	w := newWorld(t, aNode("one"), aNode("two"), three, inPlace(aMaintenance("upgrade", "old")),
		aReplica("db-0", "one"), aPod("a", "one"), aPod("b", "two"), aBudget("db"))
	w.api.KillAfter(dies)
	return &drain{world: w, alive: w.manager()}
}

// settleLocks runs passes, and what others do in between, until nothing changes any
// more: pods leave, and locks are taken and given back.
func (d *drain) settleLocks() {
	d.t.Helper()
	for range 50 {
		changed := d.runOnce()
		changed = d.evacuateAll() || changed
		if changed = d.lockAll() || changed; !changed {
			return
		}
	}
	d.t.Fatal("the world did not settle in 50 passes")
}

// lockAll does what the drain lock controller does.
func (w *world) lockAll() (changed bool) {
	w.t.Helper()
	for _, record := range w.records() {
		var locks []v1alpha1.RecordedLock
		for _, b := range record.Spec.Budgets {
			locks = append(locks, v1alpha1.RecordedLock{BudgetReference: b, AcquiredTime: metav1.NewTime(noon), ConfirmedTime: &metav1.Time{Time: noon}})
		}
		switch {
		case record.Spec.Complete:
			w.must(w.api.Delete(w.t.Context(), &record))
			changed = true
		case record.Status.Boots == nil, len(locks) != len(record.Status.Locks):
			record.Status.Boots = &v1alpha1.RecordedBoots{MaintenanceUID: record.Spec.MaintenanceRef.UID}
			record.Status.Locks, record.Status.ObservedGeneration = locks, record.Generation
			w.must(w.api.Status().Update(w.t.Context(), &record))
			changed = true
		}
	}
	return changed
}

func (w *world) records() []v1alpha1.DrainRecord {
	w.t.Helper()
	var list v1alpha1.DrainRecordList
	w.must(w.api.List(w.t.Context(), &list))
	return list.Items
}

func (w *world) recordState() []string {
	w.t.Helper()
	var state []string
	for _, record := range w.records() {
		line := "record of " + record.Name + " for " + record.Spec.MaintenanceRef.Name + ":"
		for _, pod := range record.Spec.Pods {
			line += fmt.Sprintf(" %s%v", pod.Name, pod.BudgetUIDs)
		}
		state = append(state, fmt.Sprintf("%s locks %v, complete %t, has %d", line, record.Spec.Budgets, record.Spec.Complete, len(record.Status.Locks)))
	}
	return state
}

// A drain in place comes to the same end whenever its manager dies, and nobody
// keeps a lock for it.
func TestAManagerThatDiesWhileANodeIsAwayIsContinued(t *testing.T) {
	t.Parallel()
	const away = "record of one for upgrade: db-0[db] locks [{shop db db}], complete false, has 1"
	tests := map[string]struct {
		end func(*drain)
		// over is a line of the state in the end, and left are the records.
		over string
		left []string
	}{
		"completed": {
			end: func(d *drain) { d.setStage(v1alpha1.StageComplete) }, over: "pod db-0",
		},
		"deleted": {
			end: func(d *drain) { d.must(d.api.Delete(d.t.Context(), aMaintenance("upgrade", "old"))) }, over: "no maintenance",
		},
		"nobody comes back after all": {
			end: func(d *drain) {
				m := d.maintenance("upgrade")
				m.Spec.InPlace = nil
				d.must(d.api.Update(d.t.Context(), m))
			},
			over: "Drained=True because Drained: 2 of 2 nodes drained, 0 pods left: 0 pending evacuation, 0 evacuating; 0 pods retained.",
		},
		"the node leaves": {
			end: func(d *drain) {
				node := d.node("one")
				node.Labels = nil
				d.must(d.api.Update(d.t.Context(), node))
			},
			over: "node one: unschedulable false, annotations map[], taints [], conditions []",
			left: []string{"record of two for upgrade: locks [], complete false, has 0"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(dies int) (*drain, []string) {
				d := newInPlaceDrain(t, dies)
				d.settleLocks()
				away := slices.Concat(d.state(), d.recordState())
				test.end(d)
				d.settleLocks()
				return d, slices.Concat(away, []string{"then"}, d.state(), d.recordState())
			}
			undisturbed, want := run(-1)
			then := slices.Index(want, "then")
			if !slices.Contains(want[:then], away) || !slices.Contains(want[then:], test.over) {
				t.Fatalf("the state is %q, want %q and then %q in it", want, away, test.over)
			}
			if left := undisturbed.recordState(); !slices.Equal(left, test.left) {
				t.Errorf("in the end there is %q, want %q", left, test.left)
			}
			for dies, write := range undisturbed.api.Writes() {
				if _, got := run(dies + 1); !cmp.Equal(want, got) {
					t.Errorf("the states after dying behind write %d, %q (-undisturbed +continued):\n%s", dies, write, cmp.Diff(want, got))
				}
			}
		})
	}
}

// The record comes after the cordon, and a record that is refused stops nothing but
// the node whose it is.
func TestARecordThatIsRefusedStopsOnlyItsNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aNode("one"), aNode("two"), inPlace(aMaintenance("upgrade", "old")),
		aReplica("db-0", "one"), aReplica("db-1", "two"), aPod("a", "two"), aBudget("db"))
	w.api.Refuse = refuseWrites("create DrainRecord one")
	r := w.manager()
	for range 5 {
		w.reconcile(r)
		if w.nextDue(r) == 0 && len(w.records()) > 0 {
			t.Error("the record that was refused is not tried again")
		}
		w.evacuateAll()
		w.lockAll()
		w.clock.Step(2 * time.Second)
	}
	if diff := cmp.Diff([]string{"record of two for upgrade: db-1[db] locks [{shop db db}], complete false, has 1"}, w.recordState()); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	m := w.maintenance("upgrade")
	if meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionDrained) || m.Status.Summary != "1/2 nodes drained, 1 budget not locked" {
		t.Errorf("the maintenance is %q, want one node drained", m.Status.Summary)
	}
	got := fmt.Sprint(trueConditions(w.node("one")), trueConditions(w.node("two")))
	if want := "[DrainInProgress] [Drained MaintenanceInProgress]"; got != want {
		t.Errorf("the nodes announce %s, want %s", got, want)
	}
	cordon := slices.IndexFunc(w.api.Writes(), func(write string) bool { return write == "patch Node one" })
	created := slices.Index(w.api.Writes(), "create DrainRecord one")
	if cordon < 0 || created < cordon {
		t.Errorf("the writes are %q, want the cordon before the record", w.api.Writes())
	}

	w.api.Refuse = nil
	w.clock.Step(longestRefusal)
	for range 3 {
		w.reconcileWith(r)
		w.lockAll()
	}
	if !meta.IsStatusConditionTrue(w.maintenance("upgrade").Status.Conditions, v1alpha1.ConditionDrained) {
		t.Errorf("the maintenance is %q, want it drained", w.maintenance("upgrade").Status.Summary)
	}
}

func (w *world) reconcileWith(r *reconciler) {
	w.t.Helper()
	w.reconcile(r)
	w.clock.Step(2 * time.Second)
}

// A record is written under the version that it was decided on, and what others
// have put on it stays.
func TestARecordIsNotWrittenOverAnotherOne(t *testing.T) {
	t.Parallel()
	stored := &v1alpha1.DrainRecord{ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: map[string]string{"team": "a"}}}
	stored.Spec.MaintenanceRef.Name, stored.Spec.Reason = "upgrade", "kernel"
	stored.Status.Locks = []v1alpha1.RecordedLock{{BudgetReference: v1alpha1.BudgetReference{Namespace: "shop", Name: "db"}, AcquiredTime: metav1.NewTime(noon)}}
	w := newWorld(t, stored)
	old := w.records()[0]
	spec := v1alpha1.DrainRecordSpec{MaintenanceRef: v1alpha1.MaintenanceReference{Name: "next"}, InPlace: v1alpha1.InPlace{ExpectedDowntimeSeconds: 60}}
	change := maintenance.NodeDecision{Node: aNode("one"), DrainRecord: &drainrecord.Change{Old: &old, Spec: spec}}
	r := w.manager()
	w.act(r, nil, change)
	got := w.records()[0]
	if diff := cmp.Diff(spec, got.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if got.Labels["team"] != "a" || len(got.Status.Locks) != 1 {
		t.Errorf("the record is %+v, want its label and its status untouched", got)
	}

	if ended := w.act(r, nil, change); !apierrors.IsConflict(ended.stale) {
		t.Errorf("a decision on an old record comes to %v, want a conflict that is decided again", ended.stale)
	}
	change.DrainRecord.Old = nil
	if ended := w.act(r, nil, change); !apierrors.IsAlreadyExists(ended.stale) {
		t.Errorf("a second record comes to %v, want that it exists", ended.stale)
	}
}

// A record leads back to its node, whether anybody selects that one or not.
func TestARecordWithoutAMaintenanceIsCompleted(t *testing.T) {
	t.Parallel()
	of := func(node string) *v1alpha1.DrainRecord {
		record := &v1alpha1.DrainRecord{ObjectMeta: metav1.ObjectMeta{Name: node}}
		record.Spec.MaintenanceRef.Name = "upgrade"
		return record
	}
	w := newWorld(t, aNode("one"), of("one"), of("gone"))
	w.reconcileWith(w.manager())
	want := []string{
		"record of gone for upgrade: locks [], complete true, has 0",
		"record of one for upgrade: locks [], complete true, has 0",
	}
	if diff := cmp.Diff(want, w.recordState()); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if w.node("one").Spec.Unschedulable || w.node("one").Annotations != nil {
		t.Error("the node is touched")
	}
}

func TestWhichRecordAndBudgetEventsMatter(t *testing.T) {
	t.Parallel()
	record := &v1alpha1.DrainRecord{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	budget := aBudget("db")
	other := changed(budget, func(b *policyv1.PodDisruptionBudget) { b.Generation++ })
	allows := changed(budget, func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed++ })
	ordinary, away, idle := watching(t, "one"), watching(t, "one"), watching(t)
	away.watched.nodes["one"].inPlace = true
	blocked := watching(t, "one")
	blocked.watched.block([]string{"one"}, func(string) bool { return true })
	runRelevance(t, map[string]relevanceTest{
		"a record comes":                     {at(recordMatters(nil, record)), coalesce},
		"a record goes":                      {at(recordMatters(record, nil)), coalesce},
		"a record is noted":                  {at(recordMatters(record, changed(record, func(r *v1alpha1.DrainRecord) { r.Labels, r.ResourceVersion = map[string]string{"a": "b"}, "2" }))), never},
		"a lock is taken":                    {at(recordMatters(record, changed(record, func(r *v1alpha1.DrainRecord) { r.Status.Locks = make([]v1alpha1.RecordedLock, 1) }))), coalesce},
		"a budget is given up":               {at(recordMatters(record, changed(record, func(r *v1alpha1.DrainRecord) { r.Status.GivenUp = make([]v1alpha1.GivenUpBudget, 1) }))), coalesce},
		"somebody changes its spec":          {at(recordMatters(record, changed(record, func(r *v1alpha1.DrainRecord) { r.Generation++ }))), coalesce},
		"a budget of pods that stay comes":   {at(away.budgetMatters(nil, budget)), coalesce},
		"a budget of pods that stay goes":    {at(away.budgetMatters(budget, nil)), coalesce},
		"it protects others":                 {at(away.budgetMatters(budget, other)), coalesce},
		"it allows more":                     {at(away.budgetMatters(budget, allows)), statusInterval},
		"it allows more to pods that wait":   {at(blocked.budgetMatters(budget, allows)), statusInterval},
		"it protects others, and none waits": {at(ordinary.budgetMatters(budget, other)), never},
		"it protects others, at rest":        {at(idle.budgetMatters(budget, other)), never},
	})
}
