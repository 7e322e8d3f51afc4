package evictionrequest

import (
	"strings"
	"sync/atomic"
	"testing"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/test/cluster"
)

// These have a control plane on which the manager is killed, and clocks are set, one after
// the other.

// The manager is killed behind each of its writes. Another one goes on where it was: the
// pod is evicted once, in the order of its responders, and nothing is made twice.
func TestLongTheManagerIsKilledBehindEveryWrite(t *testing.T) {
	t.Parallel()
	w := bareWorld(t, cluster.Spec{EvictionRequests: true, Tapped: true, Nodes: 1, Alone: true})
	var seen []string
	var evicted atomic.Int32
	done := make(chan struct{})
	w.cluster.Witness(t, func(write cluster.Write) bool {
		select {
		case <-done:
			return false
		default:
		}
		if !strings.Contains(write.Path, w.ns) || !strings.Contains(write.Path, "evict") {
			return false
		}
		if strings.HasSuffix(write.Path, "/eviction") {
			evicted.Add(1)
		}
		seen = append(seen, write.String())
		return true
	})
	w.cluster.StartManager(t)
	before := w.cluster.Kills()
	pod := w.pod("web-0", "example.com/leader 20000")
	request := w.ask("example.com/upgrade", pod)
	w.awaitEviction("pod-1-web-0", awaiting, "example.com/leader Active, "+evictor+" Inactive")
	w.awaitRequest(request, awaiting)
	w.must(w.reports("pod-1-web-0", "example.com/leader", true))
	w.awaitGone(pod)
	w.awaitEviction("pod-1-web-0", gone("web-0"), "example.com/leader Completed, "+evictor+" Completed")
	w.awaitRequest(request, gone("web-0"))
	close(done)
	evictions := &lifecyclev1alpha1.EvictionList{}
	w.must(w.client.List(w.ctx, evictions, client.InNamespace(w.ns)))
	if len(evictions.Items) != 1 || evicted.Load() != 1 {
		t.Errorf("there are %d Evictions, and the pod was evicted %d times, want 1 each", len(evictions.Items), evicted.Load())
	}
	if kills := w.cluster.Kills() - before; kills < 6 || kills > 8 {
		t.Errorf("the manager was killed %d times behind %q, want each write once, and 8 writes at most", kills, seen)
	}
}
