package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// Bounds of the lists of a status, as in the API.
const maxFailed, maxWaiting, maxWaitingNodes = 20, 20, 5

// conclude returns what to do for a rollout.
func (r *rollout) conclude() RolloutDecision {
	status := r.status()
	has := slices.Contains(r.object.Finalizers, v1alpha1.RolloutFinalizer)
	deleting := r.object.DeletionTimestamp != nil
	d := RolloutDecision{
		Rollout: r.object, Status: status, Starts: r.starts, Budgets: sets.List(r.counted),
		Changes: sorted(r.changes, func(c Change) string { return c.Before.Name }),
		Jobs:    r.jobs, StopJobs: r.stopJobs,
		Replacements:    r.replacements,
		AddFinalizer:    !has && !deleting && len(r.starts) > 0,
		RemoveFinalizer: has && deleting && len(r.records[string(r.object.UID)]) == 0 && len(status.Working) == 0,
	}
	d.Events = r.events(&status)
	return d
}

// status returns the new status.
func (r *rollout) status() v1alpha1.NodeRolloutStatus {
	before := &r.object.Status
	if r.final {
		return *before.DeepCopy()
	}
	status := v1alpha1.NodeRolloutStatus{
		ObservedGeneration: r.object.Generation, CompletedGeneration: before.CompletedGeneration,
		NodeCount: int32(len(r.units)), Conditions: slices.Clone(before.Conditions),
	}
	for state, count := range map[state]*int32{
		done: &status.DoneCount, working: &status.WorkingCount, waiting: &status.WaitingCount, failed: &status.FailedCount, skipped: &status.SkippedCount,
	} {
		*count = int32(r.count(state))
	}
	for _, u := range r.units {
		switch {
		case u.state == working:
			status.Working = append(status.Working, u.report())
		case u.state == failed && len(status.Failed) < maxFailed:
			status.Failed = append(status.Failed, u.report())
		}
	}
	status.Waiting = r.waits()
	r.setConditions(&status)
	status.EstimatedCompletionTime = r.estimate(&status)
	status.Summary = summary(&status)
	return status
}

func (u *unit) report() v1alpha1.RolloutNode {
	node := v1alpha1.RolloutNode{Name: u.Name, Reason: u.reason, Message: u.message}
	if u.record != nil {
		node.NodeMaintenanceName, node.AttemptCount = u.record.object.Name, u.record.Attempt.Attempt
		return node
	}
	for _, entry := range u.rollout.object.Status.Working {
		if entry.Name == u.Name {
			node.NodeMaintenanceName, node.AttemptCount = entry.NodeMaintenanceName, entry.AttemptCount
		}
	}
	return node
}

// waits groups the waiting nodes by reason and NodeBudget, the largest group first.
func (r *rollout) waits() []v1alpha1.RolloutWait {
	var groups []v1alpha1.RolloutWait
	at := map[string]int{}
	for _, u := range r.candidates() {
		key := u.reason + u.heldBy
		place, known := at[key]
		if !known {
			place = len(groups)
			at[key] = place
			groups = append(groups, v1alpha1.RolloutWait{Reason: u.reason, Message: u.message})
		}
		group := &groups[place]
		if group.NodeCount++; len(group.Nodes) < maxWaitingNodes {
			group.Nodes = append(group.Nodes, v1alpha1.NodeReference{Name: u.Name})
		}
	}
	slices.SortStableFunc(groups, func(a, b v1alpha1.RolloutWait) int {
		return cmp.Or(cmp.Compare(b.NodeCount, a.NodeCount), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Message, b.Message))
	})
	return groups[:min(len(groups), maxWaiting)]
}

// setConditions sets the conditions. Complete is permanent for a generation.
func (r *rollout) setConditions(status *v1alpha1.NodeRolloutStatus) {
	degraded := metav1.Condition{
		Type: v1alpha1.ConditionRolloutDegraded, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRolloutHealthy, Message: "No node has failed.",
	}
	if status.FailedCount > 0 {
		degraded.Status, degraded.Reason = metav1.ConditionTrue, v1alpha1.ReasonRolloutNodesFailed
		degraded.Message = phrase.Count(status.FailedCount, "node") + " failed."
		if limit, err := share(r.object.Spec.Failure.MaxFailures, len(r.units)); err == nil && int(status.FailedCount) >= limit {
			degraded.Reason = v1alpha1.RolloutWaitsForFailures
			degraded.Message += " No more nodes start."
		}
	}
	r.set(status, degraded)
	complete := metav1.Condition{
		Type: v1alpha1.ConditionRolloutComplete, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRolloutInProgress, Message: "Nodes are under maintenance or wait.",
	}
	switch left := status.WorkingCount + status.WaitingCount; {
	case r.spec == nil:
		complete.Reason, complete.Message = v1alpha1.ReasonInvalidSpec, r.invalid.Error()
	case r.object.Spec.State == v1alpha1.RolloutAborted && !r.drains():
		complete.Status, complete.Reason, complete.Message = metav1.ConditionTrue, v1alpha1.ReasonRolloutAborted, "The rollout was aborted."
	case len(r.units) == 0 && !r.complete():
		complete.Reason, complete.Message = v1alpha1.ReasonNoNodes, "spec.nodeSelector matches no node that the rollout may maintain."
	case left > 0 && r.complete():
		return // A node that had failed returns.
	case left == 0 && r.spec.continuous && status.FailedCount > 0:
		complete.Reason, complete.Message = v1alpha1.ReasonRolloutNodesFailed, phrase.Count(status.FailedCount, "node")+" failed."
	case left == 0 && r.spec.continuous:
		complete.Reason, complete.Message = v1alpha1.ReasonRolloutIdle, "No node needs maintenance now."
	case left == 0 && !r.Live && !r.complete():
		r.needsLive = true
	case left == 0:
		complete.Status, complete.Reason, complete.Message = metav1.ConditionTrue, v1alpha1.ReasonRolloutComplete, "Every node is done or skipped."
		if status.FailedCount > 0 {
			complete.Reason, complete.Message = v1alpha1.ReasonRolloutNodesFailed, phrase.Count(status.FailedCount, "node")+" failed."
		}
		status.CompletedGeneration = r.object.Generation
	}
	r.set(status, complete)
}

