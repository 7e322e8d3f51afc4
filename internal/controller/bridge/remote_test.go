package bridge

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	core "ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/workload"
)

// A cluster that hangs has the workers of its own Machines, from the pass on that knows of it.
func TestMachineTakesItsWorkerFromItsCluster(t *testing.T) {
	t.Parallel()
	q := requestOf(core.ClusterAPI, "infra", "a")[0]
	r := &reconciler{watchIndex: workload.NewWatchIndex[request, *workload.Connection]()}
	share := func(want string) {
		t.Helper()
		if got := r.share(q); got != want {
			t.Errorf("it takes its worker from %q, want %q", got, want)
		}
	}
	share("infra")
	for _, name := range []string{"prod", "test"} {
		at := types.NamespacedName{Namespace: "infra", Name: name}
		r.watchIndex.Watch(q, workload.Place{Cluster: at, Node: "node-1"}, nil)
		share(at.String())
	}
	r.watchIndex.Unwatch(q)
	share("infra")
}
