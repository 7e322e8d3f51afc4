package maintenance_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// lates simulates deadlines that give nodes back. It has dice of its own.
type lates struct {
	random *rand.Rand
	// drained are the nodes that were announced as drained for a maintenance, by both.
	drained map[[2]string]bool
}

func newLates(seed uint64) lates {
	return lates{random: rand.New(rand.NewPCG(seed, 33)), drained: map[[2]string]bool{}}
}

// changeDeadlines gives some maintenances a deadline or another one, few that complete themselves,
// and has the clock skewed.
func (s *simulation) changeDeadlines() {
	l := &s.lates
	s.clockSkewed = l.random.IntN(100) < 10
	for _, m := range s.maintenances {
		percent := 3
		if m.Spec.CompleteWhen != nil {
			percent = 1
		}
		if l.random.IntN(100) < percent && m.Spec.Stage != v1alpha1.StageComplete && !s.announcedEarly(m) {
			at := s.now.Add(time.Duration(l.random.IntN(600)) * time.Second)
			m.Spec.Deadline = &v1alpha1.Deadline{Time: metav1.NewTime(at), OnDeadline: v1alpha1.DeadlineGiveBack}
		}
	}
}

// announcedEarly returns true if a node is announced as drained before the status of a maintenance has
// that. Without a deadline, the status may be written later.
func (s *simulation) announcedEarly(m *v1alpha1.NodeMaintenance) bool {
	return slices.ContainsFunc(s.matched(m), func(name string) bool {
		recorded := slices.ContainsFunc(m.Status.NodeStatuses, func(n v1alpha1.NodeMaintenanceNodeStatus) bool {
			return n.NodeRef.Name == name && n.DrainedTime != nil
		})
		return !recorded && nodeCondition(s.find(name), v1alpha1.NodeDrained).Status == corev1.ConditionTrue
	})
}

// decided gives nodes back unless the write fails. None of them was announced as drained, the
// deadline has passed, and the clock is trusted.
func (l *lates) decided(s *simulation, d *maintenance.MaintenanceDecision, failures bool) {
	m := d.Maintenance
	if s.clockSkewed || m.Spec.Deadline == nil || s.now.Before(m.Spec.Deadline.Time.Time) {
		s.t.Errorf("%s gives nodes back at %s, by a clock that is skewed: %t", m.Name, s.now, s.clockSkewed)
	}
	names := s.matched(m)
	if len(d.GiveBack.Nodes) > 0 {
		names = nil
		for _, node := range d.GiveBack.Nodes {
			names = append(names, node.Name)
		}
	}
	for _, name := range names {
		if l.drained[[2]string{m.Name, name}] {
			s.t.Errorf("%s gives %s back, which was drained", m.Name, name)
		}
	}
	if failures && s.chance(20) {
		return
	}
	s.record(d)
	givenBackInSimulations++
}

// checkDeadlines notes which nodes are announced as drained. One that waits is no longer so.
func (s *simulation) checkDeadlines() {
	for _, m := range s.maintenances {
		maps.DeleteFunc(s.lates.drained, func(key [2]string, _ bool) bool {
			return key[0] == m.Name && s.limitedOn(key[1], m) && s.held(key[1])
		})
		for _, name := range s.matched(m) {
			if key := [2]string{m.Name, name}; !drains(m) || m.Spec.Deadline == nil {
				delete(s.lates.drained, key)
			} else if slices.ContainsFunc(s.find(name).Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == v1alpha1.NodeDrained && c.Status == corev1.ConditionTrue
			}) {
				s.lates.drained[key] = true
			}
		}
	}
}

// givenBackInSimulations counts these writes: a check that never runs proves nothing.
var givenBackInSimulations int
