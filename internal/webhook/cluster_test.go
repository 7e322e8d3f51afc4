package webhook

import (
	"encoding/json"
	"errors"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// clusterOf is a Cluster with its kubeconfig in a Secret; without one it is here.
func clusterOf(namespace, name, secret string) *v1alpha1.Cluster {
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if secret != "" {
		c.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: secret}
	}
	return c
}

// creation is the request of jane to create an object.
func creation(t *testing.T, object client.Object) admission.Request {
	t.Helper()
	data, err := json.Marshal(object)
	must(t, err)
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create,
		UserInfo:  authenticationv1.UserInfo{Username: "jane"},
		Object:    runtime.RawExtension{Raw: data},
	}}
}

func TestClusterIsRefusedWhileItsRightsAreUnknown(t *testing.T) {
	t.Parallel()
	response := clusterValidator{reviewer{reviewing(t, errors.New("the authorizer is away"))}}.Handle(t.Context(), creation(t, clusterOf("fleet", "east", "")))
	if response.Allowed || response.Result.Message != `review the rights of user "jane": the authorizer is away` {
		t.Errorf("answer %+v, want a refusal because nobody could be asked", response)
	}
}
