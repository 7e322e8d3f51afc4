package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/calendar"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance/handover"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/skew"
)

// usualDuration is the expected time of a node before the first one is done.
const usualDuration = 30 * time.Minute

// refusal says why nodes do not start; the zero value is none.
type refusal struct{ reason, message string }

// budget holds what limits the starts of a rollout.
type budget struct {
	*rollout
	*limit
	working    int
	open       calendar.State
	canary     refusal
	canaryLeft int
	// unfinished counts the nodes that wait or are under maintenance, by whether they are control
	// plane nodes.
	unfinished map[bool]int
	gates      *refusal // nil until they are asked
	// leaving are the nodes under maintenance after a number of starts.
	leaving      string
	leavingAfter int
}

// start determines which waiting nodes start, and why the others do not.
func (r *rollout) start() {
	waits := r.candidates()
	if len(waits) == 0 {
		return
	}
	if refused := r.refusal(); refused.reason != "" {
		for _, u := range waits {
			u.reason, u.message = refused.reason, refused.message
		}
		return
	}
	b := r.budget()
	for _, u := range waits {
		if refused := b.refusalOf(u); refused.reason != "" {
			u.reason, u.message = refused.reason, refused.message
			continue
		}
		b.begin(u)
	}
}

// candidates returns the waiting nodes in the order of their start. Nodes that are cordoned already
// cost no further availability.
func (r *rollout) candidates() []*unit {
	var waits []*unit
	for _, u := range r.units {
		if u.state == waiting {
			waits = append(waits, u)
		}
	}
	last, key := r.object.Spec.ControlPlane == v1alpha1.ControlPlaneLast, r.object.Spec.TopologyKey
	slices.SortStableFunc(waits, func(a, b *unit) int {
		return cmp.Or(
			compareBool(a.controlPlane == last, b.controlPlane == last),
			compareBool(a.retry, b.retry),
			-compareBool(a.Spec.Unschedulable, b.Spec.Unschedulable),
			strings.Compare(a.domain(key), b.domain(key)),
		)
	})
	return waits
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// refusal returns why no node of the rollout starts.
func (r *rollout) refusal() refusal {
	spec := &r.object.Spec
	switch {
	case r.spec == nil:
		return refusal{v1alpha1.RolloutWaitsForValidSpec, r.invalid.Error()}
	case r.object.DeletionTimestamp != nil:
		return refusal{v1alpha1.RolloutWaitsForUser, "The rollout is being deleted."}
	case spec.State == v1alpha1.RolloutPaused || spec.State == v1alpha1.RolloutAborted:
		return refusal{v1alpha1.RolloutWaitsForUser, fmt.Sprintf("spec.state is %s.", spec.State)}
	case r.ClockSkewed:
		return refusal{v1alpha1.RolloutWaitsForClock, skew.Message}
	case r.replaces() && len(r.MachineKinds) == 0:
		return refusal{v1alpha1.RolloutWaitsForReplace, replaceDisabled + "."}
	}
	limit, _ := share(spec.Failure.MaxFailures, len(r.units))
	if count := r.count(failed); count >= limit {
		return refusal{v1alpha1.RolloutWaitsForFailures, fmt.Sprintf("%s failed, and failure.maxFailures is %d.", phrase.Count(count, "node"), limit)}
	}
	if refused := r.tooManyBudgets(); refused.reason != "" {
		return refused
	}
	return r.closed()
}

// closed returns why no node starts at this time.
func (r *rollout) closed() refusal {
	open := r.spec.calendar.At(r.Now)
	r.wake(open.WakeTime)
	if !open.Open {
		return refusal{open.Reason, open.Message}
	}
	if open.Until.IsZero() {
		return refusal{}
	}
	need := r.percentile(90, usualDuration)
	if open.Length > 0 {
		need = min(need, open.Length/2)
	}
	latest := open.Until.Add(-need)
	r.wake(latest.Add(1))
	if r.Now.After(latest) {
		return refusal{v1alpha1.RolloutWaitsForWindow, fmt.Sprintf("Until %s too little time is left: a node needs %s.", phrase.Time(open.Until), need.Round(time.Second))}
	}
	return refusal{}
}

func (r *rollout) count(of state) (count int) {
	for _, u := range r.units {
		if u.state == of {
			count++
		}
	}
	return count
}

func (r *rollout) budget() *budget {
	most, _ := share(r.object.Spec.MaxUnavailable, len(r.units))
	b := &budget{rollout: r, limit: newLimit("", most, r.object.Spec.TopologyKey), open: r.spec.calendar.At(r.Now), unfinished: map[bool]int{}, leavingAfter: -1}
	for _, u := range r.units {
		switch u.state {
		case working:
			b.working++
			b.unfinished[u.controlPlane]++
		case waiting:
			b.unfinished[u.controlPlane]++
		}
		if u.counts() {
			b.add(u.node)
		}
	}
	b.readCanary()
	return b
}

// counts returns true if the node counts as unavailable.
func (u *unit) counts() bool {
	soak := time.Duration(u.rollout.object.Spec.SoakSeconds) * time.Second
	switch u.state {
	case failed, skipped:
		return false
	case done:
		if until := u.doneTime.Add(soak); !u.doneTime.IsZero() && until.After(u.rollout.Now) {
			u.rollout.wake(until)
			return true
		}
		return u.unavailable() && !u.staysDrained()
	}
	return u.unavailable()
}

func (u *unit) staysDrained() bool {
	return u.rollout.object.Spec.After == v1alpha1.AfterStayDrained && u.record != nil && u.record.live()
}

// readCanary determines how many nodes may start as canaries.
func (b *budget) readCanary() {
	canary := b.object.Spec.Canary
	if canary == nil {
		return
	}
	var ends []time.Time
	for _, u := range b.units {
		if u.state == done && !u.doneTime.IsZero() {
			ends = append(ends, u.doneTime)
		}
	}
	needed := int(canary.NodeCount)
	if len(ends) < needed {
		b.canaryLeft = needed - len(ends) - b.working
		b.canary = refusal{v1alpha1.RolloutWaitsForCanary, fmt.Sprintf("%d of %d canary nodes are done.", len(ends), needed)}
		return
	}
	slices.SortFunc(ends, time.Time.Compare)
	until := ends[needed-1].Add(time.Duration(canary.SoakSeconds) * time.Second)
	if until.After(b.Now) {
		b.wake(until)
		b.canary = refusal{v1alpha1.RolloutWaitsForCanary, fmt.Sprintf("The canary nodes are done and are watched until %s.", phrase.Time(until))}
		return
	}
	if canary.Approved != nil && !*canary.Approved {
		b.canary = refusal{v1alpha1.RolloutWaitsForApproval, "The canary nodes are done. To continue: " + command.Of("kubectl ebbtide rollout approve %s", b.object.Name)}
	}
}

// refusalOf returns why a node does not start.
func (b *budget) refusalOf(u *unit) refusal {
	if refused := b.refusalByNode(u); refused.reason != "" {
		return refused
	}
	if refused := b.refusalByOrder(u); refused.reason != "" {
		return refused
	}
	if b.canary.reason != "" && b.canaryLeft <= 0 {
		return b.canary
	}
	if refused := b.refusalByBudget(u); refused.reason != "" {
		return refused
	}
	return b.refusalByAnswer(u)
}

// refusalByNode returns why a node does not start, whatever the others do.
func (b *budget) refusalByNode(u *unit) refusal {
	if len(b.Refused) > 0 {
		attempt := b.attempt(u)
		if text, refused := b.Refused[attempt.name(b.object.Name, u.Name)]; refused {
			return refusal{v1alpha1.RolloutWaitsForWrite, "The NodeMaintenance could not be created: " + excerpt.Line(text, maxText)}
		}
	}
	other := func(name string) bool { return u.record == nil || u.record.object.Name != name }
	switch {
	case u.startedBy != "" && (u.record == nil || !u.record.live()):
		return refusal{v1alpha1.RolloutWaitsForMaintenance, "Another rollout has these nodes under maintenance."}
	case slices.ContainsFunc(u.holders, other) || u.admitted != nil:
		return refusal{v1alpha1.RolloutWaitsForMaintenance, "Other NodeMaintenances keep these nodes cordoned."}
	case !u.ready:
		return refusal{v1alpha1.RolloutWaitsForReady, "These nodes are not Ready."}
	case b.replaces() && !b.MachineKinds.mayOwn(u.Node):
		return refusal{v1alpha1.RolloutNodeNoMachine, "These nodes name no " + b.MachineKinds.words() + " that owns their machine."}
	}
	return refusal{}
}

// refusalByOrder returns why a node does not start before others.
func (b *budget) refusalByOrder(u *unit) refusal {
	policy := b.object.Spec.ControlPlane
	switch {
	case u.controlPlane && policy == v1alpha1.ControlPlaneLast && b.unfinished[false] > 0:
		return refusal{v1alpha1.RolloutWaitsForOtherNodes, "Control plane nodes start after the other nodes."}
	case !u.controlPlane && policy == v1alpha1.ControlPlaneFirst && b.unfinished[true] > 0:
		return refusal{v1alpha1.RolloutWaitsForControlPlane, "The control plane nodes start before the other nodes."}
	case !u.controlPlane:
		return refusal{}
	}
	for _, other := range b.nodes {
		if other.controlPlane && other != u.node && other.unavailable() {
			return refusal{v1alpha1.RolloutWaitsForControlPlane, fmt.Sprintf("Control plane node %s is unavailable.", other.Name)}
		}
	}
	return refusal{}
}

// refusalByBudget returns why a node does not start beside those that are unavailable.
func (b *budget) refusalByBudget(u *unit) refusal {
	if refused := b.limit.refusal(u.node); refused.reason != "" {
		return refused
	}
	if b.working >= maxStarted {
		return refusal{v1alpha1.RolloutWaitsForUnavailable, fmt.Sprintf("%d nodes are under maintenance, the most at the same time.", maxStarted)}
	}
	return u.refusalByNodeBudgets()
}

// attempt returns the next attempt of a node.
func (r *rollout) attempt(u *unit) Attempt {
	next := Attempt{UID: string(r.object.UID), NodeUID: string(u.UID), Target: r.target, Attempt: 1, Try: 1, Job: handover.Job{CronJob: jobOf(&r.object.Spec)}}
	if u.record != nil {
		next.Attempt = u.record.Attempt.Attempt + 1
		if u.retry {
			next.Try = u.record.Try + 1
		}
	}
	return next
}

// begin starts a node.
func (b *budget) begin(u *unit) {
	attempt := b.attempt(u)
	var deadline time.Time
	if b.spec.drainTimeout > 0 {
		deadline = b.Now.Add(b.spec.drainTimeout)
	}
	m := attempt.create(b.object, u.Node, earlier(deadline, b.open.Until))
	b.starts = append(b.starts, m)
	u.startedBy, u.startedAs = b.object.Name, m.Name
	u.state, u.reason, u.message = working, v1alpha1.RolloutNodeStarting, "Its NodeMaintenance is being created."
	u.record = &record{Attempt: attempt, object: m, node: u.Name}
	if u.counts() {
		b.add(u.node)
	}
	u.countInNodeBudgets()
	b.working++
	b.canaryLeft--
}
