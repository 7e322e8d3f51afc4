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
	n := drainrecord.Node{Object: o.object, Record: o.record, Unclear: o.unclear, Leaving: o.leavers()}
	for _, one := range o.drains {
		if one.counted() > 0 {
			n.WaitedBy = append(n.WaitedBy, one.maintenance.name())
		}
	}
	if o.inPlace != nil {
		n.InPlace = o.inPlace.object
		for _, one := range t.Pods[o.name()] {
			n.Pods = append(n.Pods, one.Object)
		}
		n.Staying, n.Torn = t.stayers(o.node)
		n.Budgets = t.budgetsOf(n.Staying)
	}
	return drainrecord.Decide(n, t.Now, t.LongestLock)
}

// stayers returns the pods that stay on the node. Torn is true if one maintenance would leave a
// pod under a budget there and another one removes it: until it is gone the node must not go,
// and nothing is locked for it.
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

// leavers returns the awaited pods that still have to be evicted, which a lock would prevent.
func (n *node) leavers() []*corev1.Pod {
	var leaving []*corev1.Pod
	for i := range n.pods {
		if p := &n.pods[i]; p.object.DeletionTimestamp == nil && p.counted {
			leaving = append(leaving, p.object)
		}
	}
	return leaving
}

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
