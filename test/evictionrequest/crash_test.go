package evictionrequest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/evictionrequest/stage"
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

// The manager is away for longer than a responder may be silent, and its own evictor with it. No
// request fails because of that.
func TestLongAManagerThatWasAwayFailsNoRequest(t *testing.T) {
	t.Parallel()
	const pods = 20
	w := bareWorld(t, cluster.Spec{EvictionRequests: true, Tapped: true, Nodes: 1, Alone: true})
	manager := w.cluster.StartManager(t)
	b := w.budget(pods)
	requests := map[string]*lifecyclev1alpha1.EvictionRequest{}
	for n := range pods {
		name := fmt.Sprintf("web-%d", n)
		requests[name] = w.ask("example.com/upgrade", w.pod(name))
	}
	for name := range requests {
		w.awaitEviction("pod-1-"+name, awaiting, evictor+" Active")
	}
	manager.Kill(t)
	for name := range requests {
		e := &lifecyclev1alpha1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "pod-1-" + name}}
		cluster.Rewrite(t, w.cluster, e, func(e *lifecyclev1alpha1.Eviction) { stage.Age(e, core.HeartbeatDeadline+time.Hour) })
	}
	manager.Start(t)
	for name := range requests {
		e := w.awaitEviction("pod-1-"+name, awaiting, evictor+" Active")
		w.eventually("the evictor to report", func() (bool, any) {
			w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(e), e))
			own := core.Active(&e.Status)
			return own != nil && own.HeartbeatTime != nil && time.Since(own.HeartbeatTime.Time) < core.HeartbeatDeadline, e.Status
		})
	}
	w.must(w.client.Delete(w.ctx, b))
	for name, request := range requests {
		w.awaitRequest(request, gone(name))
	}
}

// The clock that counts is that of the API server: what is written is dated by its answers.
func TestLongTimesAreThoseOfTheAPIServer(t *testing.T) {
	t.Parallel()
	w := bareWorld(t, cluster.Spec{EvictionRequests: true, Tapped: true, Nodes: 1, Alone: true})
	w.cluster.StartManager(t)
	// As far as the API server takes a time for its own.
	const ahead = 20 * time.Second
	w.cluster.SetServerClock(t, ahead)
	n := 0
	w.eventually("turns that begin by the other clock", func() (bool, any) {
		n++
		time.Sleep(300 * time.Millisecond)
		name := fmt.Sprintf("web-%d", n)
		w.ask("example.com/upgrade", w.pod(name, "example.com/leader 20000"))
		e := w.awaitEviction("pod-1-"+name, awaiting, "example.com/leader Active, "+evictor+" Inactive")
		since := time.Until(core.Active(&e.Status).StartTime.Time)
		return since > ahead-5*time.Second, since
	})
}
