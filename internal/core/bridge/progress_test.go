package bridge_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/bridge"
)

// A drain of many pods changes its maintenance many times, and what is decided a few times:
// what reads alike has to lead to the same, and what leads to something else has to read so.
func TestChangesOfAMaintenanceThatWake(t *testing.T) {
	decided := func(change func(*v1alpha1.NodeMaintenance)) (bridge.Progress, string) {
		s := begun(t, world(t), 5)
		change(s.Maintenance)
		d := bridge.Decide(s)
		if d.Said != nil && d.Said.Reason == v1alpha1.EventBridgeDraining {
			d.Said.Message = "" // How many are left is said once.
		}
		return bridge.ReadProgress(s.Maintenance), told(t, d)
	}
	before, decision := decided(func(*v1alpha1.NodeMaintenance) {})
	for name, test := range map[string]struct {
		change  func(*v1alpha1.NodeMaintenance)
		matters bool
	}{
		"a pod leaves":     {change: func(m *v1alpha1.NodeMaintenance) { m.Status.NodeStatuses[0].PodsPendingEvacuation = 4 }},
		"a summary":        {change: func(m *v1alpha1.NodeMaintenance) { m.Status.Summary = "4 pods left" }},
		"nothing is said":  {func(m *v1alpha1.NodeMaintenance) { m.Status.NodeStatuses = nil }, true},
		"the last one has": {func(m *v1alpha1.NodeMaintenance) { *m = *begun(t, world(t), 0).Maintenance }, true},
		"it is ended":      {func(m *v1alpha1.NodeMaintenance) { m.Spec.Stage = v1alpha1.StageComplete }, true},
		"it only cordons":  {func(m *v1alpha1.NodeMaintenance) { m.Spec.Stage = v1alpha1.StageCordon }, true},
		"it is deleted":    {func(m *v1alpha1.NodeMaintenance) { m.DeletionTimestamp = &metav1.Time{Time: now} }, true},
		"it is for others": {func(m *v1alpha1.NodeMaintenance) { m.Labels = nil }, true},
		"of another one":   {func(m *v1alpha1.NodeMaintenance) { m.Annotations[v1alpha1.BridgeMachineAnnotation] = "infra/other" }, true},
		"of another one of its name": {func(m *v1alpha1.NodeMaintenance) {
			m.Annotations[v1alpha1.BridgeUIDsAnnotation] = "machine-2/node-uid-1"
		}, true},
		"another node": {func(m *v1alpha1.NodeMaintenance) {
			m.Spec.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values = []string{"node-8"}
		}, true},
	} {
		after, decidedThen := decided(test.change)
		if matters := decidedThen != decision; matters != test.matters {
			t.Errorf("%s: the decision changes: %t, from %q to %q", name, matters, decision, decidedThen)
		}
		if reads := after != before; reads != test.matters {
			t.Errorf("%s: it reads otherwise: %t, want %t", name, reads, test.matters)
		}
	}
}
