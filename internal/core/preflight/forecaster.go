package preflight

import (
	"cmp"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/foreigndrain"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// forecaster summarizes simulated runs. The first is expected, others show alternatives.
type forecaster struct {
	*Snapshot
	owners *owners
	runs   []*run
	left   []map[podKey]*maintenance.PodVerdict
}

type podKey struct {
	namespace, name string
	uid             types.UID
}

func keyOf(v *maintenance.PodVerdict) podKey { return podKey{v.Pod.Namespace, v.Pod.Name, v.Pod.UID} }

func (t *forecaster) leftIn(n int) map[podKey]*maintenance.PodVerdict {
	for len(t.left) <= n {
		left := map[podKey]*maintenance.PodVerdict{}
		for i := range t.runs[len(t.left)].after {
			pods := t.runs[len(t.left)].after[i].Pods
			for j := range pods {
				left[keyOf(&pods[j])] = &pods[j]
			}
		}
		t.left = append(t.left, left)
	}
	return t.left[n]
}

// fate holds the expected end of a pod.
type fate struct {
	outcome Outcome
	blocker *v1alpha1.Blocker
}

func (t *forecaster) fateIn(n int, v *maintenance.PodVerdict) fate {
	r := t.runs[n]
	p := r.pods[v.Pod]
	left := t.leftIn(n)[keyOf(v)]
	switch {
	case p != nil && p.state == gone && p.contended() && p.budgets[0].unclear:
		return fate{OutcomeUnknown, t.blockerOf(n, p.budgets[0])}
	case p != nil && p.state == gone && p.contended():
		return fate{OutcomeMayBeBlocked, t.blockerOf(n, p.budgets[0])}
	case p != nil && p.state == gone && p.action == ActionSurge && p.replacement != nil && p.replacement.unknown:
		return fate{outcome: OutcomeUnknown}
	case p != nil && p.state == gone:
		return fate{outcome: OutcomeLeaves}
	case !v.Counted:
		return fate{outcome: OutcomeStays}
	case left == nil || left.Blocker == nil:
		return fate{outcome: OutcomeWaits}
	case left.Blocker.Type == v1alpha1.BlockerWaitingForCompletion:
		return fate{OutcomeCompletes, left.Blocker}
	case p != nil && p.refusal.Result == evacuation.Budgeted && p.budgets[0].unclear:
		return fate{OutcomeUnknown, left.Blocker}
	case p != nil && p.refusal.Result == evacuation.Budgeted && p.budgets[0].let > 0:
		return fate{OutcomeMayBeBlocked, left.Blocker}
	default:
		return fate{OutcomeBlocked, left.Blocker}
	}
}

// contended reports whether a pod left by a disruption that others of its budget lacked.
func (p *pod) contended() bool { return p.chance && len(p.budgets) == 1 && p.budgets[0].waiting() > 0 }

// blockerOf returns the blocker of a pod that a budget holds up; nil without one on these nodes.
func (t *forecaster) blockerOf(n int, b *simulatedBudget) *v1alpha1.Blocker {
	for _, line := range [][]*pod{b.ready, b.unready} {
		for _, p := range line {
			if left := t.leftIn(n)[podKey{p.object.Namespace, p.object.Name, p.object.UID}]; left != nil && left.Blocker != nil {
				return left.Blocker
			}
		}
	}
	return nil
}

func (t *forecaster) fateOf(v *maintenance.PodVerdict) fate {
	all := t.fateIn(0, v)
	for n := range t.runs[1:] {
		all = all.or(t.fateIn(n+1, v))
	}
	return all
}

// or returns what becomes of a pod of which two things may become.
func (f fate) or(other fate) fate {
	if f.outcome == other.outcome {
		return f
	}
	worse, better := f, other
	if severity(worse.outcome) < severity(better.outcome) {
		worse, better = better, worse
	}
	if better.outcome == OutcomeLeaves || better.outcome == OutcomeMayBeBlocked {
		worse.outcome = OutcomeMayBeBlocked
	}
	return worse
}

// severity orders outcomes by how much they are in the way.
func severity(o Outcome) int {
	return slices.Index([]Outcome{
		OutcomeStays, OutcomeLeaves, OutcomeWaits, OutcomeCompletes, OutcomeMayBeBlocked, OutcomeUnknown, OutcomeBlocked,
	}, o)
}

func (t *forecaster) node(place int) NodeForecast {
	r := t.runs[0]
	v := &r.before[place]
	f := NodeForecast{
		Name: v.Name, Outcome: OutcomeLeaves, LimitedBy: v.Limiter, FastForwardedBy: v.ForwardedBy, Waits: t.Waits[v.Name], Pods: make([]PodForecast, 0, len(v.Pods)),
	}
	if at, exists := r.nodes[v.Name]; exists {
		f.Unschedulable, f.Notes = t.World.Nodes[at].Spec.Unschedulable, foreigndrain.Notes(t.World.Nodes[at])
	}
	if place < len(r.after) {
		f.Message = r.after[place].Message + r.after[place].Waves
	}
	if !v.Read {
		f.Outcome = OutcomeUnknown
		return f
	}
	for i := range v.Pods {
		one := t.pod(&v.Pods[i])
		f.Count.tell(&one, t.heldIn(0, &v.Pods[i]))
		if one.Outcome != OutcomeStays && severity(one.Outcome) > severity(f.Outcome) {
			f.Outcome = one.Outcome
		}
		f.Pods = append(f.Pods, one)
	}
	slices.SortFunc(f.Pods, comparePods)
	return f
}

// comparePods orders pods as they leave, then those that never do, then those that stay.
func comparePods(a, b PodForecast) int {
	return cmp.Or(
		cmp.Compare(ones(a.Outcome == OutcomeStays), ones(b.Outcome == OutcomeStays)),
		cmp.Compare(place(a), place(b)),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
	)
}

// place returns when a pod leaves; one that nobody asks comes after the others.
func place(p PodForecast) int {
	if p.Wave == 0 && p.Action != ActionAlreadyLeaving {
		return math.MaxInt
	}
	return p.Wave
}

// heldIn reports whether an awaited pod neither leaves nor completes in a run.
func (t *forecaster) heldIn(n int, v *maintenance.PodVerdict) bool {
	left := t.leftIn(n)[keyOf(v)]
	return v.Counted && left != nil && !(left.Blocker != nil && left.Blocker.Type == v1alpha1.BlockerWaitingForCompletion)
}

func (c *Count) tell(p *PodForecast, isHeld bool) {
	c.Pods++
	switch p.Outcome {
	case OutcomeLeaves:
		c.Leave++
	case OutcomeBlocked:
		c.Blocked++
	case OutcomeMayBeBlocked:
		c.MayBeBlocked++
	case OutcomeCompletes:
		c.Complete++
	case OutcomeWaits:
		c.Wait++
	case OutcomeUnknown:
		c.Unknown++
	default:
		c.Stay++
	}
	c.Held += ones(isHeld)
	c.Unplaceable += ones(p.Replacement != nil && p.Replacement.Unplaceable)
	c.DataLost += ones(len(p.DataLost) > 0)
	// A pod that its Deployment has detached has no owner any more.
	comesBack := p.Action == ActionDaemonSet || p.Action == ActionStatic || p.Action == ActionAlreadyLeaving || p.Action == ActionSurge
	c.Unreplaced += ones(p.Outcome != OutcomeStays && p.Owner == nil && !comesBack)
}

func (c *Count) add(other Count) {
	for _, pair := range []struct {
		to   *int
		from int
	}{
		{&c.Pods, other.Pods},
		{&c.Leave, other.Leave},
		{&c.Blocked, other.Blocked},
		{&c.MayBeBlocked, other.MayBeBlocked},
		{&c.Complete, other.Complete},
		{&c.Wait, other.Wait},
		{&c.Unknown, other.Unknown},
		{&c.Stay, other.Stay},
		{&c.Held, other.Held},
		{&c.Unplaceable, other.Unplaceable},
		{&c.DataLost, other.DataLost},
		{&c.Unreplaced, other.Unreplaced},
	} {
		*pair.to += pair.from
	}
}

func ones(counts bool) int {
	if counts {
		return 1
	}
	return 0
}

func (t *forecaster) pod(v *maintenance.PodVerdict) PodForecast {
	object := v.Pod
	p := t.runs[0].pods[object]
	f := PodForecast{
		Namespace: object.Namespace, Name: object.Name, Owner: t.ownerOf(object), Type: podclass.Type(object), Priority: podclass.Priority(object),
	}
	become := t.fateOf(v)
	f.Outcome, f.Blocker = become.outcome, become.blocker
	f.Action, f.Why = actionOf(v)
	if p != nil {
		f.Wave = p.wave
		f.Action, f.Why = cmp.Or(p.action, f.Action), cmp.Or(p.why, f.Why)
		f.Replacement = p.shownReplacement()
		for _, b := range p.budgets {
			f.Budgets = append(f.Budgets, b.given.Name)
		}
		if t.budgetsUnread(p) {
			f.Outcome, f.Blocker = OutcomeUnknown, nil
			f.Why = "which budgets protect it could not be read"
		}
	}
	if f.Outcome != OutcomeStays {
		f.DataLost, f.Objection = t.owners.dataLost(object), foreigndrain.OfPod(object, t.World.Now)
	}
	return f
}

// actionOf returns what is done to a pod that nobody has asked to leave yet, and why.
func actionOf(v *maintenance.PodVerdict) (Action, string) {
	switch {
	case v.Retained != nil && v.Retained.Type == v1alpha1.RetainedNoEvacuator:
		return ActionWithNode, v.Retained.Message
	case v.Retained != nil:
		return ActionKeep, v.Retained.Message
	case v.Treatment.Cause != "":
		return ActionNone, v.Treatment.Cause
	case v.Treatment.Behavior == v1alpha1.DrainBehaviorWaitCompleted:
		return ActionWait, "as " + v.Treatment.Reason + " asks"
	}
	switch podclass.Type(v.Pod) {
	case v1alpha1.PodTypeDaemonSet:
		return ActionDaemonSet, ""
	case v1alpha1.PodTypeStatic:
		return ActionStatic, ""
	default:
		return ActionEvict, ""
	}
}

// shownReplacement returns what people are told of what comes in place of a pod.
func (p *pod) shownReplacement() *Replacement {
	next := p.replacement
	switch {
	case next == nil || p.state != gone && p.state != ending:
		return nil
	case next.node == somewhere:
		return &Replacement{Why: "room was not checked"}
	default:
		return &Replacement{Node: next.node, Unplaceable: next.made && next.node == "" && !next.unknown, JobFails: next.jobFails, Why: next.why}
	}
}
