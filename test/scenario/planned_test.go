package scenario

import (
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// A maintenance in Idle is a preview: kubectl alone shows what it would do, and a drain
// then does that.
func TestAPlannedMaintenanceIsAPreview(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	w.pods(node, pod{name: "web"}, pod{name: "db", neverEvicted: true}, pod{name: "tool", labels: map[string]string{v1alpha1.DrainLabel: "skip"}})
	w.eventually("the budget is counted", func() (bool, any) {
		b := &policyv1.PodDisruptionBudget{}
		w.get(b, "db")
		return b.Status.CurrentHealthy == 1, b.Status
	})

	w.maintain("upgrade", v1alpha1.StageIdle, []string{node})
	want := "1 pod would leave, 1 pod would not leave.|2|0|1|PDBUnsatisfiable 1|DrainLabel 1"
	w.awaitShown(want)
	w.assertUnschedulable(node, false)
	if asked := w.evacuations(); len(asked) > 0 {
		t.Errorf("a maintenance in Idle asks for evacuations: %v", asked)
	}

	w.setStage("upgrade", v1alpha1.StageDrain)
	w.awaitBlocker("upgrade", node, v1alpha1.BlockerPDBUnsatisfiable, "db")
	w.awaitGone("web")
	w.awaitShown("Waiting for blocked pods|0|1|1|PDBUnsatisfiable 1|DrainLabel 1")
}

// shown prints, with kubectl, what a status says of its only node.
const shown = `jsonpath={range .status.nodeStatuses[*]}{.drainMessage}|{.podsPendingEvacuation}|{.podsEvacuating}|{.podsRetained}` +
	`|{range .blockers[*]}{.type} {.podCount}{end}|{range .retained[*]}{.type} {.podCount}{end}{end}`

// awaitShown waits until kubectl shows this of the maintenance upgrade.
func (w *world) awaitShown(want string) {
	w.t.Helper()
	w.eventually("kubectl shows "+want, func() (bool, any) {
		out, err := w.cluster.Kubectl(w.t, "get", "nodemaintenance", w.name("upgrade"), "-o", shown)
		return err == nil && strings.TrimSpace(out) == want, out
	})
}
