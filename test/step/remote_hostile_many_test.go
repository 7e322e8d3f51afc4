package step

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/workload"
	"ebbtide.dev/ebbtide/test/heap"
	"ebbtide.dev/ebbtide/test/patience"
	"ebbtide.dev/ebbtide/test/step/remote"
)

// hoards are clusters that each stay within the bound of one, and keep what they can get.
var hoards = []attack{
	// Pods, as many as there may be.
	func(answer http.ResponseWriter, r *http.Request) {
		protobuf(answer)
		for n := range 11_000 {
			if _, err := answer.Write(remote.Event("ADDED", remote.Pod(n))); err != nil {
				return
			}
		}
		answer.(http.Flusher).Flush()
		<-r.Context().Done()
	},
	// Pods that change without end, each as large as it may be.
	func(answer http.ResponseWriter, _ *http.Request) {
		protobuf(answer)
		pod := remote.Pod(0)
		pod.Labels = map[string]string{"large": strings.Repeat("x", 2<<20)}
		event := remote.Event("ADDED", pod)
		for {
			if _, err := answer.Write(event); err != nil {
				return
			}
			time.Sleep(100 * time.Millisecond) // The servers share the processors with the manager.
		}
	},
	// A list whose last page does not come.
	listsOnly(func(answer http.ResponseWriter, r *http.Request) {
		first, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		if first >= 15_000 {
			<-r.Context().Done()
			return
		}
		list := corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1", Continue: strconv.Itoa(first + 2500)}}
		for n := range 2500 {
			list.Items = append(list.Items, *remote.Pod(first + n))
		}
		protobuf(answer)
		_, _ = answer.Write(remote.Encoded("PodList", remote.Marshalled(&list)))
	}),
}

// mayTake is what all clusters may take of memory.
const mayTake = 64 << 20

// Twelve clusters of four namespaces hoard at once, each within its bound, and come back
// whenever they are let. The manager's memory stays within that of all, a cluster that
// takes little is never disconnected, and one that comes in the middle is connected.
func TestManyHostileClusters(t *testing.T) {
	pace := quick
	pace.Answer, pace.Message = asSlow, 5*time.Second // All of them share two cores.
	w := startRemotes(t, workload.Options{Pace: &pace, RemoteMemory: 32 << 20, RemotesMemory: mayTake})
	good := w.remote(t, "good", w.kubeconfig(t, same))
	w.connect(t, good)
	var bad []*v1alpha1.Cluster
	for n := range 4 {
		bad = append(bad, w.hoarders(t, fmt.Sprint("bad-", n))...)
	}
	late := w.remote(t, "late", w.kubeconfig(t, same))

	grown := heap.Grows(t, func() {
		w.hoardBeside(t, bad, good)
		w.connect(t, late)
	})

	for _, c := range []*v1alpha1.Cluster{good, late} {
		// A read waits some seconds for memory, which a busy machine may need longer to find.
		patience.Eventually(t, "cluster "+c.Name+" to be read", func(ctx context.Context) (string, bool) {
			err := w.connect(t, c).Live.List(ctx, &corev1.NodeList{}, client.Limit(1))
			return fmt.Sprint(err), err == nil
		})
	}
	if grown > 2*mayGrow {
		t.Errorf("the heap has grown by %d MiB, want at most %d MiB", grown>>20, 2*mayGrow>>20)
	}
	t.Logf("the heap has grown by %d MiB", grown>>20)
}

// hoardBeside lets clusters hoard until a quarter of them were disconnected, to make room for
// others. One that takes little is never to be among them.
func (w *remotes) hoardBeside(t *testing.T, bad []*v1alpha1.Cluster, good *v1alpha1.Cluster) {
	t.Helper()
	for _, c := range bad {
		_, _ = w.registry.Use(c, usingMachine)
	}
	disconnected := map[string]bool{}
	patience.Eventually(t, "some of them to be disconnected", func(context.Context) (string, bool) {
		said := ""
		if state := w.registry.State(client.ObjectKeyFromObject(good)); state.Reason == v1alpha1.ReasonLimitExceeded {
			t.Errorf("a cluster that takes little: %s: %s", state.Reason, state.Message)
		}
		for _, c := range bad {
			state := w.registry.State(client.ObjectKeyFromObject(c))
			said += "\n" + c.Name + ": " + state.Message
			if strings.Contains(state.Message, "the bound of the manager (--remote-clusters-memory)") {
				disconnected[c.Name] = true
			}
		}
		return fmt.Sprintf("%d were, now:%s", len(disconnected), said), 4*len(disconnected) >= len(bad)
	})
}

// hoarders are one cluster of each kind, in a namespace of their own.
func (w *remotes) hoarders(t *testing.T, name string) (all []*v1alpha1.Cluster) {
	t.Helper()
	own := *w
	own.namespace = w.Namespace(t)
	for n, hoard := range hoards {
		_, kubeconfig := w.front(t, func(answer http.ResponseWriter, r *http.Request) bool {
			pods := r.URL.Path == "/api/v1/pods" && r.URL.Query().Get("limit") != "1"
			if pods {
				hoard(answer, r)
			}
			return pods
		})
		all = append(all, own.remote(t, fmt.Sprint(name, "-", n), kubeconfig))
	}
	return all
}

// A cluster that does not answer gets no more connections than it may have, however much
// is asked of it at a time.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	w := startRemotes(t, workload.Options{Pace: &quick})
	held, release := make(chan struct{}, 1000), make(chan struct{})
	var open opened
	server, kubeconfig := serveBy(t, open.count, w.behind(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/api/v1/nodes/") {
			held <- struct{}{}
			<-release
		}
		return false
	}))
	c := w.remote(t, "east", kubeconfig)
	connection := w.connect(t, c)
	var asked sync.WaitGroup
	for n := range 100 {
		asked.Go(func() {
			_ = connection.Live.Get(t.Context(), client.ObjectKey{Name: fmt.Sprint("node-", n)}, &corev1.Node{})
		})
	}
	patience.Eventually(t, "all connections in use", func(context.Context) (string, bool) {
		n := open.now.Load()
		return fmt.Sprintf("%d connections to %s", n, server.URL), n == 32
	})
	patience.Eventually(t, "the cluster to be asked", func(context.Context) (string, bool) {
		return fmt.Sprintf("asked %d times at once", len(held)), len(held) >= 16
	})
	close(release)
	asked.Wait()
	if n := open.most.Load(); n > 32 {
		t.Errorf("the cluster had %d connections at once, want at most 32", n)
	}
}

// opened are the connections of a server, now and at the most.
type opened struct{ now, most atomic.Int32 }

// count is told of every connection by one goroutine of its own.
func (o *opened) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		for n, most := o.now.Add(1), o.most.Load(); n > most && !o.most.CompareAndSwap(most, n); most = o.most.Load() {
		}
	case http.StateClosed, http.StateHijacked:
		o.now.Add(-1)
	}
}
