package rollout

import (
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance/handover"
)

// maxText bounds a text of others in a message, in bytes.
const maxText = 200

// state is the state of a node in a rollout.
type state int

const (
	waiting state = iota
	working
	done
	failed
	skipped
)

// rollout is a rollout and the nodes that are part of it.
type rollout struct {
	*fleet
	object *v1alpha1.NodeRollout
	spec   *Spec
	// invalid is why spec is nil.
	invalid error
	target  string // a hash
	// final is true if its status stays as it is.
	final    bool
	units    []*unit
	changes  []Change
	starts   []*v1alpha1.NodeMaintenance
	jobs     []JobStart
	stopJobs []*batchv1.Job
	// counted are the budgets that select a node of starts.
	counted sets.Set[string]
	// replacements delete machines.
	replacements []Replacement
	// wakeTime is the time when time alone changes the decision; zero is never.
	wakeTime time.Time
	// needsLive is true if the rollout seems to be complete, by nodes of a cache.
	needsLive bool
	// questions have no answer; held is true if they, or an answer, keep nodes from starting.
	questions []Question
	held      bool
}

// unit is a node in a rollout.
type unit struct {
	*node
	rollout *rollout
	// record is that of the latest attempt; nil if there is none.
	record          *record
	state           state
	reason, message string
	// heldBy is the NodeBudget that it waits for, if any.
	heldBy string
	// retry is true if the last attempt did not drain in time, and the next one follows.
	retry bool
	// doneTime is the time when its maintenance was done; zero if it needed none.
	doneTime time.Time
}

func (r *rollout) wake(at time.Time) {
	if at.After(r.Now) {
		r.wakeTime = earlier(r.wakeTime, at)
	}
}

// ending returns true if the rollout ends before it is complete.
func (r *rollout) ending() bool {
	return r.object.Spec.State == v1alpha1.RolloutAborted || r.object.DeletionTimestamp != nil
}

// complete returns true if this generation was complete before.
func (r *rollout) complete() bool {
	return r.object.Status.CompletedGeneration == r.object.Generation && r.object.Generation > 0
}

