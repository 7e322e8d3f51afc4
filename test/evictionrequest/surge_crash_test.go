package evictionrequest

import (
	"strings"
	"sync"
	"testing"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/test/cluster"
)

// killedBehind has the manager killed behind each of its writes in the namespace, and returns
// behind which it was, and what ends that. A write that comes again is one that it has to
// make again and again: it may, three times.
func (w *world) killedBehind() (writes func() []string, end func()) {
	var mu sync.Mutex
	var seen []string
	times, over := map[string]int{}, false
	w.cluster.Witness(w.t, func(write cluster.Write) bool {
		mu.Lock()
		defer mu.Unlock()
		if over || !strings.Contains(write.Path, w.ns) || strings.Contains(write.Path, "/events") || times[write.String()] == 3 {
			return false
		}
		times[write.String()]++
		seen = append(seen, write.String())
		return true
	})
	writes = func() []string {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
	return writes, func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
	}
}

// The manager is killed behind each write of a surge. Another one goes on where it was: the pod
// is replaced, and nothing is left.
func TestLongTheManagerIsKilledBehindEveryWriteOfASurge(t *testing.T) {
	t.Parallel()
	w := bareWorld(t, cluster.Spec{EvictionRequests: true, Tapped: true, Nodes: 1, Alone: true})
	w.cluster.StartManager(t)
	pod, letNew := w.serve(named)
	endpoints := w.cluster.WatchEndpoints(t, client.ObjectKey{Namespace: w.ns, Name: "web"})
	writes, end := w.killedBehind()
	request := w.ask("example.com/upgrade", pod)
	w.awaitDetached(pod)
	letNew()
	w.awaitGone(pod)
	w.awaitRequest(request, gone(pod.Name))
	w.awaitEviction("pod-1-"+pod.Name, gone(pod.Name), surger+" Completed, "+evictor+" Inactive")
	w.awaitNoEvacuation()
	end()
	evictions := &lifecyclev1alpha1.EvictionList{}
	w.must(w.client.List(w.ctx, evictions, client.InNamespace(w.ns)))
	if len(evictions.Items) != 1 || len(w.pods()) != 1 {
		t.Errorf("there are %d Evictions and %d pods, want one each", len(evictions.Items), len(w.pods()))
	}
	endpoints.AssertAtLeast(t, 1)
	if kills := len(writes()); kills < 9 {
		t.Errorf("the manager was killed %d times only, behind %q", kills, writes())
	}
	t.Logf("killed behind %q", writes())
}
