package preflight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

func (t *forecaster) budgets() []BudgetForecast {
	found := map[*simulatedBudget]*BudgetForecast{}
	before := t.runs[0].before
	for i := range before {
		for j := range before[i].Pods {
			t.addBudgets(found, &before[i].Pods[j])
		}
	}
	var told []BudgetForecast
	for _, f := range found {
		if f.judge() {
			told = append(told, *f)
		}
	}
	slices.SortFunc(told, func(a, b BudgetForecast) int {
		return cmp.Or(cmp.Compare(ones(b.HeldCount > 0), ones(a.HeldCount > 0)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return told
}

func (t *forecaster) addBudgets(found map[*simulatedBudget]*BudgetForecast, v *maintenance.PodVerdict) {
	p := t.runs[0].pods[v.Pod]
	if p == nil || !v.Counted || !p.evicted() {
		return
	}
	for _, b := range p.budgets {
		if found[b] == nil {
			found[b] = b.forecast()
		}
		found[b].PodCount++
		if t.heldIn(0, v) {
			found[b].HeldCount++
			found[b].blame(p, t.leftIn(0)[keyOf(v)].Blocker)
		}
	}
}

func (p *pod) evicted() bool {
	return p.action == ActionEvict || p.action == ActionSurge || p.action == ActionEvacuator
}

// forecast returns what is known of a budget before anybody leaves.
func (b *simulatedBudget) forecast() *BudgetForecast {
	f := &BudgetForecast{Namespace: b.given.Namespace, Name: b.given.Name}
	f.Allowed, _ = budget.Allowed(b.given)
	if why, never := budget.Never(b.given); never {
		f.Effect, f.Why = BudgetNever, fmt.Sprintf("It can never allow a disruption: %s.", why)
	}
	return f
}

func (f *BudgetForecast) blame(p *pod, found *v1alpha1.Blocker) {
	if found == nil || p.refusal.Type == "" || f.Effect == BudgetNever && f.Suggestion != "" {
		return
	}
	effect := f.Effect
	switch p.refusal.Result {
	case evacuation.Budgeted:
		effect = cmp.Or(f.Effect, BudgetHolds)
	case evacuation.Locked:
		effect = BudgetLocked
	case evacuation.Refused:
		effect = BudgetSeveral
	}
	f.Effect, f.Why, f.Suggestion = effect, found.Message, found.Suggestion
}

func (f *BudgetForecast) judge() bool {
	switch {
	case f.Effect == BudgetNever && f.HeldCount == 0:
		// Pods that surge, or that are not ready, leave nevertheless.
		f.Effect = BudgetSlows
		return true
	case f.Effect != "":
		return true
	case f.PodCount > int(f.Allowed):
		f.Effect = BudgetSlows
		f.Why = fmt.Sprintf("It allows %s now, and %s under it: the others wait until those before them are replaced.",
			phrase.Count(int(f.Allowed), "disruption"), phrase.Count(f.PodCount, "pod leaves", "pods leave"))
		return true
	default:
		return false
	}
}

const namedNodes = 10

func (t *forecaster) meetings() []Meeting {
	met := map[string]*encounter{}
	for i := range t.runs[0].before {
		v := &t.runs[0].before[i]
		for _, other := range v.Others {
			if met[other.Name] == nil {
				met[other.Name] = &encounter{Meeting: Meeting{Maintenance: other.Name, Stage: other.Stage}}
			}
			met[other.Name].see(v, other, t.runs[0].name)
		}
	}
	told := make([]Meeting, 0, len(met))
	for _, one := range met {
		told = append(told, one.tell())
	}
	slices.SortFunc(told, func(a, b Meeting) int { return cmp.Compare(a.Maintenance, b.Maintenance) })
	return told
}

// encounter is a meeting with on how many nodes one of the two stands back.
type encounter struct {
	Meeting
	limits, forwards, limited, forwarded int
}

func (e *encounter) see(v *maintenance.NodeVerdict, other maintenance.Neighbour, own string) {
	e.NodeCount++
	if len(e.Nodes) < namedNodes {
		e.Nodes = append(e.Nodes, v.Name)
	}
	e.limits += ones(v.Limiter == other.Name)
	e.forwards += ones(v.ForwardedBy == other.Name)
	e.limited += ones(other.Limiter == own)
	e.forwarded += ones(other.ForwardedBy == own)
}

func (e *encounter) tell() Meeting {
	on := "on " + phrase.Count(e.NodeCount, "node")
	var words []string
	for _, part := range []struct {
		nodes int
		text  string
	}{
		{e.limits, "it holds pods back that this one would have leave"},
		{e.forwards, "this one is fast-forwarded to what it has come to"},
		{e.limited, "this one holds pods back that it would have leave"},
		{e.forwarded, "it is fast-forwarded to what this one has come to"},
	} {
		if part.nodes > 0 {
			words = append(words, fmt.Sprintf("%s (%s)", part.text, phrase.Count(part.nodes, "node")))
		}
	}
	switch {
	case e.Stage == v1alpha1.StageIdle:
		e.Message = "Is planned " + on + ", too, and holds nothing up."
	case e.Stage == v1alpha1.StageCordon:
		e.Message = "Holds the cordon " + on + ", too: they stay cordoned until it is complete."
	case len(words) == 0:
		e.Message = "Drains " + on + ", too: they stay cordoned until both are complete."
	default:
		e.Message = "Drains " + on + ", too: " + strings.Join(words, "; ") + "."
	}
	return e.Meeting
}

func (t *forecaster) outcome(f *Forecast) Outcome {
	least := t.leastHeld()
	switch {
	case t.runs[0].invalid != "", len(f.Nodes) == 0:
		return OutcomeUnknown
	case least > 0 || f.Total.Blocked > 0:
		return OutcomeBlocked
	case f.Total.Unknown > 0, slices.ContainsFunc(f.Nodes, func(n NodeForecast) bool { return n.Outcome == OutcomeUnknown }):
		return OutcomeUnknown
	case f.Total.MayBeBlocked > 0:
		return OutcomeMayBeBlocked
	case f.Total.Complete > 0:
		return OutcomeCompletes
	default:
		return OutcomeLeaves
	}
}

// leastHeld counts the pods that certainly do not leave for reasons of their own.
func (t *forecaster) leastHeld() int {
	least := -1
	for n, r := range t.runs {
		held := 0
		for i := range r.before {
			for j := range r.before[i].Pods {
				v := &r.before[i].Pods[j]
				p := r.pods[v.Pod]
				known := p == nil || !t.budgetsUnread(p)
				become := t.fateIn(n, v).outcome
				held += ones(t.heldIn(n, v) && known && become != OutcomeWaits && become != OutcomeUnknown)
			}
		}
		if least < 0 || held < least {
			least = held
		}
	}
	return least
}
