// Package deadline decides what spec.deadline of a maintenance has come to: how far it takes
// the drain plan on a node, which pods are deleted past their budgets, with which grace
// period, and what the condition PastDeadline says.
//
// A deadline that had passed before the drain began, or that would have come by a clock that
// is skewed, deletes nothing.
package deadline

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const (
	// leastDeleteBefore and mostDeleteBefore are what the API allows for
	// Deadline.DeleteBeforeSeconds, usualDeleteBefore is its default.
	leastDeleteBefore, mostDeleteBefore, usualDeleteBefore = 3, 86400, 60
	// slack is how long before a deadline the last grace periods end: a kubelet
	// needs a moment to say that a pod is gone.
	slack = 2 * time.Second
)

// Deadline is spec.deadline of a maintenance in Drain.
type Deadline struct {
	// Time is when the nodes are to be empty, Begin when the first pod is deleted for
	// that; equal if nothing is deleted.
	Time, Begin time.Time
	Deletes     bool
}

// Read reads spec.deadline; nil if there is none. A time that nobody meant would delete pods.
// The error names the field at fault.
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
		return nil, fmt.Errorf("spec.deadline.onDeadline: must be Wait or Delete, is %q", spec.OnDeadline)
	}
	return d, nil
}

// State is how a maintenance stands to its deadline.
type State int

const (
	// None is that there is none.
	None State = iota
	// Ahead is that it has not come.
	Ahead
	// TooEarly is that it had passed before the drain began: then nobody meant to delete
	// everything at once.
	TooEarly
	// Unknown is that it would have come, by a clock that is skewed.
	Unknown
	// Came is that what is left is deleted, or late.
	Came
)

// State is how a maintenance whose drain began at a time, zero is now, stands to its deadline.
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

// Pod is a pod that the maintenance waits for on a node, as far as its deadline is concerned.
type Pod struct {
	Object *corev1.Pod
	// Index is its place among the pods of the node.
	Index int
	// Entry is the first entry of the drain plan that selects it, Order that of drain rules.
	Entry, Order int
	// Deletable is true if it may be deleted, but for when it was made.
	Deletable bool
	// Covered is true if the target of the node covers it.
	Covered bool
}

// Deletable returns true if the deadline may delete a pod: one that was there at that time.
func (d *Deadline) Deletable(p *Pod) bool {
	return p.Deletable && !p.Object.CreationTimestamp.After(d.Time)
}

// latest is when a pod has to be deleted at the latest for its own grace period to end
// before the deadline.
func (d *Deadline) latest(p *Pod) time.Time { return d.Time.Add(-slack - graceOf(p.Object)) }

// Reach is the last entry of a drain plan that a deadline which has come takes a node to.
// Other nodes are not waited for any more: the plan has come to the first entry with a pod
// that is left, and to those of the pods that would not have their grace period otherwise.
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
