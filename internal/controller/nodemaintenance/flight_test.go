package nodemaintenance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/test/patience"
)

// hanging is a client whose creations in a namespace hang until they are let go.
type hanging struct {
	client.Client

	namespace string
	tries     atomic.Int32
	begin     func()
	free      chan struct{}
}

func (h *hanging) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if object.GetNamespace() == h.namespace {
		h.tries.Add(1)
		h.begin()
		<-h.free
	}
	return h.Client.Create(ctx, object, options...)
}

// hang has creations in a namespace hang, and passes wait for nothing once one does.
func hang(r *reconciler, namespace string) *hanging {
	begun := make(chan time.Time)
	h := &hanging{Client: r.client, namespace: namespace, free: make(chan struct{}), begin: sync.OnceFunc(func() { close(begun) })}
	r.client = h
	r.longest = func(maintenance.WriteKind) <-chan time.Time { return begun }
	return h
}

func inNamespaceOf(pod *corev1.Pod, namespace string) *corev1.Pod {
	pod.Namespace = namespace
	return pod
}

// awaitAsked runs passes until these pods are asked to leave.
func (w *world) awaitAsked(r *reconciler, pods ...string) {
	w.t.Helper()
	patience.Eventually(w.t, fmt.Sprintf("%v are asked to leave", pods), func(context.Context) (string, bool) {
		w.clock.Step(coalesce)
		w.reconcile(r)
		asked := w.evacuatedPods()
		return fmt.Sprint(asked), slices.Equal(asked, pods)
	})
}

func TestWriteThatHangsHoldsUpNoOtherOfItsGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aNode("one"), aNode("two"), aMaintenance("upgrade", "old"),
		inNamespaceOf(aPod("slow", "one"), "slow"), aPod("good", "two"))
	r := w.manager()
	h := hang(r, "slow")

	w.awaitAsked(r, "good")
	for range 10 {
		w.clock.Step(statusInterval)
		w.reconcile(r)
	}
	if tries := h.tries.Load(); tries != 1 {
		t.Errorf("a write that is under way was made %d times", tries)
	}

	close(h.free)
	w.awaitAsked(r, "good", "slow")
	patience.Eventually(t, "nothing is under way", func(context.Context) (string, bool) {
		w.reconcile(r)
		return "", !r.flights.has("one") && !r.flights.has("two")
	})
}

// Many passes at once begin writes of a namespace. When one is known to be slow, no more are
// begun than may be slow.
func TestNamespaceWithASlowWriteBeginsFewOthers(t *testing.T) {
	t.Parallel()
	f := newFlights()
	write := func(i int) change {
		return change{Write: maintenance.Write{Kind: maintenance.WriteEvacuation, Node: fmt.Sprint(i)}, namespace: "slow"}
	}
	one, two := group.Node("one"), group.Node("two")
	for i := range maxSlow + 1 {
		if !f.begin(one, write(i)) {
			t.Fatalf("write %d has to wait although none is slow", i)
		}
	}
	f.leave(write(0))
	if f.begin(two, write(maxSlow+1)) {
		t.Error("one more write is begun beside a slow one")
	}
	if woken := f.end(one, write(1), false); !slices.Equal(woken, []group.Member{two}) {
		t.Errorf("%v are woken, want the node that waits", woken)
	}
	f.end(one, write(2), false)
	if !f.begin(two, write(maxSlow+1)) {
		t.Error("a write has to wait although there is room")
	}
	f.end(one, write(0), true)
	f.end(two, write(maxSlow+1), false)
	for i := range maxSlow - 2 {
		f.end(one, write(i+3), false)
	}
	if len(f.count)+len(f.slow)+len(f.waiting) > 0 {
		t.Errorf("left behind: %v, %v, %v", f.count, f.slow, f.waiting)
	}
}

func TestRefusedWriteIsTriedBehindNewOnes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aNode("one"), aMaintenance("upgrade", "old"), aPod("a-refused", "one"), aPod("b-refused", "one"))
	r := w.manager()
	r.workers = 1
	var tried []string
	w.api.Refuse = func(request string) error {
		if !strings.HasPrefix(request, "create Evacuation") {
			return nil
		}
		tried = append(tried, request)
		if strings.Contains(request, "refused") {
			return errRefused
		}
		return nil
	}
	w.reconcile(r)
	w.must(w.api.Create(t.Context(), aPod("z-new", "one")))
	tried = nil
	w.clock.Step(longestRefusal)
	r.schedule.touch(w.clock.Now(), 0, group.Node("one"))
	w.reconcile(r)
	if len(tried) != 3 || !strings.Contains(tried[0], "z-new") {
		t.Errorf("tried in the order %v, want the new pod first", tried)
	}
}
