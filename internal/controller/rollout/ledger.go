package rollout

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodebudget"
	core "ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/internal/kube"
)

// errUncounted ends the writes of a rollout whose starts a NodeBudget does not have in its status.
var errUncounted = errors.New("a NodeBudget does not count the nodes")

// reportPrefix begins the name of the writes of a NodeBudget without starts. No rollout has a slash in
// its name.
const reportPrefix = "nodebudget/"

// ledger is the status of a NodeBudget, which all rollouts of a decision write together, once.
type ledger struct {
	*reconciler
	*core.BudgetDecision

	once sync.Once
	err  error
}

// ledgers returns the ledgers of a decision by the names of the budgets.
func (r *reconciler) ledgers(decision *core.Decision) map[string]*ledger {
	all := make(map[string]*ledger, len(decision.Budgets))
	for i := range decision.Budgets {
		of := &decision.Budgets[i]
		all[of.Budget.Name] = &ledger{reconciler: r, BudgetDecision: of}
	}
	r.uncounted.keep(slices.Collect(maps.Keys(all)))
	return all
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodebudgets/status,verbs=patch

// write writes the status, also one that is the same: the write is refused if the budget has changed
// since the decision.
func (l *ledger) write(ctx context.Context) error {
	l.once.Do(func() {
		name, logger := l.Budget.Name, log.FromContext(ctx).WithValues("budget", l.Budget.Name)
		changed := l.Budget.DeepCopy()
		changed.Status = l.Status
		l.err = l.client.Status().Patch(ctx, changed, kube.Change(l.Budget))
		switch l.outdated.add(l.Budget, l.err); {
		case l.err == nil:
			l.uncounted.drop(name)
			l.budgets.note(changed)
		case kube.IsStale(l.err):
			logger.V(1).Info("Dropped a stale decision", "reason", l.err.Error())
		default:
			l.uncounted.add(name, l.err)
			logger.Error(l.err, "Failed to write the status of a NodeBudget, retrying")
		}
	})
	return l.err
}

// count has the starts of a rollout wait for the ledgers that count them.
func (w *writing) count(ledgers map[string]*ledger) {
	if len(w.starts) == 0 {
		return
	}
	for _, name := range w.decision.Budgets {
		w.ledgers = append(w.ledgers, ledgers[name])
	}
}

// report writes the ledgers that have changed and count no new start.
func (r *reconciler) report(ctx context.Context, ledgers map[string]*ledger, decision *core.Decision, flying map[string]*writing) {
	counting := sets.New[string]()
	for i := range decision.Rollouts {
		counting.Insert(decision.Rollouts[i].Budgets...)
	}
	for _, w := range flying {
		for _, l := range w.ledgers {
			counting.Insert(l.Budget.Name)
		}
	}
	for name, l := range ledgers {
		same := equality.Semantic.DeepEqual(l.Budget.Status, l.Status)
		if same || counting.Has(name) || r.outdated.has(l.Budget) || r.uncounted.left(name) > 0 {
			continue
		}
		w := &writing{
			reconciler: r, reports: true, ledgers: []*ledger{l}, decision: &core.RolloutDecision{},
			before: &v1alpha1.NodeRollout{ObjectMeta: metav1.ObjectMeta{Name: reportPrefix + name}},
		}
		if r.flights.begin(w) {
			go r.fly(ctx, w)
		}
	}
}

// observeBudgets adds all NodeBudgets, and those whose status rests after a write that failed.
func (r *reconciler) observeBudgets(snapshot *core.Snapshot, cached []*v1alpha1.NodeBudget) (due time.Duration) {
	byName, due := r.budgets.over(cached)
	var rest time.Duration
	snapshot.RefusedBudgets, rest = r.uncounted.resting()
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if snapshot.Budgets = append(snapshot.Budgets, byName[name]); r.outdated.has(byName[name]) {
			snapshot.RefusedBudgets[name] = "it has changed meanwhile"
		}
	}
	return kube.Soonest(due, rest)
}

// countedBy returns the names of the NodeMaintenances that budgets have recorded; none if the decision
// reads no budget.
func countedBy(budgets []*v1alpha1.NodeBudget) sets.Set[string] {
	names := sets.New[string]()
	if len(budgets) > nodebudget.Max {
		return names
	}
	for _, one := range budgets {
		for _, entry := range one.Status.Working {
			names.Insert(entry.NodeMaintenanceName)
		}
	}
	return names
}

func (r *reconciler) budgetMatters(_ context.Context, q kube.Queue[pass], old, now *v1alpha1.NodeBudget) {
	if now == nil {
		r.budgets.gone(old)
	} else {
		r.any.Store(true)
	}
	q.Add(pass{})
}
