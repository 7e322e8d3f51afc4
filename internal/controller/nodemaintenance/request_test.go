package nodemaintenance

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/group"
)

// asking is what is known of EvictionRequests, as the shell of them has it.
type asking struct {
	world      *world
	unanswered bool
}

func (a *asking) State() evictionrequest.Availability {
	return evictionrequest.Availability{Served: true, Able: !a.unanswered, Now: a.world.clock.Now()}
}
func (a *asking) Unanswered()                 { a.unanswered = true }
func (a *asking) OnChange(func(string, bool)) {}

// newAsked is a drain of one node with a pod that names a responder.
func newAsked(t *testing.T) *world {
	t.Helper()
	pod := aPod("web", "n1")
	pod.Spec.EvictionResponders = []corev1.EvictionResponder{{Name: "example.com/leader", Priority: new(int32(20000))}}
	return newWorld(t, aNode("n1"), pod, aMaintenance("upgrade", "old"))
}

// asker is a manager without any memory that asks by EvictionRequests.
func (w *world) asker() *reconciler {
	r := w.manager()
	r.requests = &asking{world: w}
	return r
}

// request is the EvictionRequest of the pod; nil if there is none.
func (w *world) request() *lifecyclev1alpha1.EvictionRequest {
	w.t.Helper()
	var list lifecyclev1alpha1.EvictionRequestList
	w.must(w.api.List(w.t.Context(), &list))
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

// born has a request the time of its creation, which the API in memory does not set.
func (w *world) born() {
	w.t.Helper()
	request := w.request()
	request.CreationTimestamp = metav1.NewTime(w.clock.Now())
	w.must(w.api.Update(w.t.Context(), request))
}

// settle runs managers until nothing is due, however often they die.
func (w *world) settle(dies int) {
	w.t.Helper()
	w.api.KillAfter(dies)
	for range 3 {
		manager := w.asker()
		w.tell(manager)
		_ = runDue(w.t.Context(), manager, w.clock)
		w.api.Revive()
		manager = w.asker()
		w.tell(manager)
		manager.schedule.touch(w.clock.Now(), 0, group.Node("n1"))
		w.must(runDue(w.t.Context(), manager, w.clock))
	}
}

// A pod that names responders is asked once, by an EvictionRequest, and not any more when
// the maintenance is complete, behind whichever write its manager dies.
func TestAPodWithRespondersIsAskedByARequest(t *testing.T) {
	t.Parallel()
	for dies := range 8 {
		w := newAsked(t)
		w.settle(dies + 1)
		request := w.request()
		if request == nil || request.Spec.Intent != lifecyclev1alpha1.EvictionRequestIntentEviction || len(w.evacuations()) != 0 {
			t.Fatalf("after dying behind write %d the pod is asked by %+v and %d Evacuations, want a request alone", dies+1, request, len(w.evacuations()))
		}
		if !evictionrequest.Own(request) || request.Annotations[v1alpha1.NodeAnnotation] != "n1" {
			t.Errorf("the request is %+v", request)
		}
		upgrade := w.maintenance("upgrade")
		if status := upgrade.Status.NodeStatuses[0]; status.PodsEvacuating != 1 || status.PodsPendingEvacuation != 0 {
			t.Errorf("%d pods are evacuating, %d pending, want the one that is asked", status.PodsEvacuating, status.PodsPendingEvacuation)
		}
		upgrade.Spec.Stage, upgrade.Generation = v1alpha1.StageComplete, 2
		w.must(w.api.Update(t.Context(), upgrade))
		w.settle(dies + 1)
		if request = w.request(); request.Spec.Intent != lifecyclev1alpha1.EvictionRequestIntentWithdrawn || request.Annotations[v1alpha1.WithdrawnAnnotation] == "" {
			t.Errorf("after the end, and dying behind write %d, the request is %+v, want it withdrawn, with the time", dies+1, request)
		}
		if w.node("n1").Spec.Unschedulable {
			t.Error("the node is not given back")
		}
	}
}

// Nobody answers for 30 seconds: the request is withdrawn, and the pod has an Evacuation, by
// whichever manager is there then.
func TestUnansweredRequestIsReplaced(t *testing.T) {
	t.Parallel()
	for dies := range 3 {
		w := newAsked(t)
		w.settle(0)
		w.born()
		w.clock.Step(29 * time.Second)
		w.settle(0)
		if request := w.request(); request.Spec.Intent != lifecyclev1alpha1.EvictionRequestIntentEviction || len(w.evacuations()) != 0 {
			t.Fatalf("after 29 seconds there are %+v and %d Evacuations", request, len(w.evacuations()))
		}
		w.clock.Step(2 * time.Second)
		w.settle(dies + 1)
		request, evacuations := w.request(), w.evacuations()
		if request.Annotations[v1alpha1.UnansweredAnnotation] != "true" || len(evacuations) != 1 || evacuations[0].Spec.PodRef.Name != "web" {
			t.Fatalf("after 31 seconds, and dying behind write %d, there are %+v and the Evacuations %+v, want it withdrawn as unanswered and one Evacuation",
				dies+1, request, evacuations)
		}
		// The manager that died behind the withdrawal could not tell of it.
		told := strings.Contains(strings.Join(w.api.Events(), "\n"), "EvictionRequestUnanswered on Pod/web: ")
		if !told && dies > 0 {
			t.Errorf("the events are %q, want that nobody answers", w.api.Events())
		}
	}
}
