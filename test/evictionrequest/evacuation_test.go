package evictionrequest

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/test/cluster"
)

const (
	// descheduler is somebody who asks for Evacuations.
	descheduler = v1alpha1.InstigatorFinalizerPrefix + "descheduler.example.com"
	inTurn      = "It is the turn of responder " + leader + " in Eviction pod-1-web-0."
)

// evacuate has somebody ask for the Evacuation of a pod.
func (w *world) evacuate(pod *corev1.Pod) *v1alpha1.Evacuation {
	w.t.Helper()
	e := evacuation.New(pod, descheduler, nil)
	w.must(w.client.Create(w.ctx, e))
	return e
}

// callOff has the same somebody ask for it no more.
func (w *world) callOff(e *v1alpha1.Evacuation) {
	w.t.Helper()
	w.eventually("the evacuation to be called off, also while the manager is away", func() (bool, any) {
		err := w.client.Patch(w.ctx, e, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
		return err == nil, err
	})
}

// translated is the request that an Evacuation becomes, by its name alone.
func translated(pod *corev1.Pod) *lifecyclev1alpha1.EvictionRequest {
	return &lifecyclev1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: core.Evacuations.NameFor(pod.UID)}}
}

// awaitEvacuation waits until an Evacuation says how far the responders are.
func (w *world) awaitEvacuation(e *v1alpha1.Evacuation, want, message string) {
	w.t.Helper()
	w.eventually("the Evacuation to say "+want+": "+message, func() (bool, any) {
		w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(e), e))
		is := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionEvictionRequested)
		return is != nil && string(is.Status)+"/"+is.Reason == want && e.Status.Message == message, e.Status
	})
}

