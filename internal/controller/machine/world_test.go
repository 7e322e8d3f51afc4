package machine

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/eviction"
	"ebbtide.dev/ebbtide/internal/workload"
	"ebbtide.dev/ebbtide/test/fault"
)

const (
	racks  = "infrastructure.example.com/v1"
	boots  = "bootstrap.example.com/v1"
	holder = "example.com/provider"
)

var (
	key       = types.NamespacedName{Namespace: "fleet", Name: "one"}
	rackKind  = kindOf(v1alpha1.ObjectReference{APIVersion: racks, Kind: "Rack"})
	bootsKind = kindOf(v1alpha1.ObjectReference{APIVersion: boots, Kind: "Boots"})
)

// world is an API server, the cluster of the Machine behind the same one, and a
// manager on it that is stepped by hand. Its time passes when it is told to.
type world struct {
	t   *testing.T
	api *fault.Server

	// skewed is true while our clock is not trusted.
	skewed bool

	manager *reconciler
	queue   *eviction.Queue
	// evicted are the pods that were evicted, in their order.
	mu      sync.Mutex
	evicted []string
	// users are the Machines that use the cluster.
	users map[types.NamespacedName]bool
	// connect is the client of the cluster if it is not the manager's.
	connect client.Client
	// live is its API server if that is not the manager's.
	live client.Reader
	// unreachable is why there is no connection; nil if there is.
	unreachable error
	logger      logr.Logger
	// others act after every pass; nil if nobody does.
	others func()
	stop   func()
}

func inWorld(t *testing.T, objects []client.Object, story func(*world)) {
	t.Helper()
	t.Parallel()
	inWorldNow(t, objects, story)
}

func inWorldNow(t *testing.T, objects []client.Object, story func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, api: fault.NewServer(t, objects...)}
		w.restart()
		// A story that fails ends here, too.
		defer func() { w.stop() }()
		story(w)
	})
}

// restart replaces the manager by one that remembers nothing.
func (w *world) restart() {
	if w.stop != nil {
		w.stop()
	}
	w.users = map[types.NamespacedName]bool{}
	w.queue = eviction.NewQueue(eviction.QueueOptions{
		Dispatcher: eviction.NewDispatcher(eviction.DispatcherOptions{Reader: w.api.Manager, Now: time.Now}),
		Evictor:    w, Reader: w.api.Manager, Changed: func(types.NamespacedName) {},
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = w.queue.Start(ctx) })
	w.stop = func() {
		cancel()
		running.Wait()
	}
	w.manager = newReconciler(w.api.Manager, w.api.Manager, w, clock.RealClock{}, newMetrics(prometheus.NewRegistry(), time.Now))
	w.manager.emit = w.api.Emit
	w.manager.now = func() (time.Time, bool) { return time.Now(), w.skewed }
	w.manager.object = func(ctx context.Context, key types.NamespacedName, kind schema.GroupVersionKind) (Found, error) {
		object, err := readLive(ctx, w.api.Manager, key, kind)
		return Found{object, true}, err
	}
}

func (w *world) Use(_ *v1alpha1.Cluster, user types.NamespacedName) (*workload.Connection, error) {
	w.users[user] = true
	if w.unreachable != nil {
		return nil, w.unreachable
	}
	connected := &workload.Connection{Client: w.api.Manager, Live: w.api.Manager, Evictions: w.queue, Now: func() (time.Time, bool) { return time.Now(), false }}
	if w.connect != nil {
		connected.Client = w.connect
	}
	if w.live != nil {
		connected.Live = w.live
	}
	return connected, nil
}

func (w *world) Release(_, user types.NamespacedName) { delete(w.users, user) }

// Evict evicts a pod, which is gone at once.
func (w *world) Evict(ctx context.Context, pod *corev1.Pod, _ *int64) metav1.Status {
	err := w.api.Write("evict Pod "+pod.Name, func() error {
		w.mu.Lock()
		w.evicted = append(w.evicted, pod.Name)
		w.mu.Unlock()
		return client.IgnoreNotFound(w.api.Delete(ctx, pod))
	})
	if err != nil {
		return metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
	}
	return metav1.Status{Status: metav1.StatusSuccess}
}

// step runs one pass, then everybody else, and lets a moment pass.
func (w *world) step() {
	w.t.Helper()
	if _, err := w.manager.Reconcile(log.IntoContext(w.t.Context(), w.logger), reconcile.Request{NamespacedName: key}); err != nil && !w.api.Killed() {
		w.t.Fatalf("reconcile: %v", err)
	}
	synctest.Wait()
	if w.api.Killed() {
		w.api.Revive()
		w.restart()
	}
	w.provide()
	if w.others != nil {
		w.others()
	}
	time.Sleep(100 * time.Millisecond)
	synctest.Wait()
}

