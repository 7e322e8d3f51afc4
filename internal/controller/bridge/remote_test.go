package bridge

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	core "ebbtide.dev/ebbtide/internal/core/bridge"
)

// Who looks at a node of another cluster is woken by it, and by what happens to the cluster;
// who has looked away, or looks at something else by now, is not.
func TestWhoLooksAtANodeElsewhere(t *testing.T) {
	t.Parallel()
	prod, test := types.NamespacedName{Namespace: "infra", Name: "prod"}, types.NamespacedName{Namespace: "infra", Name: "test"}
	q := func(name string) request { return requestOf(core.ClusterAPI, "infra", name)[0] }
	s := newWatchIndex()
	s.watch(q("a"), watchedNode{cluster: prod, node: "node-1"})
	s.watch(q("b"), watchedNode{cluster: prod, node: "node-2"})
	s.watch(q("c"), watchedNode{cluster: test, node: "node-1"})
	woken := func(want int, cluster types.NamespacedName, node string) {
		t.Helper()
		if got := s.of(cluster, node); len(got) != want {
			t.Errorf("%s, node %q: %v, want %d", cluster, node, got, want)
		}
	}
	woken(1, prod, "node-1")
	woken(2, prod, "")
	woken(0, test, "node-2")

	s.watch(q("a"), watchedNode{cluster: prod, node: "node-2"})
	woken(0, prod, "node-1")
	woken(2, prod, "node-2")
	if before, known := s.unwatch(q("a")); !known || before.node != "node-2" {
		t.Errorf("%+v, %v", before, known)
	}
	for _, name := range []string{"a", "b", "c"} {
		s.unwatch(q(name))
	}
	woken(0, prod, "")
	if len(s.all)+len(s.at) > 0 {
		t.Errorf("%v and %v are remembered", s.all, s.at)
	}
}

// A cluster that hangs has the workers of its own Machines, from the pass on that knows of it.
func TestMachineTakesItsWorkerFromItsCluster(t *testing.T) {
	t.Parallel()
	prod, test := types.NamespacedName{Namespace: "infra", Name: "prod"}, types.NamespacedName{Namespace: "infra", Name: "test"}
	q := requestOf(core.ClusterAPI, "infra", "a")[0]
	s := newWatchIndex()
	share := func(want string) {
		t.Helper()
		if got := s.share(q); got != want {
			t.Errorf("it takes its worker from %q, want %q", got, want)
		}
	}
	share("infra")
	for _, at := range []types.NamespacedName{prod, test} {
		if s.watch(q, watchedNode{cluster: at, node: "node-1"}) {
			t.Errorf("the first pass that needs cluster %s has its worker from there", at)
		}
		if !s.watch(q, watchedNode{cluster: at, node: "node-1"}) {
			t.Errorf("the second pass that needs cluster %s has no worker from there", at)
		}
		share(at.String())
	}
	s.unwatch(q)
	share("infra")
}

// Pods of another cluster change while thousands of its Machines are drained: each change
// costs the same.
func BenchmarkWhoLooksAtANode(b *testing.B) {
	s := newWatchIndex()
	cluster := types.NamespacedName{Namespace: "infra", Name: "prod"}
	for n := range 5000 {
		name := fmt.Sprintf("worker-%d", n)
		s.watch(requestOf(core.ClusterAPI, "infra", name)[0], watchedNode{cluster: cluster, node: name})
	}
	for b.Loop() {
		if len(s.of(cluster, "worker-17")) != 1 {
			b.Fatal("it is not found")
		}
	}
}
