package maintenance

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// retention is a group of pods of one owner that stay for the same reason.
type retention struct {
	why     v1alpha1.BlockerType
	owner   string
	pods    int32
	example *pod
}

// retainedBy returns up to ten groups of pods that a maintenance leaves, the largest first.
func (n *node) retainedBy(one *selection) []v1alpha1.Blocker {
	var all []retention
	for i := range n.pods {
		p := &n.pods[i]
		if one.waitsFor(i) {
			continue
		}
		why, owner := one.maintenance.whyRetained(p), ownerOf(p.object)
		at := slices.IndexFunc(all, func(r retention) bool { return r.why == why && r.owner == owner })
		if at < 0 {
			all = append(all, retention{why: why, owner: owner, pods: 1, example: p})
			continue
		}
		all[at].pods++
		if comparePods(p.object, all[at].example.object) < 0 {
			all[at].example = p
		}
	}
	slices.SortFunc(all, func(a, b retention) int {
		return cmp.Or(cmp.Compare(b.pods, a.pods), cmp.Compare(a.why, b.why), comparePods(a.example.object, b.example.object))
	})
	var retained []v1alpha1.Blocker
	for _, r := range all[:min(blocker.MaxBlockers, len(all))] {
		b := n.retain(r)
		b.PodCount = r.pods
		retained = append(retained, b)
	}
	return retained
}

func (m *maintenance) whyRetained(p *pod) v1alpha1.BlockerType {
	switch {
	case m.ofMachine && p.givenUp:
		return v1alpha1.BlockerNodeUnreachable
	case m.keeps(p):
		return v1alpha1.RetainedInPlace
	case p.Depth() > m.depth:
		return v1alpha1.RetainedDrainDepth
	case p.treatment == &unremovable:
		return v1alpha1.RetainedNoEvacuator
	case p.treatment.Object.Kind != "":
		return v1alpha1.RetainedDrainRule
	default:
		return v1alpha1.RetainedDrainLabel
	}
}

// retain explains why the pods stay, for a static pod with the message of its agent.
func (n *node) retain(one retention) v1alpha1.Blocker {
	object := one.example.object
	if report, known := n.agentReport(object); known && one.why == v1alpha1.RetainedNoEvacuator && one.example.Type() == v1alpha1.PodTypeStatic {
		return blocker.Unmanageable(object, report)
	}
	return blocker.Retained(one.why, object, one.example.treatment.Object)
}

// ownerOf returns a key of the pod's controller, or of the pod if it has none or is static.
func ownerOf(object *corev1.Pod) string {
	// All mirror pods of a node belong to it, and each stays for its own reason.
	if owner := podclass.Owner(object); owner != nil && podclass.Type(object) != v1alpha1.PodTypeStatic {
		return object.Namespace + "/" + owner.Kind + "/" + owner.Name + "/" + string(owner.UID)
	}
	return string(object.UID)
}
