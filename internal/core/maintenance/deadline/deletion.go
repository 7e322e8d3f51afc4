package deadline

import (
	"cmp"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Rank orders deletions by the drain plan, then by drain rules, then by priority.
type Rank struct {
	entry, order int
	priority     int32
}

// Compare puts the lowest rank first.
func (r Rank) Compare(other Rank) int {
	return cmp.Or(cmp.Compare(r.entry, other.entry), cmp.Compare(r.order, other.order), cmp.Compare(r.priority, other.priority))
}

func rankOf(p *Pod) Rank {
	return Rank{entry: p.Entry, order: p.Order, priority: podclass.Priority(p.Object)}
}

// Due returns, by index, the pods of a node that are deleted now for a deadline that has come,
// and when others are; zero is not by time alone. These are the pods of the lowest rank, and each
// pod that would not have its grace period otherwise, so that a stuck pod does not cost the others
// theirs.
func (d *Deadline) Due(pods []Pod, now time.Time) (due map[int]Rank, next time.Time) {
	lowest := Rank{entry: math.MaxInt}
	for i := range pods {
		if rank := rankOf(&pods[i]); rank.Compare(lowest) < 0 {
			lowest = rank
		}
	}
	due = map[int]Rank{}
	for i := range pods {
		p := &pods[i]
		if !d.Deletable(p) {
			continue
		}
		rank, latest := rankOf(p), d.latest(p)
		switch waits := !p.Covered || rank != lowest && now.Before(latest); {
		case !waits:
			due[p.Index] = rank
		case latest.After(now) && (next.IsZero() || latest.Before(next)):
			next = latest
		}
	}
	return due, next
}

// worthShortening is the least reduction in seconds, so that clock skew causes no repeated
// deletions.
const worthShortening = 5

// Overdue returns true if the pod has to be deleted to end before the deadline. A terminating one
// is deleted again only to end in time.
func (d *Deadline) Overdue(object *corev1.Pod, now time.Time) bool {
	ends, period := object.DeletionTimestamp, object.DeletionGracePeriodSeconds
	if ends == nil {
		return true
	}
	if period == nil || !ends.After(d.Time) {
		return false
	}
	left := d.GraceLeft(object, now)
	return *period-left >= worthShortening || left == 1 && *period > 1
}

// GraceLeft returns the grace period in seconds until the deadline, at least 1.
func (d *Deadline) GraceLeft(object *corev1.Pod, now time.Time) int64 {
	left := int64(d.Time.Sub(now)/time.Second) - int64(slack/time.Second)
	return max(1, min(int64(graceOf(object)/time.Second), left))
}

func graceOf(object *corev1.Pod) time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if own := object.Spec.TerminationGracePeriodSeconds; own != nil {
		seconds = *own
	}
	return time.Duration(min(max(seconds, 0), mostDeleteBefore)) * time.Second
}
