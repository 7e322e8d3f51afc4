package maintenance_test

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// check asserts what has to hold in every decision. It uses brute force of its
// own wherever it can.
func (s *simulation) check(decision maintenance.Decision) {
	s.t.Helper()
	for _, d := range decision.Maintenances {
		s.checkDrained(d)
		s.checkLocked(d)
		s.checkGrowth(d)
		s.checkWaiting(d, decision)
	}
	s.checkHeld(decision)
	s.checkMessages(decision)
	s.checkReturns(decision)
	s.checkRecords(decision)
	for _, d := range decision.Nodes {
		s.checkEvacuated(d)
		s.checkTurns(d, decision)
		for _, c := range d.Conditions {
			if c.Reason != v1alpha1.ReasonNodeMaintenance {
				s.t.Errorf("condition %s of node %s has reason %s", c.Type, d.Node.Name, c.Reason)
			}
		}
	}
}

func isTrue(conditions []metav1.Condition, conditionType string) bool {
	return meta.IsStatusConditionTrue(conditions, conditionType)
}

func drains(m *v1alpha1.NodeMaintenance) bool {
	return m.Spec.Stage == v1alpha1.StageDrain && m.DeletionTimestamp == nil
}

// matched are the names of the nodes of a maintenance that exist and wait for no NodeBudget.
func (s *simulation) matched(m *v1alpha1.NodeMaintenance) []string {
	return slices.DeleteFunc(s.selectedBy(m), func(name string) bool { return s.limitedOn(name, m) && s.held(name) })
}

// selectedBy are the names of the nodes of a maintenance that exist.
func (s *simulation) selectedBy(m *v1alpha1.NodeMaintenance) []string {
	var names []string
	for _, term := range m.Spec.NodeSelector.NodeSelectorTerms {
		name := term.MatchFields[0].Values[0]
		if slices.ContainsFunc(s.nodes, func(n *corev1.Node) bool { return n.Name == name }) &&
			!slices.Contains(m.Spec.CompletedNodes, v1alpha1.NodeReference{Name: name}) {
			names = append(names, name)
		}
	}
	return names
}

// waitsFor returns true if a maintenance waits for a pod of one of its nodes.
func (s *simulation) waitsFor(m *v1alpha1.NodeMaintenance, node string, pod *corev1.Pod) bool {
	if !reachesDownTo(m, pod) || s.leaves(m, node, pod) {
		return false
	}
	skipped := s.treatment(node, pod).Behavior == v1alpha1.DrainBehaviorSkip
	switch podclass.Type(pod) {
	case v1alpha1.PodTypeDaemonSet:
		return s.runners.DaemonSets && !skipped
	case v1alpha1.PodTypeStatic:
		return s.hasAgent(node) && !skipped
	default:
		return !skipped
	}
}

// reachesDownTo returns true if the drainDepth of a maintenance includes the pod.
func reachesDownTo(m *v1alpha1.NodeMaintenance, pod *corev1.Pod) bool {
	depths := []v1alpha1.PodType{v1alpha1.PodTypeDefault, v1alpha1.PodTypeDaemonSet, v1alpha1.PodTypeStatic}
	return m.Spec.DrainDepth == "" || slices.Index(depths, podclass.Type(pod)) <= slices.Index(depths, m.Spec.DrainDepth)
}

func (s *simulation) checkDrained(d maintenance.MaintenanceDecision) {
	if !isTrue(d.Status.Conditions, v1alpha1.ConditionDrained) {
		return
	}
	for _, node := range s.matched(d.Maintenance) {
		if !s.find(node).Spec.Unschedulable {
			s.t.Errorf("%s is Drained although node %s still takes pods", d.Maintenance.Name, node)
		}
		for _, pod := range s.pods[node] {
			if s.waitsFor(d.Maintenance, node, pod) {
				s.t.Errorf("%s is Drained although pod %s is left on node %s", d.Maintenance.Name, pod.Name, node)
			}
		}
	}
}