// Somebody who knows nothing of EvictionRequests asks for an Evacuation. The responders of the
// pod have their turns first, and the Evacuation says what they say.
func TestLongAnEvacuationAsksResponders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pod := w.newPod("web-0", leader+" 20000")
	pod.Finalizers = []string{"example.com/slow"}
	w.must(w.client.Create(w.ctx, pod))
	e := w.evacuate(pod)
	eviction := w.awaitEviction("pod-1-web-0", awaiting, leader+" Active, "+evictor+" Inactive")
	if request := translated(pod); eviction.Labels["ebbtide.dev/evacuation"] != "requester" {
		t.Errorf("the labels of the Eviction are %v, want the requester of %s", eviction.Labels, request.Name)
	}
	w.awaitEvacuation(e, "True/ResponderActive", inTurn)
	// What it says is told of from time to time, its end at once.
	w.must(w.reports(eviction.Name, leader, false))
	w.awaitEvacuation(e, "True/ResponderActive", inTurn+" It says: moving")
	if e.Status.EvacuationProgressTimestamp == nil || time.Since(e.Status.EvacuationProgressTimestamp.Time).Abs() > time.Minute {
		t.Errorf("its progress is of %v, want of now", e.Status.EvacuationProgressTimestamp)
	}
	w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(pod), pod))
	if pod.DeletionTimestamp != nil {
		t.Fatal("the pod is evicted in the turn of its responder")
	}
	w.must(w.reports(eviction.Name, leader, true))
	w.eventually("the pod to terminate", func() (bool, any) {
		w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(pod), pod))
		return pod.DeletionTimestamp != nil, nil
	})
	// It is not withdrawn while the pod terminates, also if it is looked at.
	w.annotate(translated(pod))
	w.must(w.client.Patch(w.ctx, pod, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
	w.awaitGone(pod)
	w.awaitGone(e)
	w.awaitRequest(translated(pod), gone("web-0"))
}

// annotate has the manager look at a request, and gives it the time to.
func (w *world) annotate(request *lifecyclev1alpha1.EvictionRequest) {
	w.t.Helper()
	w.must(w.client.Patch(w.ctx, request, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"example.com/look":"here"}}}`))))
	time.Sleep(time.Second)
}

// It is called off: the responders are told, the pod stays, and nothing is left.
func TestAnEvacuationIsCalledOffInATurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pod := w.pod("web-0", leader+" 20000")
	e := w.evacuate(pod)
	eviction := w.awaitEviction("pod-1-web-0", awaiting, leader+" Active, "+evictor+" Inactive")
	w.awaitEvacuation(e, "True/ResponderActive", inTurn)
	w.callOff(e)
	w.awaitGone(e)
	w.awaitGone(translated(pod))
	w.awaitGone(eviction)
	w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(pod), pod))
	if pod.DeletionTimestamp != nil {
		t.Errorf("the pod terminates since %s, want it left alone", pod.DeletionTimestamp)
	}
}

// Who may make requests forges one of an Evacuation that there is not: it is withdrawn. Who
// has taken its name keeps the responders from being asked, but not the pod from leaving.
func TestSomebodyForgesTheRequestOfAnEvacuation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, mallory := w.cluster.User(t,
		rbacv1.PolicyRule{APIGroups: []string{"lifecycle.k8s.io"}, Resources: []string{"evictionrequests"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"delete"}})
	idle := w.pod("idle-0", leader+" 20000")
	forged := core.Evacuations.New(idle)
	w.must(mallory.Create(w.ctx, forged))
	w.awaitGone(forged)
	w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(idle), idle))
	if idle.DeletionTimestamp != nil {
		t.Error("the pod leaves by a request that nobody stands behind")
	}

	pod := w.pod("web-0", leader+" 20000")
	taken := core.Evacuations.New(pod)
	taken.Spec.Requester, taken.Spec.Intent = "example.com/mallory", lifecyclev1alpha1.EvictionRequestIntentWithdrawn
	w.must(mallory.Create(w.ctx, taken))
	w.evacuate(pod)
	w.awaitEvent(w.ns, v1alpha1.EventEvictionRequestNameTaken, "pod web-0 is evacuated without its evictionResponders (example.com/leader)")
	w.awaitGone(pod)
}

// An evacuator may write the status of Evacuations, and forges whose turn it is: that is put
// right.
func TestSomebodyForgesATurnInAnEvacuation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, mallory := w.cluster.User(t, rbacv1.PolicyRule{APIGroups: []string{"ebbtide.dev"}, Resources: []string{"evacuations/status"}, Verbs: []string{"patch"}})
	pod := w.pod("web-0", leader+" 20000")
	e := w.evacuate(pod)
	w.awaitEvacuation(e, "True/ResponderActive", inTurn)
	w.must(mallory.Status().Patch(w.ctx, e, client.RawPatch("application/merge-patch+json", []byte(
		`{"status":{"message":"gone","conditions":[{"type":"EvictionRequested","status":"True","reason":"Mallory","message":"gone","lastTransitionTime":"2030-01-01T00:00:00Z"}]}}`))))
	w.must(w.reports("pod-1-web-0", leader, true))
	w.awaitGone(pod)
}

// The manager is killed behind each of its writes: the responder is asked once, and the pod
// leaves once it is through.
func TestLongTheManagerIsKilledBehindEveryWriteOfATranslation(t *testing.T) {
	w := bareWorld(t, cluster.Spec{EvictionRequests: true, Tapped: true, Nodes: 1})
	w.cluster.StartManager(t)
	pod := w.pod("web-0", leader+" 20000")
	writes, end := w.killedBehind()
	e := w.evacuate(pod)
	w.awaitEviction("pod-1-web-0", awaiting, leader+" Active, "+evictor+" Inactive")
	w.awaitEvacuation(e, "True/ResponderActive", inTurn)
	w.must(w.reports("pod-1-web-0", leader, true))
	w.awaitGone(pod)
	w.awaitGone(e)
	w.awaitRequest(translated(pod), gone("web-0"))
	end()
	asked := 0
	for _, write := range writes() {
		if strings.HasSuffix(write, "/evictionrequests") {
			asked++
		}
	}
	if kills := len(writes()); asked != 1 || kills < 8 {
		t.Errorf("the manager has asked %d times and was killed %d times, behind %q, want once, and behind each", asked, kills, writes())
	}
	t.Logf("killed behind %q", writes())
}

// The same when it is called off in the middle.
func TestLongTheManagerIsKilledBehindEveryWriteOfACalledOffTranslation(t *testing.T) {
	w := bareWorld(t, cluster.Spec{EvictionRequests: true, Tapped: true, Nodes: 1})
	w.cluster.StartManager(t)
	pod := w.pod("web-0", leader+" 20000")
	e := w.evacuate(pod)
	eviction := w.awaitEviction("pod-1-web-0", awaiting, leader+" Active, "+evictor+" Inactive")
	writes, end := w.killedBehind()
	w.callOff(e)
	w.awaitGone(e)
	w.awaitGone(translated(pod))
	w.awaitGone(eviction)
	end()
	w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(pod), pod))
	if kills := len(writes()); pod.DeletionTimestamp != nil || kills < 4 {
		t.Errorf("the pod leaves at %v, the manager was killed %d times, behind %q", pod.DeletionTimestamp, kills, writes())
	}
	t.Logf("killed behind %q", writes())
}
