package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/rollout"
)

// States of rollouts, beside StateComplete and StateInvalid.
const (
	StateRunning State = "running"
	StatePaused  State = "paused"
	// StateStopped: so many nodes have failed that no more start.
	StateStopped  State = "stopped"
	StateAborted  State = "aborted"
	StateDeleting State = "deleting"
)

// RolloutStatus is the printed state of a NodeRollout, as its controller reports it.
type RolloutStatus struct {
	metav1.TypeMeta `json:",inline"`
	Name            string `json:"name"`
	State           State  `json:"state"`
	// Reason is the administrator's, Summary the controller's.
	Reason       string                `json:"reason,omitempty"`
	Summary      string                `json:"summary,omitempty"`
	CreationTime metav1.Time           `json:"creationTime"`
	RequestedBy  string                `json:"requestedBy,omitempty"`
	After        v1alpha1.RolloutAfter `json:"after"`
	NodeCount    int                   `json:"nodeCount"`
	DoneCount    int                   `json:"doneCount"`
	WorkingCount int                   `json:"workingCount"`
	WaitingCount int                   `json:"waitingCount"`
	FailedCount  int                   `json:"failedCount"`
	SkippedCount int                   `json:"skippedCount"`
	// Working and Failed are sorted by name. Failed has the first 20.
	Working []RolloutNode `json:"working,omitempty"`
	Failed  []RolloutNode `json:"failed,omitempty"`
	// Waiting is sorted by size, the largest group first.
	Waiting []RolloutWait `json:"waiting,omitempty"`
	// EstimatedCompletionTime is an estimate from the nodes that are done.
	EstimatedCompletionTime *metav1.Time `json:"estimatedCompletionTime,omitempty"`
	// Outdated is true if the controller has not seen the current spec yet.
	Outdated bool `json:"outdated,omitempty"`
	// Returned is true if none of its nodes is under maintenance any more, as far as that was read.
	Returned bool     `json:"-"`
	Unread   []string `json:"unread,omitempty"`
}

// RolloutNode is a printed node of a rollout, under maintenance or failed.
type RolloutNode struct {
	Name            string `json:"name"`
	NodeMaintenance string `json:"nodeMaintenance,omitempty"`
	AttemptCount    int    `json:"attemptCount,omitempty"`
	Reason          string `json:"reason,omitempty"`
	Message         string `json:"message,omitempty"`
	// Suggestion is a command for a node that failed.
	Suggestion string `json:"suggestion,omitempty"`
}

// RolloutWait is a printed group of nodes that wait for the same reason.
type RolloutWait struct {
	Reason    string `json:"reason"`
	Message   string `json:"message,omitempty"`
	NodeCount int    `json:"nodeCount"`
	// Nodes are the first of them, in the order of their start.
	Nodes []string `json:"nodes,omitempty"`
}

// RolloutOf returns the printed state of a rollout.
func RolloutOf(r *v1alpha1.NodeRollout) RolloutStatus {
	status := &r.Status
	shown := RolloutStatus{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: "RolloutStatus"},
		Name:     r.Name, State: rolloutState(r), After: cmp.Or(r.Spec.After, v1alpha1.AfterGiveBack),
		Reason: excerpt.Line(r.Spec.Maintenance.Reason, maxWords), Summary: excerpt.Line(status.Summary, maxWords),
		CreationTime: r.CreationTimestamp, RequestedBy: excerpt.Line(r.Annotations[v1alpha1.RequestedByAnnotation], maxWords),
		NodeCount: count(status.NodeCount), DoneCount: count(status.DoneCount), WorkingCount: count(status.WorkingCount),
		WaitingCount: count(status.WaitingCount), FailedCount: count(status.FailedCount), SkippedCount: count(status.SkippedCount),
		EstimatedCompletionTime: status.EstimatedCompletionTime.DeepCopy(), Outdated: status.ObservedGeneration < r.Generation,
		Working: rolloutNodes(status.Working), Failed: rolloutNodes(status.Failed),
	}
	for i := range shown.Failed {
		shown.Failed[i].Suggestion = failureHelp(r.Name, &shown.Failed[i])
	}
	for _, group := range status.Waiting {
		wait := RolloutWait{Reason: excerpt.Line(group.Reason, maxWords), Message: excerpt.Line(group.Message, maxWords), NodeCount: count(group.NodeCount)}
		for _, node := range group.Nodes {
			wait.Nodes = append(wait.Nodes, excerpt.Line(node.Name, maxWords))
		}
		shown.Waiting = append(shown.Waiting, wait)
	}
	return shown
}

// RolloutsOf returns the printed states of rollouts, at most 200.
func RolloutsOf(rollouts []*v1alpha1.NodeRollout) (shown []RolloutStatus) {
	for _, r := range rollouts {
		shown = append(shown, RolloutOf(r))
	}
	slices.SortFunc(shown, func(a, b RolloutStatus) int {
		return cmp.Or(cmp.Compare(ones(a.Ended()), ones(b.Ended())), strings.Compare(a.Name, b.Name))
	})
	return shown[:min(len(shown), maxListed)]
}

