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
			all = append(all, fmt.Sprintf("%s %s %d: %s %s", r.Type, blocker.ObjectText(r.Object), r.PodCount, r.Message, r.Suggestion))
		}
	}
	return all
}

func TestPodsThatStayAreNamed(t *testing.T) {
	skipped := labelled(v1alpha1.DrainLabel, "skip")
	for name, test := range map[string]struct {
		prepare func(*world, *v1alpha1.NodeMaintenance)
		with    []func(*corev1.Pod)
		want    string
	}{
		"a static pod without an agent": {
			with: []func(*corev1.Pod){static},
			want: "NoEvacuator Pod/default/pod-0001 1: The pod is of type Static, and nobody keeps it from coming back. To have it leave, run the node agent on the node, or take the pod's manifest away from its kubelet.",
		},
		"a DaemonSet pod without an evacuator": {
			with: []func(*corev1.Pod){ofDaemonSet},
			want: "NoEvacuator DaemonSet/default/agent 1: The pod is of type DaemonSet, and nobody keeps it from coming back. To have it leave, run an evacuator for it that registers on the pod by annotation evacuation.coordination.k8s.io/priority_<class>.",
		},
		"below drainDepth": {
			prepare: func(w *world, m *v1alpha1.NodeMaintenance) {
				w.runners.DaemonSets, m.Spec.DrainDepth = true, v1alpha1.PodTypeDefault
			},
			with: []func(*corev1.Pod){ofDaemonSet},
			want: "DrainDepth DaemonSet/default/agent 1: The pod is of type DaemonSet, and spec.drainDepth ends before. To have it leave, set spec.drainDepth to DaemonSet.",
		},
		"label skip": {
			with: []func(*corev1.Pod){skipped},
			want: "DrainLabel Pod/default/pod-0001 1: The pod stays, as its label cluster.x-k8s.io/drain asks. To have it leave: kubectl -n default label pod pod-0001 cluster.x-k8s.io/drain-",
		},
		"a rule": {
			prepare: func(w *world, _ *v1alpha1.NodeMaintenance) {
				rule := orderOf("web", 0)
				rule.Spec.Drain = v1alpha1.MachineDrainRuleDrain{Behavior: v1alpha1.DrainBehaviorSkip}
				w.rules = append(w.rules, rule)
			},
			with: []func(*corev1.Pod){app("web")},
			want: "DrainRule Pod/default/pod-0001 1: The pod stays, as MachineDrainRule/ebbtide-system/web skips it. To have it leave, change the rule: kubectl -n ebbtide-system edit machinedrainrule web",
		},
		"in place": {
			prepare: func(_ *world, m *v1alpha1.NodeMaintenance) { inPlace(m, 300) },
			with:    []func(*corev1.Pod){stays},
			want:    "InPlace Pod/default/pod-0001 1: The pod stays while the node is away, as its label ebbtide.dev/on-upgrade asks. To have it leave: kubectl -n default label pod pod-0001 ebbtide.dev/on-upgrade-",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "one")
			m := w.maintenance("m", drain, nil, "one")
			if test.prepare != nil {
				test.prepare(w, m)
			}
			w.run("one", 1, 0, test.with...)
			w.passAndTell("one")
			if diff := cmp.Diff([]string{test.want}, retainedLines(m)); diff != "" {
				t.Errorf("retained (-want +got):\n%s", diff)
			}
			if s := m.Status.NodeStatuses[0]; s.PodsRetained != 1 || len(s.Blockers) > 0 || !isTrue(m.Status.Conditions, v1alpha1.ConditionDrained) {
				t.Errorf("what stays is in the way: %+v", s)
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
