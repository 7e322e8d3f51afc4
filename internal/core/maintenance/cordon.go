package maintenance

import (
	"slices"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

func (t *targeted) cordonOf(o *outcome) cordon.Decision {
	n := cordon.Node{
		Object: o.object, Ledger: o.ledger, Holders: o.holders, Unclear: o.unclear, Protect: t.Protect,
		Suppression: o.suppression(), HandedOverTo: o.handedOverTo,
	}
	for _, one := range o.selections {
		switch m := one.maintenance; {
		case m.holds():
			n.HeldBy = append(n.HeldBy, m.object)
		case n.UncordonedBy == "" && m.wantsUncordon():
			n.UncordonedBy = m.name()
		}
	}
	return cordon.Decide(n, t.Now)
}

// wantsUncordon reports whether a user set stage Complete before anything began.
func (m *maintenance) wantsUncordon() bool {
	if m.stage != v1alpha1.StageComplete || hasStarted(m.object, v1alpha1.StageCordon, v1alpha1.StageDrain) {
		return false
	}
	deleted := m.object.DeletionTimestamp
	return deleted == nil || slices.ContainsFunc(m.object.Status.StageStatuses, func(s v1alpha1.StageStatus) bool {
		return s.Name == v1alpha1.StageComplete && s.StartTimestamp.Before(deleted)
	})
}

// suppression returns what the node has to show. While an invalid maintenance holds it, nothing
// is removed. Pods that the kubelet stops itself are not created again.
func (t *targetedNode) suppression() cordon.Suppression {
	kept, set := t.target.suppression, t.target.set
	if t.kubeletStops {
		set, kept = cordon.WithDaemonSets(set, t.depth)
	}
	if t.unclear {
		return kept.WithShown(t.object, set)
	}
	return kept
}
