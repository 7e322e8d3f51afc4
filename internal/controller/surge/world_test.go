package surge

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	core "ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/test/fault"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

const hashLabel = appsv1.DefaultDeploymentUniqueLabelKey

// world is an API server with Deployment web of one pod, web-0, which is to be
// evacuated, and a clock that only moves when it is told to.
type world struct {
	t          *testing.T
	api        *fault.Server
	clock      *testingclock.FakeClock
	reconciler *reconciler
	woken      []item
}

func newWorld(t *testing.T, more ...client.Object) *world {
	t.Helper()
	w := &world{
		t: t, clock: testingclock.NewFakeClock(noon),
		api: fault.NewServer(t, append(more, aDeployment(), aSet(), aPod("web-0"))...),
	}
	w.restart()
	return w
}

// restart begins with a new manager that remembers nothing.
func (w *world) restart() {
	w.api.Revive()
	w.reconciler = &reconciler{
		client: w.api.Manager, live: w.api.Manager, emit: w.api.Emit, now: func() (time.Time, bool) { return w.clock.Now(), false }, mode: core.Annotated,
		metrics: newMetrics(prometheus.NewRegistry()), busy: newBusy(), endpoints: newEndpoints(w.clock), wake: func(it item) { w.woken = append(w.woken, it) },
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
