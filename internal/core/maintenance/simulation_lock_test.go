package maintenance_test

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// budgetAll protects some applications, one of them twice.
func (s *simulation) budgetAll() {
	s.budget("x")
	s.budget("y")
	s.budget("xy").Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"x"},
	}}}
}

// settleDown has some pods ask to stay.
func (s *simulation) settleDown(pod *corev1.Pod) {
	if s.chance(40) {
		pod.Labels[v1alpha1.OnUpgradeLabel] = pick(s, []string{"stay", "stay", "Stay", "nonsense"})
		endures(pick(s, []int64{0, 60, 300, 900}))(pod)
	}
}

// bringBack makes some maintenances ones in place.
func (s *simulation) bringBack(m *v1alpha1.NodeMaintenance) {
	m.Spec.InPlace = nil
	if s.chance(60) {
		inPlace(m, pick(s, []int32{60, 300, 600}))
	}
}

// changeStays is what somebody else does to pods that stay and to their locks.
func (s *simulation) changeStays() {
	s.lockSome(30)
	switch {
	case s.chance(10) && len(s.maintenances) > 0:
		s.bringBack(pick(s, s.maintenances))
	case s.chance(10):
		if pods := s.pods[pick(s, s.nodes).Name]; len(pods) > 0 {
			s.settleDown(pick(s, pods))
		}
	case s.chance(5):
		s.again(pick(s, s.nodes))
	case s.chance(5) && len(s.budgets) > 0:
		s.budgets = slices.Delete(s.budgets, 0, 1)
	}
}

// again makes a node anew, without its pods.
func (s *simulation) again(node *corev1.Node) {
	s.before[node.Name] = false
	for _, pod := range s.pods[node.Name] {
		delete(s.evacuations, pod.UID)
	}
	s.pods[node.Name] = nil
	made := corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: node.Name, UID: node.UID, Labels: node.Labels, CreationTimestamp: metav1.NewTime(s.now),
	}}
	*node = made
}

// lockSome takes, loses and gives back locks, each with some chance.
func (s *simulation) lockSome(percent int) {
	for _, node := range s.nodes {
		record := s.records[node.Name]
		switch {
		case record == nil || !s.chance(percent):
		case record.Spec.Complete:
			delete(s.records, node.Name)
		case percent < 100 && s.chance(20) && len(record.Spec.Budgets) > 0:
			s.giveUp(node.Name, pick(s, record.Spec.Budgets).Name)
		default:
			s.observe(node.Name, func(status *v1alpha1.DrainRecordStatus) {
				status.Locks, status.Boots = nil, &v1alpha1.RecordedBoots{}
				for _, b := range record.Spec.Budgets {
					if percent == 100 || s.chance(70) {
						status.Locks = append(status.Locks, v1alpha1.RecordedLock{BudgetReference: b, ConfirmedTime: metaTime(s.now)})
					}
				}
			})
		}
	}
}

// leaves returns true if a maintenance leaves a pod on its node, as the design has
// it: by its own label, tolerations and budgets.
func (s *simulation) leaves(m *v1alpha1.NodeMaintenance, node string, pod *corev1.Pod) bool {
	if m.Spec.InPlace == nil || !strings.EqualFold(pod.Labels[v1alpha1.OnUpgradeLabel], "stay") || pod.DeletionTimestamp != nil {
		return false
	}
	// All pods here tolerate both taints for as long, if at all.
	if len(pod.Spec.Tolerations) == 0 || *pod.Spec.Tolerations[0].TolerationSeconds < int64(m.Spec.InPlace.ExpectedDowntimeSeconds) {
		return false
	}
	if treatment := s.treatment(node, pod); s.removable(node, pod) && (treatment.Behavior != v1alpha1.DrainBehaviorDrain || treatment.Cause != "") {
		return false
	}
	record := s.records[node]
	return record == nil || record.Spec.Complete || s.find(node).CreationTimestamp.After(record.CreationTimestamp.Time) ||
		!slices.ContainsFunc(s.protecting(pod), func(b v1alpha1.BudgetReference) bool { return drainlock.GivenUp(record, b) })
}

func (s *simulation) removable(node string, pod *corev1.Pod) bool {
	switch podclass.Type(pod) {
	case v1alpha1.PodTypeDaemonSet:
		return s.runners.DaemonSets
	case v1alpha1.PodTypeStatic:
		return s.hasAgent(node)
	}
	return true
}

// protecting are the budgets of a pod.
func (s *simulation) protecting(pod *corev1.Pod) []v1alpha1.BudgetReference {
	var all []v1alpha1.BudgetReference
	for _, b := range s.budgets {
		if selects(b, pod) {
			all = append(all, reference(b.Name))
		}
	}
	return all
}

func selects(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}

// draining are the maintenances in Drain on a node.
func (s *simulation) draining(node string) []*v1alpha1.NodeMaintenance {
	return slices.DeleteFunc(slices.Clone(s.maintenances), func(m *v1alpha1.NodeMaintenance) bool {
		return !drains(m) || !slices.Contains(s.matched(m), node)
	})
}

