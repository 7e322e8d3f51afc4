package maintenance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/foreigndrain"
	"ebbtide.dev/ebbtide/internal/core/maintenance/deadline"
	"ebbtide.dev/ebbtide/internal/core/maintenance/status"
)

const maxDeletionEvents = 100

// Deletion deletes a pod past its disruption budgets, because a deadline has come.
type Deletion struct {
	// Pod may be terminating with a longer grace period.
	Pod *corev1.Pod
	// GracePeriodSeconds is at least 1.
	GracePeriodSeconds int64
	// Maintenance is the name of the NodeMaintenance whose deadline it is. It is read from the
	// API server before the first pod is deleted, so that a postponed deadline deletes nothing.
	Maintenance string
	Events      []event.Event
}

type dueDeletion struct {
	maintenance *maintenance
	rank        deadline.Rank
}

func (s *observation) deletesOn(n *node, m *maintenance) bool {
	if !n.read || m.deadline == nil || !m.deadline.Deletes || m.deadline.State(s.Now, m.began, s.ClockSkewed) != deadline.Came {
		return false
	}
	late, known := s.late(n, m.deadline)
	return known && !late
}

// late returns true if the drain of the node began after a deadline, because the node got the
// label or was created later: its pods have had no time to leave. That is unknown until the node
// announces its drain, unless it never will: the write is refused, an invalid maintenance holds
// the node, or it announces a foreign drain.
func (s *observation) late(n *node, d *deadline.Deadline) (late, known bool) {
	if since := n.drainAnnounced(); !since.IsZero() {
		return since.After(d.Time), true
	}
	if _, refused := s.Refused[Write{Kind: WriteConditions, Node: n.name()}]; refused || n.unclear {
		return false, true
	}
	return false, foreigndrain.Announced(n.object) != nil
}

// latePods returns the pods of a node that a maintenance waits for. It may delete those that no
// maintenance of the node leaves there, perhaps under a lock. Deleting the mirror of a static
// pod stops nothing. Covered is nil if it is not known yet.
func latePods(one *selection, covered []bool) []deadline.Pod {
	n, m := one.node, one.maintenance
	var pods []deadline.Pod
	for i := range n.pods {
		p := &n.pods[i]
		if !one.waitsFor(i) {
			continue
		}
		pods = append(pods, deadline.Pod{
			Object: p.object, Index: i, Entry: m.plan.First(p.Subject, m.plan.Len()), Order: int(p.treatment.Order),
			Deletable: !p.unclear() && p.Type() != v1alpha1.PodTypeStatic &&
				!slices.ContainsFunc(n.drains, func(other *selection) bool { return other.maintenance.keeps(p) }),
			Covered: covered != nil && covered[i],
		})
	}
	return pods
}

// deadlineEntry returns the last entry that a deadline has brought a node to; -1 if none.
func (s *observation) deadlineEntry(one *selection) int {
	m := one.maintenance
	if one.counted() == 0 || !s.deletesOn(one.node, m) {
		return -1
	}
	return min(m.deadline.Reach(latePods(one, nil), s.Now), m.plan.Len()-1)
}

// dueDeletions returns the pods that deadlines delete, by index. The earliest deadline counts.
func (t *targeted) dueDeletions(o *outcome) map[int]dueDeletion {
	due := map[int]dueDeletion{}
	for _, one := range o.drains {
		m := one.maintenance
		if m.deadline == nil {
			continue
		}
		o.wake(t.Now, m.deadline.Begin)
		o.wake(t.Now, m.deadline.Time)
		// On a schedulable node, a deleted pod might come back.
		if !o.object.Spec.Unschedulable || !t.deletesOn(o.node, m) {
			continue
		}
		ranks, next := m.deadline.Due(latePods(one, o.covered), t.Now)
		o.wake(t.Now, next)
		for i, rank := range ranks {
			if known, found := due[i]; !found || m.deadline.Time.Before(known.maintenance.deadline.Time) {
				due[i] = dueDeletion{maintenance: m, rank: rank}
			}
		}
	}
	return due
}

func (c *conclusion) deletionsOf(o *outcome) []Deletion {
	places := make([]int, 0, len(o.deletions))
	for i, d := range o.deletions {
		if d.maintenance.deadline.Overdue(o.pods[i].object, c.Now) {
			places = append(places, i)
		}
	}
	slices.SortFunc(places, func(a, b int) int {
		return cmp.Or(o.deletions[a].rank.Compare(o.deletions[b].rank), comparePods(o.pods[a].object, o.pods[b].object))
	})
	deletions := make([]Deletion, 0, len(places))
	for _, i := range places {
		m, object := o.deletions[i].maintenance, o.pods[i].object
		d := Deletion{Pod: object, GracePeriodSeconds: m.deadline.GraceLeft(object, c.Now), Maintenance: m.name()}
		if c.deletionEvents < maxDeletionEvents {
			c.deletionEvents++
			d.Events = []event.Event{event.DeletedPastDeadline(object, event.LatePod{
				Maintenance: m.name(), Deadline: m.deadline.Time, GracePeriodSeconds: d.GracePeriodSeconds,
			})}
		}
		deletions = append(deletions, d)
	}
	return deletions
}

// pastDeadline returns the condition PastDeadline; nil without a deadline.
func (c *conclusion) pastDeadline(m *maintenance, t status.Totals, blocked metav1.Condition) *metav1.Condition {
	state := m.deadline.State(c.Now, m.began, c.ClockSkewed)
	if state == deadline.None {
		return nil
	}
	left := deadline.Left{Pods: t.Left(), Unread: t.Unread, Waiting: len(m.waiting), GivenBack: m.givenBack}
	if state == deadline.Came && left.Pods > 0 {
		left.Kept, left.Named = c.undeletable(m), c.leftOf(m)
	}
	if blocked.Status == metav1.ConditionTrue {
		left.Blocked = blocked.Message
	}
	return new(m.deadline.Condition(state, left))
}

// undeletable counts the awaited pods that the deadline of a maintenance does not delete.
func (c *conclusion) undeletable(m *maintenance) int32 {
	count := int32(0)
	for _, one := range m.selections {
		late, _ := c.late(one.node, m.deadline)
		pods := latePods(one, nil)
		for i := range pods {
			if late || !m.deadline.Deletable(&pods[i]) {
				count++
			}
		}
	}
	return count
}

const namedPods = 3

func (c *conclusion) leftOf(m *maintenance) string {
	var named []string
	more := int32(0)
	for _, one := range m.selections {
		if len(named) == namedPods {
			more += one.counted()
			continue
		}
		var left []string
		for i := range one.node.pods {
			if p := &one.node.pods[i]; one.waitsFor(i) {
				left = append(left, p.object.Namespace+"/"+p.object.Name+" on "+one.node.name())
			}
		}
		slices.Sort(left)
		taken := min(len(left), namedPods-len(named))
		named = append(named, left[:taken]...)
		more += int32(len(left) - taken)
	}
	text := strings.Join(named, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func becameLate(before, after []metav1.Condition, reasons ...string) bool {
	return slices.ContainsFunc(reasons, func(reason string) bool {
		return status.Became(before, after, v1alpha1.ConditionPastDeadline, reason)
	})
}
