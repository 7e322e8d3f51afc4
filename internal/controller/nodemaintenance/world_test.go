package nodemaintenance

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/kube"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// world is an API server without admission and a clock that only moves when it
// is told to. Single requests of the manager can be made to fail.
type world struct {
	t *testing.T
	// api is everybody else's client, managed the manager's.
	api, managed client.WithWatch
	clock        *testingclock.FakeClock
	events       *journal

	mu sync.Mutex
	// refuse is asked before every write of the manager, "<verb> <kind> <name>".
	refuse func(write string) error
	// unreadable is the list that cannot be read.
	unreadable string
	writes     []string
	// run runs one pass of the manager and returns whether it changed anything.
	run func() bool
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatalf("build the scheme: %v", err)
	}
	w := &world{
		t: t, clock: testingclock.NewFakeClock(noon), events: &journal{},
	}
	w.api = fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.NodeMaintenance{}, &v1alpha1.Evacuation{}, &corev1.Node{}).
		WithIndex(&corev1.Pod{}, kube.PodNodeField, kube.PodNode).
		Build()
	w.managed = interceptor.NewClient(w.api, w.interceptor())
	return w
}

func (w *world) interceptor() interceptor.Funcs {
	return interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if reflect.TypeOf(list).Elem().Name() == w.unreadable {
				return fmt.Errorf("the cache has no %s", w.unreadable)
			}
			return c.List(ctx, list, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := w.write("create", object); err != nil {
				return err
			}
			return c.Create(ctx, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := w.write("patch", object); err != nil {
				return err
			}
			return c.Patch(ctx, object, patch, options...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, object client.Object, options ...client.SubResourceUpdateOption) error {
			if err := w.write("update "+sub+" of", object); err != nil {
				return err
			}
			return c.SubResource(sub).Update(ctx, object, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if err := w.write("patch "+sub+" of", object); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, object, patch, options...)
		},
	}
}

func (w *world) write(verb string, object client.Object) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	kind, err := w.api.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	write := verb + " " + kind.Kind + " " + object.GetName()
	if w.refuse != nil {
		if err := w.refuse(write); err != nil {
			return err
		}
	}
	w.writes = append(w.writes, write)
	return nil
}

// manager is a reconciler without any memory.
func (w *world) manager() *reconciler {
	return newReconciler(w.managed, w.events.emit, w.clock, newMetrics(prometheus.NewRegistry()))
}

func (w *world) get(object client.Object, namespace, name string) {
	w.t.Helper()
	if err := w.api.Get(w.t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, object); err != nil {
		w.t.Fatalf("get %T %s: %v", object, name, err)
	}
}

func (w *world) node(name string) *corev1.Node {
	w.t.Helper()
	var node corev1.Node
	w.get(&node, "", name)
	return &node
}

func (w *world) maintenance(name string) *v1alpha1.NodeMaintenance {
	w.t.Helper()
	var maintenance v1alpha1.NodeMaintenance
	w.get(&maintenance, "", name)
	return &maintenance
}

func (w *world) evacuations() []v1alpha1.Evacuation {
	w.t.Helper()
	var list v1alpha1.EvacuationList
	if err := w.api.List(w.t.Context(), &list); err != nil {
		w.t.Fatalf("list evacuations: %v", err)
	}
	return list.Items
}

// journal collects what was published, as "<reason> on <kind>/<name>: <message>".
type journal struct {
	mu        sync.Mutex
	published []string
}

func (j *journal) emit(happened ...event.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range happened {
		j.published = append(j.published, fmt.Sprintf("%s on %s/%s: %s", e.Reason, e.Regarding.Kind, e.Regarding.Name, e.Message))
	}
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string(nil), j.published...)
}

func aNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{"pool": "old"},
	}}
}

func aPod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{"app": "shop"}},
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// aMaintenance drains the nodes of the pool.
func aMaintenance(name, pool string) *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-of-" + name), Generation: 1, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
		},
		Spec: v1alpha1.NodeMaintenanceSpec{
			Stage: v1alpha1.StageDrain,
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{pool},
				}},
			}}},
		},
	}
}
