package maintenance

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// settle finds the Evacuations that we asked for and that no intent in Drain
// asks for any more.
func (p *pass) settle() {
	if !p.hasStray() {
		return
	}
	for _, s := range p.sites {
		if s.frozen {
			continue
		}
		s.letGo(p.snapshot)
		// Only the ledger leads back to a node that no maintenance matches, so it
		// goes after everything else is done there.
		if len(s.shares) == 0 && len(s.withdraw) > 0 {
			s.cordon.change, s.cordon.events = nil, nil
		}
	}
}

// hasStray returns true if there are more Evacuations of ours than targeted pods
// that have one. It saves looking at the pods of nodes that are not in Drain.
func (p *pass) hasStray() bool {
	stray := 0
	for _, evacuation := range p.snapshot.Evacuations {
		stray += ones(ours(evacuation))
	}
	for _, s := range p.sites {
		for n := range s.pods {
			stray -= ones(ours(s.pods[n].evacuation) && s.targeted(&s.pods[n]))
		}
	}
	return stray > 0
}

// letGo collects the Evacuations of pods that are not targeted.
func (s *site) letGo(snapshot Snapshot) {
	targeted := map[types.UID]bool{}
	for n := range s.pods {
		if s.targeted(&s.pods[n]) {
			targeted[s.pods[n].pod.UID] = true
		}
	}
	for _, pod := range snapshot.Pods[s.node.Name] {
		if evacuation := snapshot.Evacuations[pod.UID]; ours(evacuation) && !targeted[pod.UID] {
			s.withdrawOne(pod, evacuation)
		}
	}
	slices.Sort(s.forbidden)
	slices.SortFunc(s.withdraw, func(a, b *v1alpha1.Evacuation) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

func (s *site) withdrawOne(pod *corev1.Pod, evacuation *v1alpha1.Evacuation) {
	if evacuation.Status.EvacuationCancellationPolicy == v1alpha1.CancellationForbid {
		s.forbidden = append(s.forbidden, pod.Namespace+"/"+pod.Name)
		return
	}
	s.withdraw = append(s.withdraw, evacuation)
}

// tellForbidden returns true in the pass in which the evacuations that may not
// be cancelled lose their maintenance.
func (s *site) tellForbidden() bool {
	return len(s.forbidden) > 0 && (s.cordon.change != nil || slices.ContainsFunc(s.shares, func(one *share) bool {
		return one.intent.stage == v1alpha1.StageComplete && one.intent.starts
	}))
}

// ours returns true if the Evacuation carries our instigator finalizer.
func ours(evacuation *v1alpha1.Evacuation) bool {
	return evacuation != nil && slices.Contains(evacuation.Finalizers, v1alpha1.NodeMaintenanceInstigator)
}