// checkGrowth: no line of a status disappears or sinks as long as the
// maintenance drains the node.
func (s *simulation) checkGrowth(d maintenance.MaintenanceDecision) {
	if !drains(d.Maintenance) {
		return
	}
	// What was recorded for a node before its cordon is dropped if a budget holds it then.
	unheld := s.unheld(&d)
	for _, was := range d.Maintenance.Status.NodeStatuses {
		if is := unheld[was.NodeRef.Name]; is != nil {
			for _, line := range was.DrainTargets {
				if !slices.ContainsFunc(is.DrainTargets, func(now v1alpha1.DrainPlanEntry) bool {
					return sameLine(line, now) && now.PodPriority >= line.PodPriority
				}) {
					s.t.Errorf("%s: targets of node %s shrink from %s to %s", d.Maintenance.Name, was.NodeRef.Name, targets(was.DrainTargets), targets(is.DrainTargets))
				}
			}
		}
	}
}

func sameLine(a, b v1alpha1.DrainPlanEntry) bool {
	return a.PodType == b.PodType && slices.Equal(apps(a), apps(b))
}

// checkWaiting: who waits, waits for a node that evacuates.
func (s *simulation) checkWaiting(d maintenance.MaintenanceDecision, decision maintenance.Decision) {
	for _, status := range d.Status.NodeStatuses {
		if awaits := status.State == v1alpha1.NodeStateWaitingForNodes; awaits != (len(status.AwaitedNodes) > 0) {
			s.t.Errorf("%s: node %s is %s and awaits %v", d.Maintenance.Name, status.NodeRef.Name, status.State, status.AwaitedNodes)
		}
		for _, awaited := range status.AwaitedNodes {
			if !evacuates(decision, awaited.Name) {
				s.t.Errorf("%s has node %s wait for node %s, which does not evacuate", d.Maintenance.Name, status.NodeRef.Name, awaited.Name)
			}
		}
	}
}

// evacuating are the states of nodes that the drain has come to pods of.
var evacuating = []v1alpha1.NodeState{v1alpha1.NodeStateDraining, v1alpha1.NodeStateBlocked, v1alpha1.NodeStateWaitingForCompletion}

func evacuates(decision maintenance.Decision, node string) bool {
	return slices.ContainsFunc(decision.Maintenances, func(d maintenance.MaintenanceDecision) bool {
		return slices.ContainsFunc(d.Status.NodeStatuses, func(status v1alpha1.NodeMaintenanceNodeStatus) bool {
			return status.NodeRef.Name == node && slices.Contains(evacuating, status.State)
		})
	})
}

// checkEvacuated: only pods leave that somebody in Drain waits for and that have
// not been asked yet.
func (s *simulation) checkEvacuated(d maintenance.NodeDecision) {
	for _, pod := range requested(d.Evacuate) {
		if podclass.Terminal(pod) || s.evacuations[pod.UID] != nil {
			s.t.Errorf("pod %s of node %s is evacuated again", pod.Name, d.Node.Name)
		}
		involved := slices.DeleteFunc(slices.Clone(s.maintenances), func(m *v1alpha1.NodeMaintenance) bool {
			return !drains(m) || !slices.Contains(s.matched(m), d.Node.Name)
		})
		wanted := slices.ContainsFunc(involved, func(m *v1alpha1.NodeMaintenance) bool { return s.waitsFor(m, d.Node.Name, pod) })
		if treatment := s.treatment(d.Node.Name, pod); !wanted || treatment.Behavior != v1alpha1.DrainBehaviorDrain || treatment.Cause != "" {
			s.t.Errorf("pod %s of node %s is evacuated although nobody wants that", pod.Name, d.Node.Name)
		}
		s.checkOrder(d.Node.Name, pod, involved)
	}
}

// checkOrder: nobody leaves before every maintenance of the node has come to it,
// unless history covers it. Plans with selectors do not promise that.
func (s *simulation) checkOrder(node string, pod *corev1.Pod, involved []*v1alpha1.NodeMaintenance) {
	if s.selectors || s.history(node).Covers(pod) {
		return
	}
	for _, m := range involved {
		if !s.reached(m, pod) {
			s.t.Errorf("pod %s of node %s is evacuated before %s has come to it", pod.Name, node, m.Name)
		}
	}
}

// history is what the statuses of all maintenances in Drain say of a node.
func (s *simulation) history(node string) drainplan.Set {
	var all []v1alpha1.DrainPlanEntry
	for _, m := range s.maintenances {
		for _, status := range m.Status.NodeStatuses {
			if drains(m) && status.NodeRef.Name == node && slices.Contains(s.matched(m), node) {
				all = append(all, status.DrainTargets...)
			}
		}
	}
	return drainplan.NewSet(drainplan.Parse(all)...)
}

