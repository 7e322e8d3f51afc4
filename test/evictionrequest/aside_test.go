package evictionrequest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	lifecycleac "k8s.io/client-go/applyconfigurations/lifecycle/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/test/cluster"
)

// Ebbtide leaves the field to another controller within a minute, whether that is another
// Ebbtide or one that has other names, and comes back when that is gone. A responder that
// oversteps is no controller.
func TestLongEbbtideStepsAside(t *testing.T) {
	t.Parallel()
	w := bareWorld(t, cluster.Spec{EvictionRequests: true, Replicas: true, Nodes: 1, Alone: true})
	manager := w.cluster.StartReplica(t)
	w.awaitState(manager, core.StateActive)
	w.awaitEvent(cluster.Account.Namespace, v1alpha1.EventEvictionControllerActive, "there is no other")

	pod := w.pod("web-0", "example.com/leader 20000")
	w.ask("example.com/upgrade", pod)
	e := w.awaitEviction("pod-1-web-0", awaiting, "example.com/leader Active, "+evictor+" Inactive")
	w.must(w.seize("mallory", e))
	w.setHolder("Ebbtide in namespace elsewhere")
	w.awaitState(manager, core.StateAside)
	w.awaitEvent(cluster.Account.Namespace, v1alpha1.EventEvictionControllerAside, "Ebbtide in namespace elsewhere answers EvictionRequests")
	ignored := w.ask("example.com/upgrade", w.pod("web-1"))
	w.must(w.reports("pod-1-web-0", "example.com/leader", true))
	time.Sleep(3 * time.Second)
	w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(ignored), ignored))
	w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(e), e))
	if active := core.Active(&e.Status); ignored.Status.ObservedGeneration != nil || active == nil || active.Name != "example.com/leader" {
		t.Errorf("who has stepped aside answers %+v, and hands over: %s", ignored.Status, turnsOf(e))
	}

	w.setHolder("")
	w.awaitState(manager, core.StateActive)
	w.awaitRequest(ignored, gone("web-1"))
	w.awaitEviction("pod-1-web-0", gone("web-0"), "example.com/leader Completed, "+evictor+" Completed")

	// Another controller makes Evictions and gives turns, until it was faster once. What it has
	// made speaks of it for an hour.
	t.Cleanup(func() { w.must(w.client.DeleteAllOf(w.ctx, &lifecyclev1alpha1.Eviction{}, client.InNamespace(w.ns))) })
	var attempt int
	w.eventually("the other controller to give a turn", func() (bool, any) {
		attempt++
		pod := w.pod(fmt.Sprintf("other-%d", attempt), "example.com/leader 20000")
		theirs := &lifecyclev1alpha1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: fmt.Sprintf("theirs-%d", attempt)}}
		target := lifecycleac.EvictionTarget().WithPod(lifecycleac.EvictionPodReference().WithName(pod.Name).WithUID(pod.UID))
		const other = "evictionrequest-controller"
		w.must(w.client.Apply(w.ctx, lifecycleac.Eviction(theirs.Name, w.ns).WithSpec(lifecycleac.EvictionSpec().WithTarget(target)), client.FieldOwner(other)))
		err := w.seize(other, theirs)
		return err == nil, err
	})
	w.awaitState(manager, core.StateAside)
	// The event of the same kind before it counts for both.
	const words = "evictionrequest-controller answers EvictionRequests: it has created Evictions"
	w.eventually("the log to say who", func() (bool, any) { return strings.Contains(manager.Tail(50), words), manager.Tail(5) })
}

// seize writes the turns of an Eviction as they are, or as they begin, as a controller does.
func (w *world) seize(manager string, e *lifecyclev1alpha1.Eviction) error {
	status := lifecycleac.EvictionStatus()
	turns := e.Status.TargetResponders
	if len(turns) == 0 {
		turns = []lifecyclev1alpha1.TargetResponder{{Name: evictor, Priority: new(int32(100)), State: lifecyclev1alpha1.ResponderStateActive}}
		status.WithResponders(lifecycleac.ResponderStatus().WithName(evictor).WithStartTime(metav1.Now()))
	}
	for _, one := range turns {
		status.WithTargetResponders(lifecycleac.TargetResponder().WithName(one.Name).WithPriority(*one.Priority).WithState(one.State))
	}
	return w.client.Status().Apply(w.ctx, lifecycleac.Eviction(e.Name, w.ns).WithStatus(status), client.FieldOwner(manager), client.ForceOwnership)
}

func (w *world) setHolder(holder string) {
	w.t.Helper()
	w.eventually("the Lease to be held by "+holder, func() (bool, any) {
		lease := &coordinationv1.Lease{}
		w.must(w.client.Get(w.ctx, client.ObjectKey{Namespace: core.LeaseNamespace, Name: core.Lease}, lease))
		lease.Spec.HolderIdentity = &holder
		err := w.client.Update(w.ctx, lease)
		return err == nil, err
	})
}

// awaitState waits for what the manager says that it is.
func (w *world) awaitState(manager cluster.Replica, want core.State) {
	w.t.Helper()
	w.eventually("the manager to be "+string(want), func() (bool, any) {
		status, text := manager.Metrics(w.t, w.cluster.Config.BearerToken)
		var shown []string
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "ebbtide_eviction_controller{") {
				shown = append(shown, line)
			}
		}
		return status == http.StatusOK && strings.Contains(text, `ebbtide_eviction_controller{state="`+string(want)+`"} 1`), shown
	})
}

func (w *world) awaitEvent(namespace, reason, words string) {
	w.t.Helper()
	w.eventually("the event "+reason+": "+words, func() (bool, any) {
		list := &eventsv1.EventList{}
		w.must(w.client.List(w.ctx, list, client.InNamespace(namespace)))
		var notes []string
		for i := range list.Items {
			notes = append(notes, list.Items[i].Reason+": "+list.Items[i].Note)
			if list.Items[i].Reason == reason && strings.Contains(list.Items[i].Note, words) {
				return true, nil
			}
		}
		return false, notes
	})
}
