package maintenance

import (
	"cmp"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/internal/core/event"
)

// maxToldDeletions is how many of the pods that are deleted in one decision have an event
// of their own. Their nodes tell how many there are.
const maxToldDeletions = 100

// Deletion deletes a pod past its disruption budgets, because a deadline has come.
type Deletion struct {
	// Pod is the pod as it was observed. It may be terminating with a longer grace period.
	Pod *corev1.Pod
	// GracePeriodSeconds is what it has left, at least 1.
	GracePeriodSeconds int64
	// Maintenance is the name of the NodeMaintenance whose deadline it is. It is read from
	// the API server before the first pod is deleted: a deadline that somebody has put off
	// deletes nothing.
	Maintenance string
	// Events become true with the deletion.
	Events []event.Event
}

// doom is a pod that is deleted now.
type doom struct {
	maintenance *maintenance
	turn        turn
}

// turn is a place in the order of deletions: that of the drain plan, of the drain rules,
// and then of priorities.
type turn struct {
	entry, order int
	priority     int32
}

func (a turn) compare(b turn) int {
	return cmp.Or(cmp.Compare(a.entry, b.entry), cmp.Compare(a.order, b.order), cmp.Compare(a.priority, b.priority))
}

// turnOf is when it is the turn of a pod in a maintenance.
func (m *maintenance) turnOf(p *pod) turn {
	t := turn{entry: m.plan.First(p.Subject, m.plan.Len()), order: int(p.treatment.Order)}
	if priority := p.object.Spec.Priority; priority != nil {
		t.priority = *priority
	}
	return t
}

// doomed finds out which pods of a node are deleted for deadlines, by their places. It is
// the lowest turn with pods left, and each pod that would not have its grace period
// otherwise: who is stuck holds up the others no longer than that. Where several
// deadlines concern a pod, the earliest counts.
func (t *targeted) doomed(o *outcome) map[int]doom {
	if !o.object.Spec.Unschedulable {
		// What is deleted might come back.
		return nil
	}
	doomed := map[int]doom{}
	for _, one := range o.drains {
		if one.counted() > 0 && t.deletesOn(o.node, one.maintenance) {
			t.doom(o, one.maintenance, doomed)
		}
	}
	return doomed
}

// doom adds the pods that are deleted for the deadline of one maintenance.
func (t *targeted) doom(o *outcome, m *maintenance, doomed map[int]doom) {
	now := o.lowestTurn(m)
	for i := range o.pods {
		p := &o.pods[i]
		if !o.deletable(p, m) {
			continue
		}
		its, latest := m.turnOf(p), m.deadline.latest(p)
		if !o.covered[i] || its != now && t.Now.Before(latest) {
			o.wake(t.Now, latest)
			continue
		}
		if known, found := doomed[i]; !found || m.deadline.time.Before(known.maintenance.deadline.time) {
			doomed[i] = doom{maintenance: m, turn: its}
		}
	}
}

// lowestTurn is the lowest of the pods that a maintenance waits for.
func (n *node) lowestTurn(m *maintenance) turn {
	lowest := turn{entry: math.MaxInt}
	for i := range n.pods {
		if p := &n.pods[i]; m.counts(p) {
			if its := m.turnOf(p); its.compare(lowest) < 0 {
				lowest = its
			}
		}
	}
	return lowest
}

// awaitDeadlines has the node be decided again when a deadline comes.
func (t *targeted) awaitDeadlines(o *outcome) {
	for _, one := range o.drains {
		if d := one.maintenance.deadline; d != nil {
			o.wake(t.Now, d.begin)
			o.wake(t.Now, d.time)
		}
	}
}

// deletions are the requests to the API server, in the order of their turns. A pod that
// is terminating is deleted again only to end in time.
func (c *conclusion) deletions(o *outcome) []Deletion {
	places := make([]int, 0, len(o.doomed))
	for i, d := range o.doomed {
		if c.overdue(o.pods[i].object, d.maintenance.deadline) {
			places = append(places, i)
		}
	}
	slices.SortFunc(places, func(a, b int) int {
		return cmp.Or(o.doomed[a].turn.compare(o.doomed[b].turn), comparePods(o.pods[a].object, o.pods[b].object))
	})
	deletions := make([]Deletion, 0, len(places))
	for _, i := range places {
		m, object := o.doomed[i].maintenance, o.pods[i].object
		d := Deletion{Pod: object, GracePeriodSeconds: c.graceLeft(object, m.deadline), Maintenance: m.name()}
		if c.told < maxToldDeletions {
			c.told++
			d.Events = []event.Event{event.DeletedPastDeadline(object, event.LatePod{
				Maintenance: m.name(), Deadline: m.deadline.time, GracePeriodSeconds: d.GracePeriodSeconds,
			})}
		}
		deletions = append(deletions, d)
	}
	return deletions
}

// worthShortening is by how much a grace period is shortened at least, so that a pod is
// not deleted once a second where clocks differ by less than is noticed.
const worthShortening = 5

// overdue returns true if the pod does not end before the deadline by itself.
func (c *conclusion) overdue(object *corev1.Pod, d *deadline) bool {
	ends, period := object.DeletionTimestamp, object.DeletionGracePeriodSeconds
	if ends == nil {
		return true
	}
	if period == nil || !ends.After(d.time) {
		return false
	}
	left := c.graceLeft(object, d)
	return *period-left >= worthShortening || left == 1 && *period > 1
}

// graceLeft is how many seconds a pod has to end: its own, as far as the deadline is away,
// and never none, which would free its name while it may still run.
func (c *conclusion) graceLeft(object *corev1.Pod, d *deadline) int64 {
	left := int64(d.time.Sub(c.Now)/time.Second) - int64(deadlineSlack/time.Second)
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
