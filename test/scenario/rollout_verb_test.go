package scenario

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// An administrator starts a rollout, which stops at the first node that fails, asks why, tries the
// node again, and has all nodes upgraded.
func TestRolloutIsStartedAndMendedByVerbs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two", "three")
	w.pods(nodes[0], pod{name: "db", neverEvicted: true})
	work := w.work(nodes)
	w.endRollout("night")
	name := w.name("night")
	does := func(code int, words string, args ...string) {
		t.Helper()
		if got := w.plugin(w.ctx, args...); got.Code != code || !strings.Contains(got.Out+got.ErrOut, words) {
			t.Fatalf("%v: exit code %d, want %d and %q:\n%s%s", args, got.Code, code, words, got.Out, got.ErrOut)
		}
	}
	kubelet := "kubelet=" + newKubelet
	start := append([]string{"rollout", "start"}, append(nodes, "--until", kubelet, "--until", "readySeconds=0", "--name", name, "--drain-timeout=3s", "--retries=0")...)

	does(0, "ORDER", append([]string{"rollout", "plan"}, start[2:]...)...)
	does(2, "MaxFailures", start...)
	does(2, "one (DrainTimedOut)", "rollout", "status", name)
	does(0, "It waits in NodeRollout night. MaxFailures", "why", "node/"+nodes[1])
	does(2, "These would never start by themselves", "rollout", "plan", "noderollout/"+name)
	w.deleteBudget("db")
	// Three seconds are too few for busy cores.
	w.changeRollout("night", func(spec *v1alpha1.NodeRolloutSpec) { spec.Failure.DrainTimeoutSeconds = new(int32(600)) })
	does(0, "retries one", "rollout", "retry", name, nodes[0])
	does(0, "NodeRollout night is complete", "rollout", "watch", name, "--timeout=2m")
	does(0, "night", "status", "--all", "-o", "name")
	work.assertAtMost(1)
	for _, node := range nodes {
		w.awaitNode(node, "upgraded and in service", func(n *corev1.Node) bool {
			return !n.Spec.Unschedulable && n.Status.NodeInfo.KubeletVersion == newKubelet
		})
	}
}

// drain of several nodes drains one after the other, says how to give them back, and can be repeated.
func TestDrainOfSeveralNodesIsOneCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("a", "b", "c")
	for _, node := range nodes {
		w.pods(node, pod{name: "web-" + node[len(w.prefix):]})
	}
	w.endRollout("gone")
	name := w.name("gone")
	drain := []string{"drain", nodes[1], nodes[0], "--max", "2", "--name", name, "--timeout=2m"}

	for range 2 {
		got := w.plugin(w.ctx, drain...)
		if want := "Drained 2 nodes. Return to service with\n  kubectl ebbtide complete noderollout/gone\n"; got.Code != 0 || !strings.HasSuffix(got.Out, want) {
			t.Fatalf("drain: %+v", got)
		}
	}
	w.assertStaysCordoned(nodes[0])
	w.assertStaysCordoned(nodes[1])
	w.assertUnschedulable(nodes[2], false)
	if got := w.plugin(w.ctx, "complete", "noderollout/"+name); got.Code != 0 {
		t.Errorf("complete: %+v", got)
	}
	for _, node := range nodes[:2] {
		w.assertUnschedulable(node, false)
	}
}
