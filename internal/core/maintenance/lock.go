package maintenance

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"ebbtide.dev/ebbtide/internal/core/maintenance/drainrecord"
)

// lockOf decides about the DrainRecord of a node.
func (t *targeted) lockOf(o *outcome) drainrecord.Decision {
	if !o.read || o.inPlace == nil && o.record == nil {
		return drainrecord.Decision{}
	}
	n := drainrecord.Node{Object: o.object, Record: o.record, Unclear: o.unclear, Leaving: o.leavers(), WaitedBy: o.waited()}
	if o.inPlace != nil {
		n.InPlace, n.Pods = o.inPlace.object, t.podsOf(o.node)
		n.Staying, n.Torn = t.stayers(o.node)
		n.Budgets = t.budgetsOf(n.Staying)
	}
	return drainrecord.Decide(n, t.Now, t.LongestLock)
}

// stayers are the pods that stay on the node. Torn is true if there is another one
// under a budget, which a maintenance would leave there and another one removes: until
// it is gone the node must not go, and nothing is locked for it.
func (t *targeted) stayers(n *node) (staying []*corev1.Pod, torn bool) {
	for i := range n.pods {
		p := &n.pods[i]
		switch {
		case !p.staying.Stays || !slices.ContainsFunc(n.drains, func(one *selection) bool { return one.maintenance.keeps(p) }):
		case p.counted:
			torn = torn || len(t.budgets.Applying(p.object)) > 0
		default:
			staying = append(staying, p.object)
		}
	}
	return staying, torn
}

// leavers are the pods that somebody waits for and that have to be evicted yet: a
// lock would keep them. One that is terminating needs no eviction any more.
func (n *node) leavers() []*corev1.Pod {
	var leaving []*corev1.Pod
	for i := range n.pods {
		if p := &n.pods[i]; p.object.DeletionTimestamp == nil && p.counted {
			leaving = append(leaving, p.object)
		}
	}
	return leaving
}

// budgetsOf are the budgets that protect some of the pods.
func (t *targeted) budgetsOf(pods []*corev1.Pod) []*policyv1.PodDisruptionBudget {
	var found []*policyv1.PodDisruptionBudget
	for _, object := range pods {
		for _, b := range t.budgets.Applying(object) {
			if !slices.Contains(found, b) {
				found = append(found, b)
			}
		}
	}
	return found
}

// waited are the names of the maintenances that wait for pods of the node.
func (n *node) waited() []string {
	var names []string
	for _, one := range n.drains {
		if one.counted() > 0 {
			names = append(names, one.maintenance.name())
		}
	}
	return names
}

// podsOf are all pods of a node, finished ones too.
func (s *observation) podsOf(n *node) []*corev1.Pod {
	all := s.Pods[n.name()]
	objects := make([]*corev1.Pod, len(all))
	for i := range all {
		objects[i] = all[i].Object
	}
	return objects
}