func rolloutNodes(listed []v1alpha1.RolloutNode) (nodes []RolloutNode) {
	for i := range listed {
		one := &listed[i]
		nodes = append(nodes, RolloutNode{
			Name: excerpt.Line(one.Name, maxWords), NodeMaintenance: excerpt.Line(one.NodeMaintenanceName, maxWords), AttemptCount: count(one.AttemptCount),
			Reason: excerpt.Line(one.Reason, maxWords), Message: excerpt.Line(one.Message, maxWords),
		})
	}
	slices.SortFunc(nodes, func(a, b RolloutNode) int { return strings.Compare(a.Name, b.Name) })
	return nodes
}

// rolloutState reads the state from the spec and the conditions. Conditions of an earlier spec do not
// count.
func rolloutState(r *v1alpha1.NodeRollout) State {
	current := r.Status.ObservedGeneration >= r.Generation
	degraded := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionRolloutDegraded)
	switch {
	case r.DeletionTimestamp != nil:
		return StateDeleting
	case r.Spec.State == v1alpha1.RolloutAborted:
		return StateAborted
	case current && meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionRolloutComplete):
		return StateComplete
	case r.Spec.State == v1alpha1.RolloutPaused:
		return StatePaused
	case current && isInvalid(&r.Status):
		return StateInvalid
	case current && degraded != nil && degraded.Status == metav1.ConditionTrue && degraded.Reason == v1alpha1.RolloutWaitsForFailures:
		return StateStopped
	}
	return StateRunning
}

func isInvalid(status *v1alpha1.NodeRolloutStatus) bool {
	return slices.ContainsFunc(status.Conditions, func(c metav1.Condition) bool { return c.Reason == v1alpha1.ReasonInvalidSpec }) ||
		slices.ContainsFunc(status.Waiting, func(w v1alpha1.RolloutWait) bool { return w.Reason == v1alpha1.RolloutWaitsForValidSpec })
}

// Ended reports whether the rollout starts no more nodes unless a user changes it, and none is under
// maintenance.
func (s *RolloutStatus) Ended() bool {
	switch s.State {
	case StateComplete:
		return true
	case StateStopped, StateAborted, StateInvalid:
		return !s.Outdated && s.unfinished() == 0
	}
	return false
}

// unfinished counts the nodes under maintenance. Drained nodes of an aborted rollout stay as they are.
func (s *RolloutStatus) unfinished() (number int) {
	for i := range s.Working {
		number += ones(s.State != StateAborted || !rollout.IsDrained(s.Working[i].Reason))
	}
	return max(number, ones(s.WorkingCount > len(s.Working)))
}

// Succeeded reports whether all nodes are done, or were skipped.
func (s *RolloutStatus) Succeeded() bool { return s.State == StateComplete && s.FailedCount == 0 }

// Brief returns the progress of a rollout in one line.
func (s *RolloutStatus) Brief() string {
	if s.Summary != "" {
		return s.Summary
	}
	words := []string{fmt.Sprintf("%d of %s done", s.DoneCount, phrase.Count(s.NodeCount, "node"))}
	for _, part := range []struct {
		count int
		word  string
	}{{s.WorkingCount, "working"}, {s.FailedCount, "failed"}, {s.SkippedCount, "skipped"}, {s.WaitingCount, "waiting"}} {
		if part.count > 0 {
			words = append(words, fmt.Sprintf("%d %s", part.count, part.word))
		}
	}
	return strings.Join(words, ", ")
}

// RolloutChanges returns a line for each change of a rollout. Before is nil at first.
func RolloutChanges(before, after *RolloutStatus) (lines []string) {
	if before == nil && after.Outdated {
		return nil // Its controller has said nothing yet.
	}
	if before == nil || before.Brief() != after.Brief() || before.State != after.State {
		line := after.Name + ": " + after.Brief()
		if after.State != StateRunning {
			line = fmt.Sprintf("%s: %s, %s", after.Name, after.State, after.Brief())
		}
		lines = append(lines, line)
	}
	if before == nil {
		before = &RolloutStatus{}
	}
	lines = append(lines, newNodes(before.Working, after.Working)...)
	lines = append(lines, newNodes(before.Failed, after.Failed)...)
	if more := len(lines) - maxChanges; more > 0 {
		lines = append(lines[:maxChanges], fmt.Sprintf("%s: %s", after.Name, phrase.Count(more, "more node changed", "more nodes changed")))
	}
	return lines
}

// newNodes returns a line for each node with another reason than before.
func newNodes(before, after []RolloutNode) (lines []string) {
	known := map[string]string{}
	for i := range before {
		known[before[i].Name] = before[i].Reason
	}
	for i := range after {
		// The node starts a moment later, which is reported then.
		if n := &after[i]; known[n.Name] != n.Reason && n.Reason != v1alpha1.RolloutNodeStarting {
			lines = append(lines, n.Line())
		}
	}
	return lines
}

// Line returns the name of a node, its reason and its message.
func (n *RolloutNode) Line() string {
	if n.Reason == "" || n.Message == "" {
		return n.Name + ": " + n.text()
	}
	return fmt.Sprintf("%s (%s): %s", n.Name, n.Reason, n.Message)
}

// text returns the reason and the message of a node.
func (n *RolloutNode) text() string { return reasonAndMessage(n.Reason, n.Message) }

func reasonAndMessage(reason, message string) string {
	switch {
	case message == "":
		return reason
	case reason == "":
		return message
	}
	return reason + ": " + message
}
