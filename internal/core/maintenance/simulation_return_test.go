package maintenance_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// returns is what becomes of completeWhen in a simulation. It has dice of its own.
type returns struct {
	random *rand.Rand
	boots  int
	// booted is whether a node has booted since it got the mark of a maintenance, by both.
	booted map[[2]string]bool
}

func newReturns(seed uint64) returns {
	return returns{random: rand.New(rand.NewPCG(seed, 14)), booted: map[[2]string]bool{}}
}

func (r *returns) chance(percent int) bool { return r.random.IntN(100) < percent }

// acted notes which marks a node has now.
func (r *returns) acted(d *maintenance.NodeDecision) {
	if d.Cordon == nil {
		return
	}
	by := strings.Split(d.Cordon.HandedOverBy, ",")
	for key := range r.booted {
		if key[0] == d.Node.Name && !slices.Contains(by, key[1]) {
			delete(r.booted, key)
		}
	}
	for _, name := range by {
		key := [2]string{d.Node.Name, name}
		if _, known := r.booted[key]; !known && name != "" {
			r.booted[key] = false
		}
	}
}

// changeReturns has nodes boot and break, maintenances of one node ask for a boot or ask
// no more, and somebody take a mark away.
func (s *simulation) changeReturns() {
	r := &s.returns
	for _, node := range s.nodes {
		if r.chance(20) {
			r.boots++
			s.reports(node.Name, fmt.Sprintf("boot-%d", r.boots), "v1.37.1", s.now)
			for key := range r.booted {
				r.booted[key] = r.booted[key] || key[0] == node.Name
			}
		}
		if r.chance(5) {
			delete(node.Labels, v1alpha1.HandedOverLabel)
		}
	}
	for _, m := range s.maintenances {
		switch one := len(m.Spec.NodeSelector.NodeSelectorTerms) == 1; {
		case !one || m.Spec.CompleteWhen != nil && r.chance(5):
			m.Spec.CompleteWhen = nil
		case m.Spec.CompleteWhen == nil && r.chance(40):
			m.Spec.CompleteWhen = &v1alpha1.CompleteWhen{NewBoot: true}
		}
	}
}

// checkReturns: nothing completes itself before its node has booted under its mark and is
// Ready, or under what is not recorded yet; no maintenance has a mark that asks for nothing.
func (s *simulation) checkReturns(decision maintenance.Decision) {
	for _, d := range decision.Maintenances {
		if !d.Returned {
			continue
		}
		node := s.find(s.matched(d.Maintenance)[0])
		if !s.returns.booted[[2]string{node.Name, d.Maintenance.Name}] || d.HandOver != nil {
			s.t.Errorf("%s completes itself, and node %s has not booted since it was handed over", d.Maintenance.Name, node.Name)
		}
		if !slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}) {
			s.t.Errorf("%s completes itself, and node %s is not Ready", d.Maintenance.Name, node.Name)
		}
		returnedInSimulations++
	}
	s.checkMarks(decision)
}

// checkMarks: who has a mark asks for it.
func (s *simulation) checkMarks(decision maintenance.Decision) {
	for _, d := range decision.Nodes {
		if d.Cordon == nil || d.Cordon.HandedOverBy == "" {
			continue
		}
		for _, name := range strings.Split(d.Cordon.HandedOverBy, ",") {
			if !slices.ContainsFunc(s.maintenances, func(m *v1alpha1.NodeMaintenance) bool {
				return m.Name == name && drains(m) && m.Spec.CompleteWhen != nil && slices.Contains(s.matched(m), d.Node.Name)
			}) {
				s.t.Errorf("node %s is handed over to %s, which does not ask for it", d.Node.Name, name)
			}
		}
	}
}

// returnedInSimulations is how often that was tried: a check that never runs proves nothing.
var returnedInSimulations int
