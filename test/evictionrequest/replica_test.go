package evictionrequest

import (
	"testing"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/test/cluster"
)

// Of two managers one acts. When it is killed, the other goes on where it was, though the
// Lease of EvictionRequests has just been renewed: it is that of both.
func TestLongAnotherManagerGoesOn(t *testing.T) {
	t.Parallel()
	w := bareWorld(t, cluster.Spec{EvictionRequests: true, Replicas: true, Nodes: 1, Alone: true})
	first := w.cluster.StartReplica(t)
	w.awaitState(first, core.StateActive)
	second := w.cluster.StartReplica(t)
	pod := w.pod("web-0", "example.com/leader 20000")
	request := w.ask("example.com/upgrade", pod)
	w.awaitEviction("pod-1-web-0", awaiting, "example.com/leader Active, "+evictor+" Inactive")
	first.Kill()
	w.must(w.reports("pod-1-web-0", "example.com/leader", true))
	w.awaitState(second, core.StateActive)
	w.awaitEviction("pod-1-web-0", gone("web-0"), "example.com/leader Completed, "+evictor+" Completed")
	w.awaitRequest(request, gone("web-0"))
}