// reached returns true if a maintenance without pods left, or whose first plan
// entry with pods left does not come before all entries that cover the pod.
func (s *simulation) reached(m *v1alpha1.NodeMaintenance, pod *corev1.Pod) bool {
	for _, spec := range drainplan.Normalise(m.Spec.DrainPlan) {
		one := drainplan.NewSet(drainplan.Parse([]v1alpha1.DrainPlanEntry{spec})...)
		if one.Covers(pod) {
			return true
		}
		for _, node := range s.matched(m) {
			for _, other := range s.pods[node] {
				if s.waitsFor(m, node, other) && one.Covers(other) {
					return false
				}
			}
		}
	}
	return true
}

// checkSuppressed: a node shows which DaemonSet and static pods its maintenances
// in Drain have recorded, down to the deepest drainDepth, no more and no less, and
// has the taint only if these are all DaemonSet pods that there can be. A node that has left its maintenances
// is given back a pass later.
func (s *simulation) checkSuppressed(d *maintenance.NodeDecision) {
	if d.Cordon == nil && len(d.Withdraw) > 0 {
		return
	}
	node := s.find(d.Node.Name)
	shown, err := cordon.Suppressed(node)
	if err != nil {
		s.t.Errorf("what node %s suppresses cannot be read: %v", node.Name, err)
	}
	recorded, all := s.history(node.Name), true
	for _, pod := range specimens() {
		suppressed := shown.Covers(pod)
		wanted := slices.ContainsFunc(s.maintenances, func(m *v1alpha1.NodeMaintenance) bool {
			return drains(m) && slices.Contains(s.matched(m), node.Name) && reachesDownTo(m, pod)
		})
		if want := wanted && podclass.Type(pod) != v1alpha1.PodTypeDefault && recorded.Covers(pod); suppressed != want {
			s.t.Errorf("node %s suppresses pod %s: %v, want %v", node.Name, pod.Name, suppressed, want)
		}
		all = all && (podclass.Type(pod) != v1alpha1.PodTypeDaemonSet || suppressed)
	}
	if cordon.SuppressesAll(node) != all {
		s.t.Errorf("node %s is tainted: %v, and %s has to stay away", node.Name, !all, shown.Key())
	}
	for _, pod := range requested(d.Evacuate) {
		if podclass.Type(pod) != v1alpha1.PodTypeDefault && !shown.Covers(pod) {
			s.t.Errorf("pod %s leaves before node %s keeps it from coming back", pod.Name, node.Name)
		}
	}
}

// specimens are pods as they could be.
func specimens() []*corev1.Pod {
	var pods []*corev1.Pod
	for podType, become := range map[string]func(*corev1.Pod){"Default": func(*corev1.Pod) {}, "DaemonSet": ofDaemonSet, "Static": static} {
		for _, priority := range []int32{-5, 0, 1000, 5000, 1000000000, 2000000000, 2000001000, math.MaxInt32} {
			for _, app := range []string{"", "x", "y", "z"} {
				pod := &corev1.Pod{Spec: corev1.PodSpec{Priority: &priority}}
				pod.Name, pod.Labels = fmt.Sprintf("%s %d %q", podType, priority, app), map[string]string{"app": app}
				become(pod)
				pods = append(pods, pod)
			}
		}
	}
	return pods
}

func (s *simulation) checkRestored(node *corev1.Node) {
	if node.Labels[v1alpha1.HandedOverLabel]+node.Labels[v1alpha1.DaemonSetDrainLabel] != "" || len(node.Annotations)+len(node.Spec.Taints) > 0 {
		s.t.Errorf("node %s is still held: %s, %v", node.Name, node.Annotations, node.Spec.Taints)
	}
	if node.Spec.Unschedulable && !s.before[node.Name] {
		s.t.Errorf("node %s stays cordoned", node.Name)
	}
	if !node.Spec.Unschedulable && s.before[node.Name] && !s.freed {
		s.t.Errorf("a person's cordon of node %s is lifted", node.Name)
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			continue
		}
		s.t.Errorf("node %s still has condition %s", node.Name, c.Type)
	}
}
