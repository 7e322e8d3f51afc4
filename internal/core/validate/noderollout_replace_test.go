package validate_test

import (
	"testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/validate"
	"ebbtide.dev/ebbtide/test/golden"
)

func TestReplacementNeedsTheRightToDeleteMachines(t *testing.T) {
	replaces := func(r *v1alpha1.NodeRollout) { r.Spec.After = v1alpha1.AfterReplace }
	for name, tt := range map[string]struct {
		old, new *v1alpha1.NodeRollout
		want     bool
	}{
		"new":                {nil, rollout(rack(""), replaces), true},
		"changed to it":      {rollout(rack("")), rollout(rack(""), replaces), true},
		"continued":          {rollout(rack(""), replaces, paused), rollout(rack(""), replaces), true},
		"of others":          {rollout(rack(""), replaces), rollout(everything(""), replaces), true},
		"labelled":           {rollout(rack(""), replaces), rollout(rack(""), replaces, teamed), false},
		"aborted":            {rollout(rack(""), replaces), rollout(rack(""), replaces, aborted), false},
		"deleted":            {rollout(rack(""), replaces), nil, false},
		"no longer replaced": {rollout(rack(""), replaces), rollout(rack("")), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (validate.RolloutChange{Old: tt.old, New: tt.new}).Replaces(); got != tt.want {
				t.Errorf("replaces is %v, want %v", got, tt.want)
			}
		})
	}
	golden.Message(t, validate.MachineRefusal("jane", "machines.cluster.x-k8s.io", ""))
	golden.Message(t, validate.MachineRefusal("jane", "nodeclaims.karpenter.sh", "RBAC: no"))
}
