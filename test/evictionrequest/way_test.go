package evictionrequest

import (
	"strings"
	"testing"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/test/cluster"
)

// awaitMessage waits until the default evictor says something.
func (w *world) awaitMessage(eviction, words string) {
	w.t.Helper()
	e := &lifecyclev1alpha1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: eviction}}
	w.eventually("the evictor to say "+words, func() (bool, any) {
		if err := w.client.Get(w.ctx, client.ObjectKeyFromObject(e), e); err != nil {
			return false, err
		}
		own := core.ResponderOf(&e.Status, evictor)
		if own == nil || own.Message == nil {
			return false, own
		}
		return strings.Contains(*own.Message, words), *own.Message
	})
}

// A responder that is silent loses its turn to the evictor, and so does one that has spoken
// once: the manager wakes up by itself. That takes it up to one heartbeat after its start.
func TestLongAPodGoesThoughItsResponderIsSilent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pod := w.pod("web-0", "example.com/leader 20000")
	request := w.ask("example.com/upgrade", pod)
	e := w.awaitEviction("pod-1-web-0", awaiting, "example.com/leader Active, "+evictor+" Inactive")
	w.must(w.reports(e.Name, "example.com/leader", false))
	cluster.Rewrite(t, w.cluster, e, func(e *lifecyclev1alpha1.Eviction) {
		own := core.ResponderOf(&e.Status, "example.com/leader")
		for _, at := range []*metav1.Time{own.StartTime, own.HeartbeatTime} {
			at.Time = at.Add(2*time.Second - core.HeartbeatDeadline)
		}
	})
	w.awaitEviction(e.Name, gone("web-0"), "example.com/leader Interrupted, "+evictor+" Completed")
	w.awaitRequest(request, gone("web-0"))
}
