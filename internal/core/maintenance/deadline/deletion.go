package deadline

import (
	"cmp"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Turn is a place in the order of deletions: that of the drain plan, of the drain rules,
// and then of priorities.
type Turn struct {
	entry, order int
	priority     int32
}

// Compare orders turns, the lowest first.
func (t Turn) Compare(other Turn) int {
	return cmp.Or(cmp.Compare(t.entry, other.entry), cmp.Compare(t.order, other.order), cmp.Compare(t.priority, other.priority))
}

func turnOf(p *Pod) Turn {
	t := Turn{entry: p.Entry, order: p.Order}
	if priority := p.Object.Spec.Priority; priority != nil {
		t.priority = *priority
	}
	return t
}

// Due returns by their index the pods of a node that are deleted now for a deadline that has
// come, and when others are; zero is not by time alone. It is the lowest turn with pods left,
// and each pod that would not have its grace period otherwise: who is stuck holds up the
// others no longer than that.
func (d *Deadline) Due(pods []Pod, now time.Time) (due map[int]Turn, next time.Time) {
	lowest := Turn{entry: math.MaxInt}
	for i := range pods {
		if its := turnOf(&pods[i]); its.Compare(lowest) < 0 {
			lowest = its
		}
	}
	due = map[int]Turn{}
	for i := range pods {
		p := &pods[i]
		if !d.Deletable(p) {
			continue
		}
		its, latest := turnOf(p), d.latest(p)
		switch waits := !p.Covered || its != lowest && now.Before(latest); {
		case !waits:
			due[p.Index] = its
		case latest.After(now) && (next.IsZero() || latest.Before(next)):
			next = latest
		}
	}
	return due, next
}

// worthShortening is by how much a grace period is shortened at least, so that a pod is
// not deleted once a second where clocks differ by less than is noticed.
const worthShortening = 5

// Overdue returns true if the pod does not end before the deadline by itself. One that is
// terminating is deleted again only to end in time.
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

// GraceLeft is how many seconds a pod has to end: its own, as far as the deadline is away,
// and never none, which would free its name while it may still run.
func (d *Deadline) GraceLeft(object *corev1.Pod, now time.Time) int64 {
	left := int64(d.Time.Sub(now)/time.Second) - int64(slack/time.Second)
	return max(1, min(int64(graceOf(object)/time.Second), left))
}

// graceOf is the grace period of a pod.
func graceOf(object *corev1.Pod) time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if own := object.Spec.TerminationGracePeriodSeconds; own != nil {
		seconds = *own
	}
	return time.Duration(min(max(seconds, 0), mostDeleteBefore)) * time.Second
}
