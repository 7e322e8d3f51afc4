package maintenance

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/foreigndrain"
)

const (
	// leastDeleteBefore and mostDeleteBefore are what the API allows for
	// Deadline.DeleteBeforeSeconds, usualDeleteBefore is its default.
	leastDeleteBefore, mostDeleteBefore, usualDeleteBefore = 3, 86400, 60
	// deadlineSlack is how long before a deadline the last grace periods end: a kubelet
	// needs a moment to say that a pod is gone.
	deadlineSlack = 2 * time.Second
)

// deadline is spec.deadline of a maintenance in Drain.
type deadline struct {
	// time is when the nodes are to be empty, begin when the first pod is deleted for
	// that; equal if nothing is deleted.
	time, begin time.Time
	deletes     bool
}

// understandDeadline reads spec.deadline. A time that nobody meant would delete pods.
func (m *maintenance) understandDeadline() error {
	asked := m.object.Spec.Deadline
	if asked == nil {
		return nil
	}
	if asked.Time.IsZero() {
		return errors.New("spec.deadline.time: is required")
	}
	d := &deadline{time: asked.Time.Time, begin: asked.Time.Time}
	switch asked.OnDeadline {
	case v1alpha1.DeadlineWait, "":
	case v1alpha1.DeadlineDelete:
		seconds := asked.DeleteBeforeSeconds
		if seconds == 0 {
			seconds = usualDeleteBefore
		}
		if seconds < leastDeleteBefore || seconds > mostDeleteBefore {
			return fmt.Errorf("spec.deadline.deleteBeforeSeconds: must be from %d to %d, is %d", leastDeleteBefore, mostDeleteBefore, seconds)
		}
		d.deletes, d.begin = true, d.time.Add(-time.Duration(seconds)*time.Second)
	default:
		return fmt.Errorf("spec.deadline.onDeadline: must be Wait or Delete, is %q", asked.OnDeadline)
	}
	m.deadline = d
	return nil
}

// deadlineState is how a maintenance stands to its deadline.
type deadlineState int

const (
	// noDeadline is that there is none, or that the stage is not Drain.
	noDeadline deadlineState = iota
	// deadlineAhead is that it has not come, deadlineTooEarly that it had passed before the
	// drain began: then nobody meant to delete everything at once.
	deadlineAhead
	deadlineTooEarly
	// deadlineUnknown is that it would have come, by a clock that is skewed.
	deadlineUnknown
	// deadlineCame is that what is left is deleted, or late.
	deadlineCame
)

// deadlineOf is how a maintenance stands to its deadline now.
func (s *seen) deadlineOf(m *maintenance) deadlineState {
	began := m.began
	if began.IsZero() {
		began = s.Now
	}
	switch d := m.deadline; {
	case d == nil || m.stage != v1alpha1.StageDrain || m.invalid != nil:
		return noDeadline
	case s.Now.Before(d.begin):
		return deadlineAhead
	case d.deletes && began.After(d.time):
		return deadlineTooEarly
	case s.ClockSkewed:
		return deadlineUnknown
	default:
		return deadlineCame
	}
}

// deletesOn returns true if what is left on the node is deleted now for the deadline of a
// maintenance.
func (s *seen) deletesOn(n *node, m *maintenance) bool {
	if !n.read || !m.deletesNow(s) {
		return false
	}
	late, known := s.late(n, m.deadline)
	return known && !late
}

// deletesNow returns true if the deadline of a maintenance has come and deletes pods.
func (m *maintenance) deletesNow(s *seen) bool {
	return s.deadlineOf(m) == deadlineCame && m.deadline.deletes
}

// late returns true if the drain of the node began after a deadline, because it got the
// label or was made later: its pods have had no time to leave. That is not known while the
// node does not announce its drain, unless it never will, because that is refused, the
// node is somebody else's concern too whom nobody understands, or somebody else announces
// a drain there.
func (s *seen) late(n *node, d *deadline) (late, known bool) {
	if since := n.drainAnnounced(); !since.IsZero() {
		return since.After(d.time), true
	}
	if _, refused := s.Refused[Write{Kind: WriteConditions, Node: n.name()}]; refused || n.unclear {
		return false, true
	}
	return false, foreigndrain.Announced(n.object) != nil
}

// latest is when a pod has to be deleted at the latest for its own grace period to end
// before the deadline.
func (d *deadline) latest(p *pod) time.Time { return d.time.Add(-deadlineSlack - graceOf(p.object)) }

// deletable returns true if the deadline of a maintenance may delete a pod that it waits
// for: one that it counts, that was there at the deadline, and that no maintenance of the
// node leaves there, perhaps under a lock. Deleting the mirror of a static pod ends nothing.
func (n *node) deletable(p *pod, m *maintenance) bool {
	return m.counts(p) && !p.unclear() && p.Type() != v1alpha1.PodTypeStatic &&
		!p.object.CreationTimestamp.After(m.deadline.time) &&
		!slices.ContainsFunc(n.drains, func(one *selection) bool { return one.maintenance.keeps(p) })
}

// reach is how far the deadline of a maintenance has taken its drain plan on a node.
type reach struct {
	maintenance *maintenance
	// entry is the last entry of the plan that is reached.
	entry int
}

// reached is how far deadlines have taken drain plans on a node. Its other nodes are not
// waited for any more: the plan has come to the first entry with a pod that is left, and
// to those of the pods that would not have their grace period otherwise.
func (s *seen) reached(n *node) []reach {
	var all []reach
	for _, one := range n.drains {
		m := one.maintenance
		if one.counted() == 0 || !s.deletesOn(n, m) {
			continue
		}
		first, last := m.plan.Len(), -1
		for i := range n.pods {
			p := &n.pods[i]
			if !m.counts(p) {
				continue
			}
			entry := m.plan.First(p.Subject, m.plan.Len())
			first = min(first, entry)
			if n.deletable(p, m) && !s.Now.Before(m.deadline.latest(p)) {
				last = max(last, entry)
			}
		}
		if entry := min(max(first, last), m.plan.Len()-1); entry >= 0 {
			all = append(all, reach{maintenance: m, entry: entry})
		}
	}
	return all
}