func (r *rollout) set(status *v1alpha1.NodeRolloutStatus, condition metav1.Condition) {
	condition.ObservedGeneration, condition.LastTransitionTime = r.object.Generation, metav1.NewTime(r.Now).Rfc3339Copy()
	meta.SetStatusCondition(&status.Conditions, condition)
}

// drains returns true while nodes of an aborted rollout are not given back.
func (r *rollout) drains() bool {
	return slices.ContainsFunc(r.units, func(u *unit) bool { return u.state == working && !IsDrained(u.reason) })
}

// IsDrained returns true for the reasons of nodes under maintenance that are drained.
func IsDrained(reason string) bool {
	return reason == v1alpha1.RolloutNodeDrained || reason == v1alpha1.RolloutNodeJobRunning || reason == v1alpha1.RolloutNodeReplacing
}

// durations returns how long the maintenances of nodes have taken that are done, in order.
func (r *rollout) durations() []time.Duration {
	var all []time.Duration
	for _, u := range r.units {
		if u.state == done && u.record != nil && !u.doneTime.IsZero() {
			all = append(all, max(0, u.doneTime.Sub(u.record.object.CreationTimestamp.Time)))
		}
	}
	slices.Sort(all)
	return all
}

// percentile returns how long a node takes; usual before any is done.
func (r *rollout) percentile(percent int, usual time.Duration) time.Duration {
	all := r.durations()
	if len(all) == 0 {
		return usual
	}
	return all[(len(all)*percent+99)/100-1]
}

// estimate returns when the rollout is complete, if nodes take as long as before; nil if nothing can
// start. It is rounded up to a twentieth of the time that is left, from a second to a minute, and
// stays until it is wrong by a tenth of that time.
func (r *rollout) estimate(status *v1alpha1.NodeRolloutStatus) *metav1.Time {
	left := status.WorkingCount + status.WaitingCount
	if left == 0 || r.spec == nil || r.ending() || r.held && status.WorkingCount == 0 || status.WaitingCount > 0 && r.refusal().reason != "" {
		return nil
	}
	each := r.percentile(50, 0)
	if each == 0 {
		return nil
	}
	limit, _ := share(r.object.Spec.MaxUnavailable, len(r.units))
	rounds := (int(left) + limit - 1) / limit
	soak := time.Duration(r.object.Spec.SoakSeconds) * time.Second
	remaining := time.Duration(rounds) * (each + soak)
	step := min(max(remaining/20, time.Second), time.Minute).Truncate(time.Second)
	at := r.Now.Add(remaining).Truncate(step).Add(step)
	if known := r.object.Status.EstimatedCompletionTime; known != nil && known.Sub(at).Abs() <= max(step, remaining/10) {
		return known.DeepCopy()
	}
	return new(metav1.NewTime(at.UTC()))
}

// summary returns the state of a rollout in one line.
func summary(status *v1alpha1.NodeRolloutStatus) string {
	parts := []string{fmt.Sprintf("%d of %s done", status.DoneCount, phrase.Count(status.NodeCount, "node"))}
	for _, one := range []struct {
		count int32
		word  string
	}{{status.WorkingCount, "under maintenance"}, {status.FailedCount, "failed"}, {status.SkippedCount, "skipped"}} {
		if one.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", one.count, one.word))
		}
	}
	text := strings.Join(parts, ", ")
	if len(status.Waiting) == 0 {
		return text
	}
	return fmt.Sprintf("%s; %d waiting: %s", text, status.WaitingCount, status.Waiting[0].Message)
}

// events returns the events of what the new status says for the first time.
func (r *rollout) events(status *v1alpha1.NodeRolloutStatus) (events []event.Event) {
	for _, m := range r.starts {
		events = append(events, event.RolloutNodeStarted(r.object, onlyNode(m.Spec.NodeSelector), m.Name))
	}
	for _, node := range status.Failed {
		known := func(other v1alpha1.RolloutNode) bool { return other.Name == node.Name && other.Reason == node.Reason }
		if !slices.ContainsFunc(r.object.Status.Failed, known) {
			events = append(events, event.RolloutNodeFailed(r.object, node.Name, node.Message))
		}
	}
	if became(&r.object.Status, status, v1alpha1.ConditionRolloutComplete) {
		events = append(events, event.RolloutComplete(r.object, status.Summary))
	}
	return events
}

func became(before, after *v1alpha1.NodeRolloutStatus, condition string) bool {
	return !meta.IsStatusConditionTrue(before.Conditions, condition) && meta.IsStatusConditionTrue(after.Conditions, condition)
}
