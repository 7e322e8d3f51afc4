package scenario

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

// One of three nodes is wanted back while the work on the others goes on. It takes pods again,
// its own stay, and the others are left alone.
func TestOneOfThreeNodesIsGivenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two", "three")
	w.pods(nodes[0], pod{name: "web"})
	w.pods(nodes[2], pod{name: "db", neverEvicted: true})
	name := w.forgetting("kernel")
	w.maintain("kernel", v1alpha1.StageDrain, nodes)
	w.awaitGone("web")
	w.eventually("the drain to be blocked", func() (bool, any) {
		got := w.plugin(w.ctx, "status", name)
		return got.Code == 2, got
	})

	if got := w.plugin(w.ctx, "complete", nodes[2]); got.Code != 0 || got.Out != "NodeMaintenance kernel continues without three; schedulable again: three\n" {
		t.Errorf("%+v", got)
	}
	w.assertUnschedulable(nodes[2], false)
	w.eventually("nobody to ask its pod to leave", func() (bool, any) {
		asked := w.evacuations()
		return len(asked) == 0, asked
	})
	w.awaitPod("db", "left alone", func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning })
	w.pods(nodes[2], pod{name: "new"})
	w.awaitDrained("kernel")
	for _, node := range nodes[:2] {
		n := &corev1.Node{}
		w.get(n, node)
		if !n.Spec.Unschedulable || !slices.Equal(cordon.Holders(n), []string{name}) {
			t.Errorf("node %s is not held any more: %+v", node, n)
		}
	}
	w.tells([]string{"status", name}, "2/2 nodes drained, 1 completed.", "three: complete. Given back.", "Drained: one, two")
	w.tells([]string{"why", "node/" + nodes[2]}, "Node three is schedulable")

	err := w.client.Patch(w.ctx, w.maintenance("kernel"), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"completedNodes":[{"name":"`+nodes[2]+`"},{"name":"any"}]}}`)))
	if err == nil || !strings.Contains(err.Error(), "spec.completedNodes: this NodeMaintenance does not have node any. ") {
		t.Errorf("a node of nobody is given back: %v", err)
	}
	if got := w.plugin(w.ctx, "complete", nodes[0], nodes[1]); got.Code != 0 || got.Out != "NodeMaintenance kernel is complete; schedulable again: one and two\n" {
		t.Errorf("%+v", got)
	}
	if got := w.plugin(w.ctx, "status", name); got.Code != 0 || strings.Contains(got.Out, "three") {
		t.Errorf("%+v", got)
	}
}

// tells runs the plugin, which has to print each of these.
func (w *world) tells(args []string, texts ...string) {
	w.t.Helper()
	got := w.plugin(w.ctx, args...)
	for _, text := range texts {
		if !strings.Contains(got.Out, text) {
			w.t.Errorf("%v does not tell %q: %+v", args, text, got)
		}
	}
}
