package maintenance_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

// Of a fleet that is too large for a status those nodes are listed on which something is
// in the way, and what it is.
func TestAHugeStatusShowsWhatBlocks(t *testing.T) {
	const nodes, blocked = 3600, 1200
	w := newWorld(t)
	w.refused = map[maintenance.Write]maintenance.Refusal{}
	for n := range nodes {
		name := fmt.Sprintf("ip-10-0-%04d.eu-central-1.compute.internal", n)
		w.node(name).Labels = map[string]string{"pool": "all"}
		w.run(name, 1, 0)
		if n%3 == 0 && n/3 < blocked {
			refuse(w, w.run(name, 1, 0)[0])
		}
	}
	m := w.maintenance("m", drain, []v1alpha1.DrainPlanEntry{entryFor("web", "Default", 1000), entry("Default", 1000)})
	m.Spec.NodeSelector = labelledNodes("pool", "all")
	w.pass()
	w.pass()

	if text, err := json.Marshal(m); err != nil || len(text) > 1<<20 {
		t.Errorf("the object has %d bytes (%v)", len(text), err)
	}
	shown := 0
	for _, s := range m.Status.NodeStatuses {
		shown += len(s.Blockers)
	}
	if listed := len(m.Status.NodeStatuses); shown < 1000 || shown < listed-1 && shown < blocked {
		t.Errorf("%d blockers are shown for %d listed nodes, %q", shown, listed, m.Status.Summary)
	}
	if !w.settled() {
		t.Error("the status is recorded again and again")
	}
}

// refuse has the request that a pod leaves refused.
func refuse(w *world, pod *corev1.Pod) {
	w.refused[maintenance.Write{Kind: maintenance.WriteEvacuation, Pod: pod.UID}] = maintenance.Refusal{
		Message: "admission webhook denied the request: no", Since: w.now, Again: w.now.Add(time.Hour),
	}
}

// What a node records of those who hold it has to fit into the node.
func TestTheLedgerOfANodeIsBounded(t *testing.T) {
	w := newWorld(t, "one")
	var all []*v1alpha1.NodeMaintenance
	for n := range 200 {
		all = append(all, w.maintenance(fmt.Sprintf("m-%03d-%s", n, strings.Repeat("x", 240)), v1alpha1.StageCordon, nil, "one"))
	}
	broken := all[150]
	w.maintenances = all[100:]
	w.pass()
	w.pass()
	if listed := cordon.Holders(w.find("one")); !slices.Contains(listed, broken.Name) {
		t.Fatalf("the ledger names %d, not one of the first", len(listed))
	}
	// A maintenance that is not understood any more is known by the ledger alone.
	broken.Spec.DrainDepth = "Abyss"
	w.maintenances = all
	w.pass()
	w.pass()
	if text := w.find("one").Annotations[v1alpha1.CordonAnnotation]; len(text) > 20<<10 {
		t.Errorf("the ledger has %d bytes", len(text))
	}
	for _, d := range w.pass().Nodes {
		if d.Cordon != nil {
			t.Errorf("the ledger changes again and again: %+v", d.Cordon)
		}
	}
	for _, m := range all {
		if m != broken {
			m.Spec.Stage = v1alpha1.StageComplete
		}
	}
	w.told(nil, 3)
	if one := w.find("one"); !one.Spec.Unschedulable || !slices.Equal(cordon.Holders(one), []string{broken.Name}) {
		t.Errorf("the node takes pods, or is held by others: %v", cordon.Holders(one))
	}
	broken.Spec.Stage = v1alpha1.StageComplete
	w.told(nil, 3)
	if one := w.find("one"); one.Spec.Unschedulable || one.Annotations[v1alpha1.CordonAnnotation] != "" {
		t.Error("the node is not given back")
	}
}
