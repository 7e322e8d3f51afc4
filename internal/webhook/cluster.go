package webhook

import (
	"context"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/validate"
)

// clusterValidator lets nobody have Machines act on a cluster who has no right to
// do so: their nodes are drained and deleted with our rights, or with those of
// the kubeconfig.
type clusterValidator struct{ reviews reviewer }

// Handle refuses a Cluster that acts here, by somebody who may not delete nodes,
// and one that acts elsewhere, by somebody who may not read its kubeconfig.
func (v clusterValidator) Handle(ctx context.Context, request admission.Request) admission.Response {
	before, after, err := decodeChange[v1alpha1.Cluster](request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if !validate.ReachesElsewhere(after, before) {
		return admission.Allowed("")
	}
	allowed, why, err := v.reviews.may(ctx, request.UserInfo, reach(after))
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if !allowed {
		return admission.Denied(validate.ClusterRefusal(request.UserInfo.Username, after, why))
	}
	return admission.Allowed("")
}

// reach is the right that whoever decides on what Machines act needs.
func reach(c *v1alpha1.Cluster) authorizationv1.ResourceAttributes {
	ref := c.Spec.KubeconfigSecretRef
	if ref == nil {
		return deleteNode("")
	}
	return authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Version: "v1", Namespace: c.Namespace, Name: ref.Name}
}