// steps runs passes until the state is reached.
func (w *world) steps(what string, reached func() bool) {
	w.t.Helper()
	for range 100 {
		if reached() {
			return
		}
		w.step()
	}
	m := w.machine()
	w.t.Fatalf("waited for %s in vain; Machine %+v; writes %s", what, m, strings.Join(w.api.Writes(), "\n"))
}

// settle runs passes until nothing is written any more.
func (w *world) settle() {
	w.t.Helper()
	quiet := 0
	for range 100 {
		before := len(w.api.Writes())
		w.step()
		quiet++
		if len(w.api.Writes()) > before {
			quiet = 0
		}
		if quiet == 3 {
			return
		}
	}
	w.t.Fatalf("the world did not settle; writes %s", strings.Join(w.api.Writes(), "\n"))
}

// provide does what the providers do: bootstrap data and infrastructure are ready
// as soon as a Machine owns them, and gone as soon as they are to be.
func (w *world) provide() {
	w.t.Helper()
	for _, object := range []*unstructured.Unstructured{w.object(rackKind.Kind), w.object(bootsKind.Kind)} {
		switch {
		case object == nil:
		case object.GetDeletionTimestamp() != nil:
			object.SetFinalizers(nil)
			w.must(client.IgnoreNotFound(w.api.Update(w.t.Context(), object)))
		case len(object.GetOwnerReferences()) > 0 && object.Object["status"] == nil:
			object.Object["status"] = map[string]any{"ready": true, "dataSecretName": "data"}
			object.Object["spec"] = map[string]any{"providerID": "rack:///one"}
			w.must(w.api.Update(w.t.Context(), object))
		}
	}
}

// object reads the Rack or the Boots; nil if there are none.
func (w *world) object(kind string) *unstructured.Unstructured {
	w.t.Helper()
	object := blank(rackKind)
	if kind == bootsKind.Kind {
		object = blank(bootsKind)
	}
	if w.find(object, key.Namespace, key.Name) {
		return object
	}
	return nil
}

func (w *world) machine() *v1alpha1.Machine {
	w.t.Helper()
	m := &v1alpha1.Machine{}
	if w.find(m, key.Namespace, key.Name) {
		return m
	}
	return nil
}

func (w *world) condition(kind string) string {
	w.t.Helper()
	c := meta.FindStatusCondition(w.machine().Status.Conditions, kind)
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%s because %s: %s", c.Status, c.Reason, c.Message)
}

func (w *world) find(object client.Object, namespace, name string) bool {
	w.t.Helper()
	err := w.api.Get(w.t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, object)
	w.must(client.IgnoreNotFound(err))
	return err == nil
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// running brings the Machine up.
func (w *world) running() {
	w.t.Helper()
	w.steps("the Machine to run", func() bool { return w.machine().Status.Phase == v1alpha1.MachineRunning })
}

func (w *world) refuse(refused string, answer error) {
	w.api.Refuse = func(request string) error {
		if request == refused {
			return answer
		}
		return nil
	}
}

// deleted deletes the Machine and waits until it is gone.
func (w *world) deleted() {
	w.t.Helper()
	w.must(w.api.Delete(w.t.Context(), w.machine()))
	w.steps("the Machine to go", func() bool { return w.machine() == nil })
}

// fleet is a Cluster with a Machine that names a Rack and Boots, and the Node that
// the Rack will have made, with two pods.
func fleet() []client.Object {
	return []client.Object{
		&v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "shop"}},
		&v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "machine", Generation: 1},
			Spec: v1alpha1.MachineSpec{
				ClusterName:       "shop",
				InfrastructureRef: v1alpha1.ObjectReference{APIVersion: racks, Kind: "Rack", Name: key.Name},
				Bootstrap: v1alpha1.MachineBootstrap{
					ConfigRef: &v1alpha1.ObjectReference{APIVersion: boots, Kind: "Boots", Name: key.Name},
				},
			},
		},
		external(racks, "Rack"), external(boots, "Boots"),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "node", UID: "node"},
			Spec:       corev1.NodeSpec{ProviderID: "rack:///one"},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		},
		aPod("a"), aPod("b"),
	}
}

func external(apiVersion, kind string) *unstructured.Unstructured {
	object := blank(kindOf(v1alpha1.ObjectReference{APIVersion: apiVersion, Kind: kind}))
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	object.SetUID(types.UID("uid-of-" + kind))
	object.SetFinalizers([]string{holder})
	return object
}

func aPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{"app": "shop"}},
		Spec:       corev1.PodSpec{NodeName: "node"},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
}
