package rollout_test

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/rollout"
)

// limitTo creates a NodeBudget of pool a that allows one unavailable node.
func (w *world) limitTo(name string, change ...func(*v1alpha1.NodeBudgetSpec)) {
	b := &v1alpha1.NodeBudget{ObjectMeta: w.meta(name)}
	b.Spec = v1alpha1.NodeBudgetSpec{NodeSelector: pool("a"), MaxUnavailable: new(intstr.FromInt32(1))}
	for _, c := range change {
		c(&b.Spec)
	}
	w.budgets = append(w.budgets, b)
}

func (w *world) editBudget(name string, change func(*v1alpha1.NodeBudget)) {
	edit(w, w.budgets, name, change)
}

func (w *world) deleteBudget(name string) {
	w.budgets = slices.DeleteFunc(slices.Clone(w.budgets), func(b *v1alpha1.NodeBudget) bool { return b.Name == name })
}

// ledgers are the writes of NodeBudgets of a decision, each of which is made once.
type ledgers struct {
	*world
	decisions map[string]*rollout.BudgetDecision
	// written says whether a write was made; false is a conflict.
	written map[string]bool
	// needed has the budgets of rollouts with starts.
	needed map[string]bool
}

func (w *world) ledgersOf(d *rollout.Decision) *ledgers {
	l := &ledgers{world: w, decisions: map[string]*rollout.BudgetDecision{}, written: map[string]bool{}, needed: map[string]bool{}}
	for i := range d.Budgets {
		l.decisions[d.Budgets[i].Budget.Name] = &d.Budgets[i]
	}
	for i := range d.Rollouts {
		for _, name := range d.Rollouts[i].Budgets {
			l.needed[name] = true
		}
	}
	return l
}

// count writes the budgets that count the starts of a rollout.
func (l *ledgers) count(d *rollout.RolloutDecision, stop func() bool) (counted, stopped bool) {
	if len(d.Starts) == 0 {
		return true, false
	}
	for _, name := range d.Budgets {
		if _, done := l.written[name]; !done {
			if stop() {
				return false, true
			}
			l.write(name)
		}
		if !l.written[name] {
			return false, false
		}
	}
	return true, false
}

func (l *ledgers) write(name string) {
	d := l.decisions[name]
	current, _ := find(l.budgets, name)
	if l.written[name] = current == d.Budget; !l.written[name] {
		return
	}
	if !equality.Semantic.DeepEqual(d.Status, d.Budget.Status) {
		l.editBudget(name, func(b *v1alpha1.NodeBudget) { b.Status = *d.Status.DeepCopy() })
	}
}

// report writes the other budgets that have changed.
func (l *ledgers) report(d *rollout.Decision, stop func() bool) (stopped bool) {
	for i := range d.Budgets {
		one := &d.Budgets[i]
		if l.needed[one.Budget.Name] || equality.Semantic.DeepEqual(one.Status, one.Budget.Status) {
			continue
		}
		if stop() {
			return true
		}
		l.write(one.Budget.Name)
	}
	return false
}
