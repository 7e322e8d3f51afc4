package evictionrequest

import (
	"fmt"
	"strings"
	"testing"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/test/cluster"
)

// Nobody responds but Ebbtide: a pod that somebody asks for is gone.
func TestAPodIsEvictedByRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pod := w.pod("web-0")
	request := w.ask("example.com/upgrade", pod)
	w.awaitGone(pod)
	e := w.awaitEviction("pod-1-web-0", gone("web-0"), evictor+" Completed")
	w.awaitRequest(request, gone("web-0"))
	own := core.ResponderOf(&e.Status, evictor)
	if own.CompletionTime == nil || *own.Message != "Pod web-0 is gone." || *e.Status.ObservedGeneration != 1 || *request.Status.ObservedGeneration != 1 {
		t.Errorf("the evictor has reported %+v, want that the pod is gone, with generation 1 observed", own)
	}
	if e.Labels["example.com/upgrade"] != "requester" || e.Labels[evictor] != "responder" || e.OwnerReferences[0].UID != request.UID {
		t.Errorf("the Eviction has the labels %v and owners %v", e.Labels, e.OwnerReferences)
	}
	// Nothing is left when nobody asks any more.
	w.must(w.client.Delete(w.ctx, request))
	w.awaitGone(e)
}

// Who responds first has as long as it reports, and hands over to the next one.
func TestRespondersTakeTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pod := w.pod("web-0", "example.com/second 10000", "example.com/first 20000")
	request := w.ask("example.com/upgrade", pod)
	e := w.awaitEviction("pod-1-web-0", awaiting, "example.com/first Active, example.com/second Inactive, "+evictor+" Inactive")
	w.awaitRequest(request, awaiting)
	if own := core.ResponderOf(&e.Status, "example.com/first"); own.StartTime == nil || own.HeartbeatTime != nil {
		t.Errorf("the first turn has begun at %v with a heartbeat at %v, want a beginning only", own.StartTime, own.HeartbeatTime)
	}
	if err := w.reports(e.Name, "example.com/second", false); err == nil || !strings.Contains(err.Error(), "field is immutable") {
		t.Errorf("who has no turn reports: %v", err)
	}
	w.must(w.reports(e.Name, "example.com/first", false))
	w.must(w.reports(e.Name, "example.com/first", true))
	e = w.awaitEviction(e.Name, awaiting, "example.com/first Completed, example.com/second Active, "+evictor+" Inactive")
	if own := core.ResponderOf(&e.Status, "example.com/first"); own.Message == nil || *own.Message != "moving" {
		t.Errorf("what the first responder has reported is gone: %+v", own)
	}
	w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(pod), pod))
	w.must(w.reports(e.Name, "example.com/second", true))
	w.awaitGone(pod)
	w.awaitEviction(e.Name, gone("web-0"), "example.com/first Completed, example.com/second Completed, "+evictor+" Completed")
	w.awaitRequest(request, gone("web-0"))
}

// Who may make requests and not delete the pod has it evicted by nobody.
func TestRequestsNeedTheRightToDeleteThePod(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pod := w.pod("web-0", "example.com/leader 20000")
	requests := rbacv1.PolicyRule{APIGroups: []string{"lifecycle.k8s.io"}, Resources: []string{"evictionrequests"}, Verbs: []string{"create", "get", "patch"}}
	name, mallory := w.cluster.User(t, requests)
	refused := fmt.Sprintf("user %q may not request the eviction of pod %s/web-0, which requires the right to delete it", name, w.ns)
	if err := mallory.Create(w.ctx, newRequest("example.com/mallory", pod)); err == nil || !strings.Contains(err.Error(), refused) {
		t.Errorf("who may not delete the pod asks: %v, want %q", err, refused)
	}
	// A detour: nothing is asked at first.
	detour := newRequest("example.com/mallory", pod)
	detour.Spec.Intent = lifecyclev1alpha1.EvictionRequestIntentWithdrawn
	w.must(mallory.Create(w.ctx, detour))
	asks := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"intent":"Eviction"}}`))
	if err := mallory.Patch(w.ctx, detour, asks); err == nil || !strings.Contains(err.Error(), refused) {
		t.Errorf("who may not delete the pod changes their mind: %v, want %q", err, refused)
	}
	_, operator := w.cluster.User(t, requests, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"delete"}})
	request := newRequest("example.com/operator", pod)
	w.must(operator.Create(w.ctx, request))
	w.awaitRequest(request, awaiting)
}

// Of two managers one acts. When it is killed, the other goes on where it was, though the
// Lease of EvictionRequests has just been renewed: it is that of both.
func TestLongAnotherManagerGoesOn(t *testing.T) {
	t.Parallel()
	w := bareWorld(t, cluster.Spec{EvictionRequests: true, Replicas: true, Nodes: 1, Alone: true})
	first := w.cluster.StartReplica(t)
	w.awaitState(first, core.StateActive)
	second := w.cluster.StartReplica(t)
	pod := w.pod("web-0", "example.com/leader 20000")
	request := w.ask("example.com/upgrade", pod)
	w.awaitEviction("pod-1-web-0", awaiting, "example.com/leader Active, "+evictor+" Inactive")
	first.Kill()
	w.must(w.reports("pod-1-web-0", "example.com/leader", true))
	w.awaitState(second, core.StateActive)
	w.awaitEviction("pod-1-web-0", gone("web-0"), "example.com/leader Completed, "+evictor+" Completed")
	w.awaitRequest(request, gone("web-0"))
}