// classify determines the state of each node of a rollout. Nodes under maintenance stay part of it,
// even if they are no longer selected.
func (f *fleet) classify(object *v1alpha1.NodeRollout) *rollout {
	r := &rollout{fleet: f, object: object, counted: sets.New[string](), target: targetOf(&object.Spec)}
	r.spec, r.invalid = Read(&object.Spec)
	records := f.records[string(object.UID)]
	if r.final = r.isFinal(records); r.final {
		r.forgetOthers(records)
		return r
	}
	records = r.classifyGone(records)
	unread := f.unread(object)
	for _, n := range f.nodes {
		u := &unit{node: n, rollout: r, record: r.latest(n, records[n.Name])}
		selected := r.spec != nil && r.spec.Selects(n.Node, object.Spec.ControlPlane)
		live := u.record != nil && u.record.live()
		switch {
		case !live && r.isReplacement(n.Node):
			r.judgeJoined(u)
			continue
		case unread[n.Name] != "" && !live:
			u.record = nil // of an earlier attempt
			u.state, u.reason, u.message = working, v1alpha1.RolloutNodeStarting, "Whether its NodeMaintenance exists is unknown, as it could not be read."
			n.mayBeStarted(object.Name, unread[n.Name])
		case selected || live:
			r.judge(u)
		default:
			continue
		}
		if !r.complete() || u.state != waiting {
			r.units = append(r.units, u)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(records)) {
		if f.byName[name] == nil {
			r.forget(records[name])
		}
	}
	return r
}

// isFinal returns true if nothing that nodes report changes the status of a complete rollout: it has
// become history, and costs no look at each node.
func (r *rollout) isFinal(records map[string][]*record) bool {
	status := &r.object.Status
	if !r.complete() || status.ObservedGeneration != r.object.Generation || r.object.DeletionTimestamp != nil || status.FailedCount+status.WorkingCount > 0 {
		return false
	}
	for _, of := range records {
		if slices.ContainsFunc(of, (*record).live) {
			return false
		}
	}
	return true
}

// forgetOthers ends the records of nodes that are gone, and those that are replaced.
func (r *rollout) forgetOthers(records map[string][]*record) {
	for _, name := range slices.Sorted(maps.Keys(records)) {
		if n := r.byName[name]; n != nil {
			r.latest(n, records[name])
		} else {
			r.forget(records[name])
		}
	}
}

// unread returns the NodeMaintenances that could not be read, by node.
func (f *fleet) unread(object *v1alpha1.NodeRollout) map[string]string {
	unread := map[string]string{}
	for _, entry := range object.Status.Working {
		if f.Unknown[entry.NodeMaintenanceName] {
			unread[entry.Name] = entry.NodeMaintenanceName
		}
	}
	return unread
}

// latest returns the record of the latest attempt for a node, and ends the others: those that it
// replaces, and those of a former node of this name.
func (r *rollout) latest(n *node, records []*record) *record {
	var latest *record
	var others []*record
	for _, one := range records {
		if latest == nil && one.NodeUID == string(n.UID) {
			latest = one
			continue
		}
		others = append(others, one)
	}
	if r.object.DeletionTimestamp != nil {
		others = records
	}
	r.forget(others)
	return latest
}

// forget ends records that count no more. Of a rollout that is being deleted, nodes that are drained
// stay so.
func (r *rollout) forget(records []*record) {
	for _, one := range records {
		_, drained := one.drained()
		switch {
		case !one.live(), drained && r.object.DeletionTimestamp != nil:
			r.changes = append(r.changes, one.release())
		case !one.ends():
			r.changes = append(r.changes, one.complete())
		}
	}
}

// judge determines the state of a node from the record of its latest attempt.
func (r *rollout) judge(u *unit) {
	last := u.record
	switch {
	case last != nil && last.live():
		r.judgeLive(u)
	case r.spec == nil:
		u.state = waiting
	case r.spec.byName[u.Name].Skip:
		u.state = skipped
	case !r.spec.needs(u.Node):
		u.state, u.doneTime = done, timeOfSuccess(last)
	case last == nil || last.Target != r.target:
		u.state = waiting
	default:
		r.judgeEnded(u)
	}
}

func timeOfSuccess(last *record) time.Time {
	if last == nil {
		return time.Time{}
	}
	if succeeded := last.succeeded(); succeeded.Status == metav1.ConditionTrue {
		return succeeded.LastTransitionTime.Time
	}
	return time.Time{}
}

// judgeLive determines the state of a node that is not given back.
func (r *rollout) judgeLive(u *unit) {
	last := u.record
	if last.ends() {
		u.state, u.reason, u.message = working, v1alpha1.RolloutNodeReturning, "The node is being given back."
		return
	}
	if last.Target != r.target && r.spec != nil && !r.ending() {
		r.changes = append(r.changes, last.retarget(r.object, r.target))
	}
	since, drained := last.drained()
	switch {
	case !drained:
		u.state, u.reason = working, v1alpha1.RolloutNodeDraining
		u.message = "Its pods are leaving."
		if blocked := meta.FindStatusCondition(last.object.Status.Conditions, v1alpha1.ConditionBlocked); blocked != nil && blocked.Status == metav1.ConditionTrue {
			u.message = excerpt.Line(blocked.Message, maxText)
		}
		if r.object.Spec.State == v1alpha1.RolloutAborted && r.object.DeletionTimestamp == nil {
			r.changes = append(r.changes, last.complete())
		}
	case r.object.Spec.After == v1alpha1.AfterStayDrained:
		u.state, u.doneTime = done, since
	case r.replaces():
		r.judgeReplaced(u, since)
	default:
		r.judgeWork(u, since)
	}
}

// judgeWork determines the state of a drained node.
func (r *rollout) judgeWork(u *unit, since time.Time) {
	u.state, u.reason = working, v1alpha1.RolloutNodeDrained
	u.message = "The node is drained and waits for the work on it."
	if !completesItself(&r.object.Spec) {
		u.message = "The node is drained. When its work is done: " + command.Of("kubectl ebbtide complete %s", u.record.object.Name)
	}
	if r.spec == nil || r.judgeJob(u) || !r.timedOut(since) {
		return
	}
	r.fail(u, v1alpha1.RolloutNodeWorkTimedOut, fmt.Sprintf("The node did not return within %s after its drain, and stays drained.", r.spec.workTimeout))
}

// timedOut returns true if a node that is drained since then has not returned in time.
func (r *rollout) timedOut(since time.Time) bool {
	if r.spec == nil || r.spec.workTimeout == 0 || r.ClockSkewed {
		return false
	}
	until := since.Add(r.spec.workTimeout)
	r.wake(until)
	return !r.Now.Before(until)
}

// judgeEnded determines the state of a node that was given back and needs maintenance.
func (r *rollout) judgeEnded(u *unit) {
	last, succeeded := u.record, u.record.succeeded()
	switch {
	case succeeded.Status == metav1.ConditionTrue && r.replaces():
		r.fail(u, v1alpha1.RolloutNodeCancelled, "Its NodeMaintenance was completed before the node was replaced.")
	case succeeded.Status == metav1.ConditionTrue && (!completesItself(&r.object.Spec) || last.returned()):
		r.judgeReturned(u, succeeded.LastTransitionTime.Time)
	case succeeded.Status == metav1.ConditionTrue:
		r.fail(u, v1alpha1.RolloutNodeTargetNotMet, "Its NodeMaintenance was completed before the node met the target.")
	case succeeded.Reason == v1alpha1.ReasonDeadlinePassed && last.Try <= r.spec.retryCount:
		u.state, u.retry = waiting, true
	case succeeded.Reason == v1alpha1.ReasonDeadlinePassed:
		r.fail(u, v1alpha1.RolloutNodeDrainTimedOut, "The node did not drain in time and was given back.")
	case r.object.Spec.State == v1alpha1.RolloutAborted:
		u.state = waiting
	case last.object.DeletionTimestamp != nil:
		r.fail(u, v1alpha1.RolloutNodeDeleted, "Its NodeMaintenance was deleted before the node was done.")
	default:
		r.fail(u, v1alpha1.RolloutNodeCancelled, "Its NodeMaintenance was completed before the node was drained.")
	}
}

// judgeReturned determines the state of a node whose maintenance was done at a time. It may need
// another one, or have got nothing from this one: it shows that after the handover, and after its boot.
func (r *rollout) judgeReturned(u *unit, at time.Time) {
	asks := r.spec.asks(u.Node)
	handedOver, _, known := handover.Since(u.record.object, u.Name)
	booted := handover.BootTime(u.record.object, u.Name)
	switch {
	case r.spec.continuous && (asks != nil && asks.LastTransitionTime.After(at) || asks == nil && r.spec.target != nil && !r.spec.target.Met(u.Node)):
		u.state = waiting
	case asks != nil && known && asks.LastHeartbeatTime.After(handedOver) && !asks.LastHeartbeatTime.Time.Before(booted) && !asks.LastTransitionTime.After(at):
		r.fail(u, v1alpha1.RolloutNodeStillNeeded, fmt.Sprintf("The node was maintained, and its condition %s is still True.", asks.Type))
	default:
		u.state, u.doneTime = done, at
	}
}

// fail has a node count as failed, unless a user has forgiven the attempt.
func (r *rollout) fail(u *unit, reason, message string) {
	if u.record.Attempt.Attempt <= r.spec.byName[u.Name].ForgivenAttemptCount {
		u.state = waiting
		return
	}
	u.state, u.reason = failed, reason
	u.message = message + " To try it again: " + command.Of("kubectl ebbtide rollout retry %s %s", r.object.Name, u.Name)
}
