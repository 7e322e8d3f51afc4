package view

import "ebbtide.dev/ebbtide/api/v1alpha1"

// withoutGates returns rollouts whose gates are open and whose requirements hold.
func withoutGates(all []*v1alpha1.NodeRollout) []*v1alpha1.NodeRollout {
	open := make([]*v1alpha1.NodeRollout, len(all))
	for i, r := range all {
		if open[i] = r; len(r.Spec.Gates)+len(r.Spec.Requires) > 0 {
			open[i] = r.DeepCopy()
			open[i].Spec.Gates, open[i].Spec.Requires = nil, nil
		}
	}
	return open
}

// assumed returns the gates and requirements of a rollout.
func assumed(spec *v1alpha1.NodeRolloutSpec) (all []string) {
	for i := range spec.Gates {
		all = append(all, "gate "+spec.Gates[i].Name)
	}
	for _, requirement := range spec.Requires {
		all = append(all, "requirement "+string(requirement))
	}
	return all
}
