package view

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

const (
	maxWaits, maxCircles = 100_000, 10
	maxShownWaits        = 200
)

// Wait is an edge between two objects, each as kind/name or kind/namespace/name.
type Wait struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Why fits after "because".
	Why string `json:"why"`
}

func (s *Snapshot) waits(shown []*v1alpha1.NodeMaintenance) []Wait {
	var all []Wait
	for _, m := range shown {
		if stage := maintenance.Stage(m); stage == v1alpha1.StageIdle || maintenance.Finished(m) {
			continue
		}
		for i := range m.Status.NodeStatuses {
			if len(all) > maxWaits {
				break
			}
			all = append(all, nodeWaits(m, &m.Status.NodeStatuses[i])...)
		}
	}
	for _, b := range s.Budgets {
		if lock, locked := s.lockOf(b); locked {
			all = append(all, Wait{From: "pdb/" + lock.Budget, To: holderOf(lock), Why: "it has the lock"})
		}
	}
	for _, machine := range s.Machines {
		all = append(all, machineWaits(machine)...)
	}
	slices.SortFunc(all, compareWaits)
	return slices.CompactFunc(all, func(a, b Wait) bool { return a.From == b.From && a.To == b.To })
}

func compareWaits(a, b Wait) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Why, b.Why))
}

func holderOf(lock Lock) string {
	if lock.Node != "" {
		return "node/" + lock.Node
	}
	return lock.Holder
}

func nodeWaits(m *v1alpha1.NodeMaintenance, said *v1alpha1.NodeMaintenanceNodeStatus) []Wait {
	if said.State.IsDrained() && len(said.Blockers) == 0 {
		return nil
	}
	node := "node/" + said.NodeRef.Name
	waits := []Wait{{From: "nodemaintenance/" + m.Name, To: node, Why: "its pods must leave"}}
	for i := range said.Blockers {
		b := &said.Blockers[i]
		// An unreachable node blocks its own pods and waits for nothing.
		if to := vertex(b.Object); b.Object.Name != "" && to != node {
			waits = append(waits, Wait{From: node, To: to, Why: excerpt.Line(string(b.Type), maxWords)})
		}
	}
	for _, other := range said.AwaitedNodes {
		waits = append(waits, Wait{From: node, To: excerpt.Line("node/"+other.Name, maxWords), Why: "pods of the current wave are left there"})
	}
	return waits
}

// vertex names a blocker like kubectl does.
func vertex(o v1alpha1.BlockerObject) string {
	kind := strings.ToLower(o.Kind)
	if kind == "poddisruptionbudget" {
		kind = "pdb"
	}
	if o.Namespace != "" {
		kind += "/" + o.Namespace
	}
	return excerpt.Line(kind+"/"+o.Name, maxWords)
}

func machineWaits(machine *v1alpha1.Machine) []Wait {
	deleting := meta.FindStatusCondition(machine.Status.Conditions, v1alpha1.ConditionDeleting)
	if machine.DeletionTimestamp == nil || deleting == nil || deleting.Status != metav1.ConditionTrue {
		return nil
	}
	from := "machine/" + machine.Namespace + "/" + machine.Name
	var waits []Wait
	hold := func(hooks []v1alpha1.LifecycleHook) {
		for _, hook := range hooks {
			waits = append(waits, Wait{From: from, To: "hook/" + excerpt.Line(hook.Name, maxWords), Why: excerpt.Line("its owner is "+hook.Owner, maxWords)})
		}
	}
	switch deleting.Reason {
	case v1alpha1.ReasonWaitingForPreDrainHook:
		hold(machine.Spec.LifecycleHooks.PreDrain)
	case v1alpha1.ReasonWaitingForPreTerminateHook:
		hold(machine.Spec.LifecycleHooks.PreTerminate)
	case v1alpha1.ReasonDrainingNode, v1alpha1.ReasonWaitingForVolumeDetach, v1alpha1.ReasonDeletingNode:
		if ref := machine.Status.NodeRef; ref != nil {
			waits = append(waits, Wait{From: from, To: "node/" + ref.Name, Why: deleting.Reason})
		}
	}
	return waits
}

// reachable returns all waits that follow from an object, nearest first.
func reachable(waits []Wait, from string) []Wait {
	var found []Wait
	known := map[string]bool{from: true}
	for next := []string{from}; len(next) > 0; next = next[1:] {
		for _, w := range waitsOf(waits, next[0]) {
			found = append(found, w)
			if !known[w.To] {
				known[w.To] = true
				next = append(next, w.To)
			}
		}
	}
	return found
}

func waitsOf(sorted []Wait, from string) []Wait {
	compare := func(w Wait, name string) int { return cmp.Compare(w.From, name) }
	first, _ := slices.BinarySearchFunc(sorted, from, compare)
	last := first
	for last < len(sorted) && sorted[last].From == from {
		last++
	}
	return sorted[first:last]
}
