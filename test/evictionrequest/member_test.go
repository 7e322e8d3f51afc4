package evictionrequest

import (
	"testing"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	lifecycleac "k8s.io/client-go/applyconfigurations/lifecycle/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/test/cluster"
)

// another is who plays a controller that is not Ebbtide's.
const another = "evictionrequest-controller"

// gives has another controller give turns in an Eviction, the first of which is active.
func (w *world) gives(eviction string, states ...lifecyclev1alpha1.ResponderStateType) {
	w.t.Helper()
	status := lifecycleac.EvictionStatus()
	for i, name := range []string{surger, evictor} {
		status.WithTargetResponders(lifecycleac.TargetResponder().WithName(name).WithPriority([]int32{10000, 100}[i]).WithState(states[i]))
		one := lifecycleac.ResponderStatus().WithName(name)
		if states[i] != lifecyclev1alpha1.ResponderStateInactive {
			one.WithStartTime(w.began)
		}
		status.WithResponders(one)
	}
	w.must(w.client.Status().Apply(w.ctx, lifecycleac.Eviction(eviction, w.ns).WithStatus(status), client.FieldOwner(another), client.ForceOwnership))
}

// Where another controller answers requests, Ebbtide responds in its own turn, and leaves that
// of the default evictor to the other one.
func TestLongEbbtideRespondsToAnotherController(t *testing.T) {
	t.Parallel()
	w := bareWorld(t, cluster.Spec{EvictionRequests: true, Nodes: 1, NoMachines: true, Alone: true})
	w.cluster.StartManagerWith(t, "--eviction-requests=member", "--machines=false")
	pod, letNew := w.serve(named)
	w.began = metav1.NewTime(time.Now().Truncate(time.Second))
	target := lifecycleac.EvictionTarget().WithPod(lifecycleac.EvictionPodReference().WithName(pod.Name).WithUID(pod.UID))
	w.must(w.client.Apply(w.ctx, lifecycleac.Eviction("theirs", w.ns).WithSpec(lifecycleac.EvictionSpec().WithTarget(target)), client.FieldOwner(another)))
	const active, inactive = lifecyclev1alpha1.ResponderStateActive, lifecyclev1alpha1.ResponderStateInactive
	w.gives("theirs", active, inactive)
	w.awaitDetached(pod)
	// The other one finds that somebody has ended our turn, and gives the next.
	own := lifecycleac.ResponderStatus().WithName(surger).WithHeartbeatTime(metav1.Now()).WithCompletionTime(metav1.Now()).WithMessage("ended")
	w.must(w.client.Status().Apply(w.ctx, lifecycleac.Eviction("theirs", w.ns).WithStatus(lifecycleac.EvictionStatus().WithResponders(own)),
		client.FieldOwner("example.com/mallory"), client.ForceOwnership))
	w.gives("theirs", lifecyclev1alpha1.ResponderStateCompleted, active)
	w.awaitBack(pod)
	letNew()
	time.Sleep(3 * time.Second)
	w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(pod), pod))
	if pod.DeletionTimestamp != nil {
		t.Error("the pod was evicted in the turn of the other controller's evictor")
	}
}
