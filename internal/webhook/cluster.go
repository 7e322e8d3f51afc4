package webhook

import (
	"context"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/validate"
)

// clusterValidator requires the rights that Machines of a Cluster use: their nodes are drained and
// deleted with the rights of the manager or of the kubeconfig.
type clusterValidator struct{ reviews reviewer }

// Handle denies a Cluster without the right to delete nodes here, or to read its kubeconfig.
func (v clusterValidator) Handle(ctx context.Context, request admission.Request) admission.Response {
	before, after, err := decodeChange[v1alpha1.Cluster](request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if !validate.ReachesElsewhere(after, before) {
		return admission.Allowed("")
	}
	return v.reviews.authorize(ctx, request, rightToReach(after), func(why string) string {
		return validate.ClusterRefusal(request.UserInfo.Username, after, why)
	})
}

// rightToReach returns the right that the cluster of Machines requires.
func rightToReach(c *v1alpha1.Cluster) authorizationv1.ResourceAttributes {
	ref := c.Spec.KubeconfigSecretRef
	if ref == nil {
		return deleteNode("")
	}
	return authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Version: "v1", Namespace: c.Namespace, Name: ref.Name}
}
