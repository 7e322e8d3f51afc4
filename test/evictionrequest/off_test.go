package evictionrequest

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

// Who may change a maintenance's request takes the node off it, or forges one without, so that
// no manager finds it by its node: it is written anew, and what nobody wants is withdrawn.
func TestSomebodyHidesARequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, mallory := w.cluster.User(t,
		rbacv1.PolicyRule{APIGroups: []string{"lifecycle.k8s.io"}, Resources: []string{"evictionrequests"}, Verbs: []string{"create", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"delete"}})
	idle := w.pod("idle-0", leader+" 20000")
	forged := core.New(idle)
	forged.Annotations = nil
	w.must(mallory.Create(w.ctx, forged))
	w.awaitGone(forged)
	w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(idle), idle))
	w.must(w.client.Delete(w.ctx, idle, client.GracePeriodSeconds(0)))

	pod := w.pod("web-0", leader+" 20000")
	m := w.drain()
	w.awaitEviction("pod-1-web-0", awaiting, leader+" Active, "+evictor+" Inactive")
	request := own(pod)
	for _, patch := range []string{`{"metadata":{"annotations":null}}`, `{"metadata":{"annotations":{"ebbtide.dev/node":"elsewhere"}}}`} {
		w.must(mallory.Patch(w.ctx, request.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch))))
		w.eventually("the request to name its node", func() (bool, any) {
			w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(request), request))
			return request.Annotations[v1alpha1.NodeAnnotation] == w.cluster.Nodes[0], request.Annotations
		})
	}
	w.complete(m)
	w.awaitGone(request)
}
