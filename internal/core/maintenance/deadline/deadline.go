// Package deadline decides what spec.deadline of a maintenance has come to: how far it takes
// the drain plan on a node, which pods are deleted past their budgets, with which grace
// period, and what the condition PastDeadline says. A deadline that would have come by a skewed
// clock does nothing, and one that had passed before the drain began deletes nothing.
package deadline

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const (
	// leastDeleteBefore and mostDeleteBefore bound Deadline.DeleteBeforeSeconds,
	// usualDeleteBefore is its default.
	leastDeleteBefore, mostDeleteBefore, usualDeleteBefore = 3, 86400, 60
	// slack is the time for kubelets to report the end of the last pods.
	slack = 2 * time.Second
)

// Deadline is spec.deadline of a maintenance in Drain.
type Deadline struct {
	// Time is the deadline, Begin the first deletion; equal if nothing is deleted.
	Time, Begin time.Time
	// Deletes is true if pods are deleted, GivesBack if nodes that are not drained are given back.
	Deletes, GivesBack bool
}

// Read reads spec.deadline; nil if there is none. The error names the field at fault.
func Read(spec *v1alpha1.Deadline) (*Deadline, error) {
	if spec == nil {
		return nil, nil
	}
	if spec.Time.IsZero() {
		return nil, errors.New("spec.deadline.time: is required")
	}
	d := &Deadline{Time: spec.Time.Time, Begin: spec.Time.Time}
	switch spec.OnDeadline {
	case v1alpha1.DeadlineWait, "":
	case v1alpha1.DeadlineGiveBack:
		d.GivesBack = true
	case v1alpha1.DeadlineDelete:
		seconds := spec.DeleteBeforeSeconds
		if seconds == 0 {
			seconds = usualDeleteBefore
		}
		if seconds < leastDeleteBefore || seconds > mostDeleteBefore {
			return nil, fmt.Errorf("spec.deadline.deleteBeforeSeconds: must be from %d to %d, is %d", leastDeleteBefore, mostDeleteBefore, seconds)
		}
		d.Deletes, d.Begin = true, d.Time.Add(-time.Duration(seconds)*time.Second)
	default:
		return nil, fmt.Errorf("spec.deadline.onDeadline: must be Wait, Delete or GiveBack, is %q", spec.OnDeadline)
	}
	return d, nil
}

// State is the state of a deadline.
type State int

// The states of a deadline.
const (
	// None means that the maintenance has no deadline.
	None State = iota
	Ahead
	// TooEarly means that it had passed before the drain began, so nothing is deleted.
	TooEarly
	// Unknown means that it has come, by a clock that is skewed.
	Unknown
	// Came means that the pods that are left are deleted or late, or their nodes given back.
	Came
)

// State returns the state of the deadline of a drain that began at a time; zero is now.
func (d *Deadline) State(now, began time.Time, clockSkewed bool) State {
	if began.IsZero() {
		began = now
	}
	switch {
	case d == nil:
		return None
	case now.Before(d.Begin):
		return Ahead
	case d.Deletes && began.After(d.Time):
		return TooEarly
	case clockSkewed:
		return Unknown
	default:
		return Came
	}
}

// Pod is a pod that the maintenance waits for on a node.
type Pod struct {
	Object *corev1.Pod
	Index  int // among the pods of the node
	// Entry is the first entry of the drain plan that selects it, Order that of drain rules.
	Entry, Order int
	// Deletable is true if it may be deleted, apart from the time of its creation.
	Deletable bool
	Covered   bool // by the target of the node
}

// Deletable returns true if the deadline may delete a pod: one that was created before it.
func (d *Deadline) Deletable(p *Pod) bool {
	return p.Deletable && !p.Object.CreationTimestamp.After(d.Time)
}

// latest returns the last time to delete a pod so that its own grace period ends in time.
func (d *Deadline) latest(p *Pod) time.Time { return d.Time.Add(-slack - graceOf(p.Object)) }

// Reach returns the last entry of a drain plan to which a deadline that has come brings a node.
// Other nodes are no longer waited for: that is the first entry with a pod left, or those of pods
// that would not have their grace period otherwise.
func (d *Deadline) Reach(pods []Pod, now time.Time) int {
	reach := -1
	for i := range pods {
		if p := &pods[i]; reach < 0 || p.Entry < reach {
			reach = p.Entry
		}
	}
	for i := range pods {
		if p := &pods[i]; d.Deletable(p) && !now.Before(d.latest(p)) {
			reach = max(reach, p.Entry)
		}
	}
	return reach
}
