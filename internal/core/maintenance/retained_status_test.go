package maintenance_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

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

func TestRetainedPodsAreListedWithTheirReason(t *testing.T) {
	type with = []func(*corev1.Pod)
	nothing := func(*world, *v1alpha1.NodeMaintenance) {}
	for name, test := range map[string]struct {
		prepare func(*world, *v1alpha1.NodeMaintenance)
		with    with
		want    string
	}{
		"a static pod without an agent":        {nothing, with{static}, "NoEvacuator Pod/default/pod-0001 1"},
		"a DaemonSet pod without an evacuator": {nothing, with{ofDaemonSet}, "NoEvacuator DaemonSet/default/agent 1"},
		"below drainDepth": {func(w *world, m *v1alpha1.NodeMaintenance) {
			w.runners.DaemonSets, m.Spec.DrainDepth = true, v1alpha1.PodTypeDefault
		}, with{ofDaemonSet}, "DrainDepth DaemonSet/default/agent 1"},
		"label skip": {nothing, with{labelled(v1alpha1.DrainLabel, "skip")}, "DrainLabel Pod/default/pod-0001 1"},
		"a rule": {func(w *world, _ *v1alpha1.NodeMaintenance) {
			w.rules = append(w.rules, ruleFor("web", v1alpha1.DrainBehaviorSkip))
		}, with{app("web")}, "DrainRule Pod/default/pod-0001 1"},
		"in place": {func(_ *world, m *v1alpha1.NodeMaintenance) { inPlace(m, 300) }, with{stays}, "InPlace Pod/default/pod-0001 1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "one")
			m := w.maintenance("m", drain, nil, "one")
			test.prepare(w, m)
			w.run("one", 1, 0, test.with...)
			w.passAndTell("one")
			if diff := cmp.Diff([]string{test.want}, retainedLines(m)); diff != "" {
				t.Errorf("retained (-want +got):\n%s", diff)
			}
			if s := m.Status.NodeStatuses[0]; s.PodsRetained != 1 || len(s.Blockers) > 0 || !isTrue(m.Status.Conditions, v1alpha1.ConditionDrained) {
				t.Errorf("a retained pod blocks: %+v", s)
			}
		})
	}
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
