package drainlock_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
)

const youngBudget = 5 * time.Second

// wipe deletes what the protocol has written down: records, and budgets with their
// locks. A budget is made anew at once or later. Most of it happens while a node is on
// its way.
func (w *world) wipe() {
	promised := slices.ContainsFunc(w.nodes, func(m *machine) bool { return m.drained && !m.back })
	if !w.chance(8) || !promised && !w.chance(10) {
		return
	}
	b := w.all(w.budgets.now)[w.rand.IntN(len(w.budgets.now))]
	records := slices.Sorted(maps.Keys(w.records.now))
	switch w.rand.IntN(4) {
	case 0:
		w.remake(b)
		w.say("remade %s", b.Name)
	case 1:
		if len(w.budgets.now) > 1 {
			w.missing[b.Name] = b
			w.budgets.change(w.now, func(all map[v1alpha1.BudgetReference]*policyv1.PodDisruptionBudget) { delete(all, ref(b)) })
			w.say("missing %s", b.Name)
		}
	case 2:
		w.restoreBudgets()
	case 3:
		if len(records) > 0 {
			gone := records[w.rand.IntN(len(records))]
			if i := slices.IndexFunc(w.nodes, func(m *machine) bool { return m.away }); i >= 0 && w.chance(2) {
				gone = w.nodes[i].name
			}
			w.records.change(w.now, func(all map[string]*v1alpha1.DrainRecord) { delete(all, gone) })
			w.say("wiped %s", gone)
		}
	}
}

// remake has another budget of the same name in the place of one, which caches see as
// one change.
func (w *world) remake(old *policyv1.PodDisruptionBudget) {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: *old.ObjectMeta.DeepCopy(), Spec: *old.Spec.DeepCopy()}
	b.ResourceVersion, b.Annotations, b.ManagedFields, b.Generation = w.nextVersion(), nil, nil, 1
	b.UID = types.UID(b.Name + "-" + b.ResourceVersion)
	w.budgets.change(w.now, func(all map[v1alpha1.BudgetReference]*policyv1.PodDisruptionBudget) {
		delete(all, ref(old))
		all[ref(b)] = b
	})
}

func (w *world) restoreBudgets() {
	for _, name := range slices.Sorted(maps.Keys(w.missing)) {
		w.remake(w.missing[name])
		w.say("restored %s", name)
		w.born[name] = w.now
		delete(w.missing, name)
	}
}

// tell notes under which budgets a node is that was just told that it may go. One that
// is missing protects nobody.
func (w *world) tell(m *machine) {
	w.say("drained %s", m.name)
	m.drained, m.since, m.under = true, w.now, map[string]bool{}
	for _, b := range w.all(w.budgets.now) {
		if born, anew := w.born[b.Name]; !anew || w.now.Sub(born) > youngBudget {
			m.under[b.Name] = true
		}
	}
}

// checkDown: no two nodes are down that were told so under the same budget, whatever
// has become of that since.
func (w *world) checkDown() {
	for _, app := range w.apps {
		var down []string
		for _, m := range w.nodes {
			here := slices.ContainsFunc(on(w.pods.now, m.name), func(pod *corev1.Pod) bool { return pod.Labels["app"] == app })
			if m.away && m.under[app] && here {
				down = append(down, m.name)
			}
		}
		if len(down) > 1 && !w.rough {
			w.fail("%v are down under the budget of %s", down, app)
		}
	}
}

// TestSimulationOfWhatIsWiped deletes records and budgets at any time, and never sees two
// nodes of one budget down.
func TestSimulationOfWhatIsWiped(t *testing.T) {
	t.Parallel()
	count := map[string]int{}
	for seed := range uint64(2 * seeds) {
		w := newSimWorld(seed, false, sound)
		w.wipes, w.count = true, count
		if fault := w.live(); fault != "" {
			t.Errorf("seed %d: %s", seed, fault)
		}
	}
	for _, what := range []string{"remade", "missing", "restored", "wiped", "down", "NodeReturned"} {
		if count[what] == 0 {
			t.Errorf("%s never happened", what)
		}
	}
}

func (w *world) away(s drainlock.Snapshot) map[types.UID]string {
	away := map[types.UID]string{}
	for _, b := range s.Budgets {
		for _, name := range slices.Sorted(maps.Keys(w.hosts.seen())) {
			here := slices.ContainsFunc(on(w.pods.seen(), name), func(pod *corev1.Pod) bool { return w.selects(b, pod) })
			if name != s.Record.Name && here && drainlock.Promised(w.hosts.seen()[name]) {
				away[b.UID] = name
			}
		}
	}
	return away
}

// promise writes or removes the promise of a node, unless the node has changed.
func (w *world) promise(name string, step drainlock.Step) {
	now := w.hosts.now[name]
	if now.ResourceVersion != step.Node.ResourceVersion {
		return
	}
	changed := now.DeepCopy()
	changed.ResourceVersion, changed.Annotations = w.nextVersion(), nil
	if step.Promise != "" {
		changed.Annotations = map[string]string{v1alpha1.RebootPromiseAnnotation: step.Promise}
	}
	w.hosts.change(w.now, func(all map[string]*corev1.Node) { all[name] = changed })
	w.say("%s %s", step.Kind, name)
}

func (w *world) remakeRecord(name string) bool {
	if !drainlock.Promised(w.hosts.seen()[name]) || !drainlock.Promised(w.hosts.now[name]) || w.records.now[name] != nil {
		return false
	}
	w.writeSpec(name, nil, drainlock.Remake(w.hosts.now[name], on(w.pods.seen(), name), w.all(w.budgets.seen())))
	return true
}

func (w *world) anew(r *v1alpha1.DrainRecord) bool {
	return !r.Spec.Complete && drainlock.Held(r) && !drainlock.Returned(r) && r.Status.Boots.RebootCount == 0 &&
		r.Status.Boots.BootID == w.hosts.now[r.Name].Status.NodeInfo.BootID
}

// again has a node that is back reboot once more: it is told so by a promise that knows
// nothing of the reboot.
func (w *world) again(m *machine) {
	m.ordered, m.back, m.reported = false, false, false
	w.tell(m)
}
