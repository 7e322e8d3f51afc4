package maintenance_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
)

func retainedLines(m *v1alpha1.NodeMaintenance) []string {
	var all []string
	for _, node := range m.Status.NodeStatuses {
		for _, r := range node.Retained {
			all = append(all, fmt.Sprintf("%s %s %d", r.Type, blocker.ObjectText(r.Object), r.PodCount))
		}
	}
	return all
}

// Pods of one owner are one entry, and a long status loses these entries first.
func TestPodsThatStayTakeLittleRoom(t *testing.T) {
	w := newWorld(t)
	for n := range 900 {
		name := fmt.Sprintf("ip-10-0-%04d.eu-central-1.compute.internal", n)
		w.node(name).Labels = map[string]string{"pool": "all"}
		w.run(name, 3, 0, ofDaemonSet)
		w.run(name, 12, 0, static)
	}
	m := w.maintenance("m", drain, nil)
	m.Spec.NodeSelector = labelledNodes("pool", "all")
	w.pass()
	w.pass()
	text, err := json.Marshal(m)
	if err != nil || len(text) > 1<<20 || len(m.Status.NodeStatuses) != 900 {
		t.Errorf("%d nodes are listed in %d bytes (%v)", len(m.Status.NodeStatuses), len(text), err)
	}
	if got := retainedLines(m); len(got) > 0 {
		t.Errorf("%d entries say which pods stay, though there is no room", len(got))
	}

	m.Spec.NodeSelector = named("ip-10-0-0000.eu-central-1.compute.internal")
	w.pass()
	got := m.Status.NodeStatuses[0].Retained
	if len(got) != 10 || got[0].PodCount != 3 || got[0].Object.Name != "agent" {
		t.Errorf("retained are %+v, want 10, the 3 pods of the DaemonSet first", got)
	}
}
