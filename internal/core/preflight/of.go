package preflight

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// severalRuns is the number of pods up to which several orders are simulated.
const severalRuns = 2000

// Of forecasts a drain. An invalid maintenance yields a verdict as well.
func Of(s Snapshot) Forecast {
	given := newOwners(s.Owners)
	runs := []*run{simulate(&s, given, asAsked)}
	asked := len(runs[0].pods)
	if s.Place != nil && asked > 1 && asked <= severalRuns {
		for _, by := range []order{backwards, bigFirst, smallFirst} {
			runs = append(runs, simulate(&s, given, by))
		}
		for _, by := range losers(runs, severalRuns/asked) {
			runs = append(runs, simulate(&s, given, by))
		}
	}
	t := forecaster{Snapshot: &s, owners: given, runs: runs}
	return t.forecast()
}

// The orders in which pods that are asked together leave: as they are asked, the other
// way round, and by how much room they take.
func asAsked(*corev1.Pod, *corev1.Pod) int { return 0 }

func backwards(a, b *corev1.Pod) int { return byName(b, a) }

func bigFirst(a, b *corev1.Pod) int { return sizeOf(b).Cmp(*sizeOf(a)) }

func smallFirst(a, b *corev1.Pod) int { return sizeOf(a).Cmp(*sizeOf(b)) }

// maxLosers is of how many budgets the pods are thought to come too late.
const maxLosers = 16

// losers returns orders in which the pods of one budget come last and may find no room.
func losers(runs []*run, most int) (orders []order) {
	if !slices.ContainsFunc(runs, func(r *run) bool { return len(r.unplaced) > 0 }) {
		return nil
	}
	covered := map[*policyv1.PodDisruptionBudget]map[types.UID]bool{}
	for _, p := range runs[0].pods {
		for _, b := range p.budgets {
			if covered[b.given] == nil {
				covered[b.given] = map[types.UID]bool{}
			}
			covered[b.given][p.object.UID] = true
		}
	}
	budgets := slices.SortedFunc(maps.Keys(covered), func(a, b *policyv1.PodDisruptionBudget) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, b := range budgets[:min(len(budgets), maxLosers, most)] {
		late := covered[b]
		orders = append(orders, func(a, b *corev1.Pod) int { return rank(late[a.UID]) - rank(late[b.UID]) })
	}
	return orders
}

func rank(late bool) int {
	if late {
		return 1
	}
	return 0
}

// forecast puts together what the runs have shown.
func (t *forecaster) forecast() Forecast {
	first := t.runs[0]
	f := Forecast{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind}, Maintenance: t.Maintenance.Name,
		Time: metav1.NewTime(t.World.Now), WaveCount: first.wave,
		Unread: t.unread(), Ignores: slices.Concat(ignores, t.Ignores),
	}
	if t.Place == nil {
		f.Ignores = append([]string{"whether replacements fit on other nodes"}, f.Ignores...)
	}
	for i := range first.before {
		f.Nodes = append(f.Nodes, t.node(i))
	}
	for i := range f.Nodes {
		f.Total.add(f.Nodes[i].Count)
	}
	f.Outages = t.outages(f.Nodes)
	f.Budgets = t.budgets()
	f.Meetings = t.meetings()
	f.Outcome = t.outcome(&f)
	f.Verdict = t.verdict(&f)
	return f
}
