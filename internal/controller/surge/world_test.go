package surge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/event"
	core "ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/kube"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

const hashLabel = appsv1.DefaultDeploymentUniqueLabelKey

// world is an API server with Deployment web of one pod, web-0, which is to be
// evacuated, and a clock that only moves when it is told to.
type world struct {
	t *testing.T
	// api is everybody else's client, managed the manager's.
	api, managed client.WithWatch
	clock        *testingclock.FakeClock
	reconciler   *reconciler
	woken        []item

	mu sync.Mutex
	// refuse is asked before every write and every live read of the manager,
	// "<verb> <kind> <name>".
	refuse func(request string) error
	writes []string
	events []string
}

func newWorld(t *testing.T, more ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatalf("build the scheme: %v", err)
	}
	w := &world{t: t, clock: testingclock.NewFakeClock(noon)}
	w.api = fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(append(more, aDeployment(), aSet(), aPod("web-0"))...).
		WithStatusSubresource(&v1alpha1.Evacuation{}).
		WithIndex(&corev1.Pod{}, kube.OwnerField, kube.Owner).
		WithIndex(&corev1.Pod{}, kube.PodSurgeField, kube.PodSurge).
		WithIndex(&appsv1.ReplicaSet{}, kube.OwnerField, kube.Owner).
		Build()
	w.managed = interceptor.NewClient(w.api, w.interceptor())
	w.restart()
	return w
}

// restart begins with a new manager that remembers nothing.
func (w *world) restart() {
	w.reconciler = &reconciler{
		client: w.managed, live: w.managed, emit: w.emit, clock: w.clock, mode: core.Annotated,
		metrics: newMetrics(prometheus.NewRegistry()), busy: newBusy(), wake: func(it item) { w.woken = append(w.woken, it) },
	}
}

func (w *world) interceptor() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if err := w.request("get", object, key.Name); err != nil {
				return err
			}
			return c.Get(ctx, key, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := w.request("patch", object, object.GetName()); err != nil {
				return err
			}
			return c.Patch(ctx, object, patch, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if err := w.request("delete", object, object.GetName()); err != nil {
				return err
			}
			return c.Delete(ctx, object, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if err := w.request("patch "+sub+" of", object, object.GetName()); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, object, patch, options...)
		},
	}
}

func (w *world) request(verb string, object client.Object, name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	kind, err := w.api.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	request := verb + " " + kind.Kind + " " + name
	if w.refuse != nil {
		if err := w.refuse(request); err != nil {
			return err
		}
	}
	if verb != "get" {
		w.writes = append(w.writes, request)
	}
	return nil
}

func (w *world) emit(happened ...event.Event) {
	for _, e := range happened {
		w.events = append(w.events, fmt.Sprintf("%s on %s/%s", e.Reason, e.Regarding.Kind, e.Regarding.Name))
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// web is the work item of the Deployment.
var web = item{types.NamespacedName{Namespace: "shop", Name: "web"}, "uid-of-web"}

// pod is nil if there is none.
func (w *world) pod(name string) *corev1.Pod {
	w.t.Helper()
	pod := &corev1.Pod{}
	err := w.api.Get(w.t.Context(), types.NamespacedName{Namespace: "shop", Name: name}, pod)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return pod
}

func (w *world) pods() []corev1.Pod {
	w.t.Helper()
	list := &corev1.PodList{}
	w.must(w.api.List(w.t.Context(), list))
	return list.Items
}

// ask asks for the evacuation of a pod and gives us the turn.
func (w *world) ask(pod *corev1.Pod) *v1alpha1.Evacuation {
	w.t.Helper()
	e := evacuation.New(pod, v1alpha1.NodeMaintenanceInstigator, nil)
	w.must(w.api.Create(w.t.Context(), e))
	e.Status.ActiveEvacuatorClass = v1alpha1.DeploymentEvacuatorClass
	e.Status.EvacuationProgressTimestamp = &metav1.Time{Time: w.clock.Now()}
	w.must(w.api.Status().Update(w.t.Context(), e))
	return e
}

func (w *world) evacuation(pod *corev1.Pod) *v1alpha1.Evacuation {
	w.t.Helper()
	e := &v1alpha1.Evacuation{}
	w.must(w.api.Get(w.t.Context(), types.NamespacedName{Namespace: "shop", Name: evacuation.Name(pod)}, e))
	return e
}

func aDeployment() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-of-web"},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(1))},
	}
}

func aSet() *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-abc", UID: "uid-of-web-abc", Labels: map[string]string{hashLabel: "abc"},
			OwnerReferences: owner("Deployment", "web"),
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(1))},
	}
}

func aPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name), CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
			Labels: map[string]string{"app": "web", hashLabel: "abc"}, OwnerReferences: owner("ReplicaSet", "web-abc"),
		},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon)}},
		},
	}
}

func owner(kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID("uid-of-" + name), Controller: new(true)}}
}
