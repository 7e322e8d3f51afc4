package surge

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"ebbtide.dev/ebbtide/test/difference"
)

// aSlice is an EndpointSlice of a Service with some pods, as the cache has it.
func aSlice(name, service string, pods ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, pod := range pods {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{Name: pod, UID: types.UID("uid-of-" + pod)}})
	}
	return s
}

// leading is which Services lead to a pod, and for how long.
func (w *world) leading(pod string) (all []string) {
	for _, e := range w.reconciler.endpoints.leadingTo([]*corev1.Pod{aPod(pod)})[types.UID("uid-of-"+pod)] {
		all = append(all, fmt.Sprintf("%s for %s", e.Service, e.For))
	}
	return all
}

// A pod is led to since the first EndpointSlice of a Service has it, however that one
// changes, and no more when the last one is gone. Nothing is kept of pods of none.
func TestSinceWhenAServiceLeadsToAPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pass := func(old, now *discoveryv1.EndpointSlice) {
		w.reconciler.endpoints.change(old, now)
		w.clock.Step(time.Second)
	}
	one, both := aSlice("web-x", "web", "web-0"), aSlice("web-x", "web", "web-0", "web-1")
	other := aSlice("canary-x", "canary", "web-0")
	pass(nil, one)
	pass(one, both)
	pass(nil, other)
	difference.None(t, "to web-0 lead", []string{"web for 3s", "canary for 1s"}, w.leading("web-0"))
	difference.None(t, "to web-1 lead", []string{"web for 2s"}, w.leading("web-1"))
	pass(both, one)
	pass(other, nil)
	if got := w.leading("web-1"); len(got) > 0 {
		t.Errorf("to web-1 leads %v, want nothing", got)
	}
	pass(one, nil)
	if left := w.reconciler.endpoints.of; len(left) > 0 {
		t.Errorf("%v is kept for nobody", left)
	}
}

// An EndpointSlice has only Deployments looked at of which a pod comes or goes, while one
// of them is moved.
func TestOnlySurgesFollowEndpoints(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	handler, q := w.reconciler.ofSlice(), &queue{}
	before, after := aSlice("web-x", "web"), aSlice("web-x", "web", "web-0", "gone")
	handler.Create(t.Context(), event.TypedCreateEvent[*discoveryv1.EndpointSlice]{Object: before}, q)
	handler.Update(t.Context(), event.TypedUpdateEvent[*discoveryv1.EndpointSlice]{ObjectOld: before, ObjectNew: after}, q)
	if len(q.added) > 0 {
		t.Errorf("%v is looked at while no pod is moved", q.added)
	}
	w.ask(w.pod("web-0"))
	w.reconcile(web)
	handler.Update(t.Context(), event.TypedUpdateEvent[*discoveryv1.EndpointSlice]{ObjectOld: after, ObjectNew: after}, q)
	if len(q.added) > 0 {
		t.Errorf("%v is looked at though no endpoint has changed", q.added)
	}
	handler.Delete(t.Context(), event.TypedDeleteEvent[*discoveryv1.EndpointSlice]{Object: after}, q)
	difference.None(t, "looked at", []item{web}, q.added, cmp.AllowUnexported(item{}))
}