// staying are the pods that somebody leaves on a node and nobody waits for.
func (s *simulation) staying(node string) []*corev1.Pod {
	var all []*corev1.Pod
	for _, pod := range s.pods[node] {
		left := false
		for _, m := range s.draining(node) {
			left = left || s.leaves(m, node, pod)
		}
		if left && !podclass.Terminal(pod) && !s.awaited(node, pod) {
			all = append(all, pod)
		}
	}
	return all
}

// checkLocked: who is Drained in place has the locks of all budgets of pods that it
// leaves on a node, and nobody else removes such a pod.
func (s *simulation) checkLocked(d maintenance.MaintenanceDecision) {
	if !isTrue(d.Status.Conditions, v1alpha1.ConditionDrained) {
		return
	}
	for _, node := range s.matched(d.Maintenance) {
		for _, pod := range s.pods[node] {
			if podclass.Terminal(pod) || !s.leaves(d.Maintenance, node, pod) {
				continue
			}
			for _, b := range s.protecting(pod) {
				if !s.locked(node, b) {
					s.t.Errorf("%s is Drained although budget %s of pod %s on node %s is not locked", d.Maintenance.Name, b.Name, pod.Name, node)
				}
			}
		}
	}
}

func (s *simulation) locked(node string, b v1alpha1.BudgetReference) bool {
	record := s.records[node]
	return record != nil && !record.Spec.Complete && slices.Contains(record.Spec.Budgets, b) && s.confirmed(node, b)
}

func (s *simulation) confirmed(node string, b v1alpha1.BudgetReference) bool {
	record := s.records[node]
	return record != nil && slices.ContainsFunc(record.Status.Locks, func(lock v1alpha1.RecordedLock) bool {
		return lock.BudgetReference == b && lock.ConfirmedTime != nil
	})
}

// checkRecords: every record says what is needed now, or will after this decision.
func (s *simulation) checkRecords(decision maintenance.Decision) {
	will := map[string]v1alpha1.DrainRecordSpec{}
	for node, record := range s.records {
		will[node] = record.Spec
	}
	for _, d := range decision.Nodes {
		if d.DrainRecord != nil {
			will[d.Node.Name] = d.DrainRecord.Spec
			s.checkMade(d)
		}
	}
	for node, spec := range will {
		if !spec.Complete {
			s.checkNeeds(node, spec)
		}
	}
}

// checkMade: a record is made, or taken over, when nobody waits for a pod of the
// cordoned node.
func (s *simulation) checkMade(d maintenance.NodeDecision) {
	node, change := d.Node.Name, d.DrainRecord
	goesOn := change.Old != nil && !change.Old.Spec.Complete
	// One that is over may still let go of pods that have to leave.
	staysOver := change.Old != nil && change.Spec.Complete
	if goesOn || staysOver {
		return
	}
	if change.Spec.Complete || !s.find(node).Spec.Unschedulable {
		s.t.Errorf("the record of node %s is made although it is not in place: %s", node, text(change.Spec))
	}
	for _, pod := range s.pods[node] {
		if !podclass.Terminal(pod) && s.awaited(node, pod) {
			s.t.Errorf("the record of node %s is made although pod %s has to leave: %s", node, pod.Name, text(change.Spec))
		}
	}
}

// checkNeeds: a record that is not complete names the pods that stay, and their
// budgets but those that are given up. While pods have to leave it needs none that
// keeps them from it, and no new one.
func (s *simulation) checkNeeds(node string, spec v1alpha1.DrainRecordSpec) {
	if !slices.ContainsFunc(s.draining(node), func(m *v1alpha1.NodeMaintenance) bool { return m.Spec.InPlace != nil }) {
		s.t.Errorf("the record of node %s goes on although nobody is in place: %s", node, text(spec))
	}
	want, got := names(s.staying(node)), podNames(spec.Pods)
	if slices.Sort(want); !slices.Equal(want, got) {
		s.t.Errorf("the record of node %s names %q, and %q stay", node, got, want)
	}
	needed := map[v1alpha1.BudgetReference]bool{}
	for _, pod := range s.staying(node) {
		for _, b := range s.protecting(pod) {
			needed[b] = true
		}
	}
	for _, pod := range s.pods[node] {
		if podclass.Terminal(pod) || !s.awaited(node, pod) {
			continue
		}
		maps.DeleteFunc(needed, func(b v1alpha1.BudgetReference, _ bool) bool {
			return slices.Contains(s.protecting(pod), b) || !s.confirmed(node, b)
		})
	}
	for _, b := range spec.Budgets {
		if !needed[b] {
			s.t.Errorf("the record of node %s needs budget %s, which keeps a pod from leaving or protects none that stays", node, b.Name)
		}
		delete(needed, b)
	}
	for b := range needed {
		s.t.Errorf("the record of node %s does not need budget %s", node, b.Name)
	}
}

func podNames(pods []v1alpha1.StayingPod) []string {
	var all []string
	for _, pod := range pods {
		all = append(all, pod.Name)
	}
	return all
}

func text(spec v1alpha1.DrainRecordSpec) string { return needed(&v1alpha1.DrainRecord{Spec: spec}) }

func (s *simulation) hasAgent(node string) bool {
	_, found := s.runners.Agents[node]
	return found
}
