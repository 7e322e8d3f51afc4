package webhook

import (
	"encoding/json"
	"errors"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What was stored while no webhook ran is immutable as it is.
func TestAPlanThatWasStoredIncompleteStaysSo(t *testing.T) {
	m := sample.Maintenance("early", "nobody")
	m.Spec.DrainPlan = []v1alpha1.DrainPlanEntry{{PodType: v1alpha1.PodTypeDefault, PodPriority: 5000}}
	stored, err := json.Marshal(m)
	must(t, err)
	response := maintenanceDefaulter{}.Handle(t.Context(),
		admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Operation: admissionv1.Update,
			OldObject: runtime.RawExtension{Raw: stored},
			Object:    runtime.RawExtension{Raw: stored},
		}})
	if !response.Allowed || len(response.Patches) != 0 {
		t.Errorf("answer %+v, want that nothing is changed", response)
	}
}

// Whatever is in the status, such as a time that Go cannot read, is not in the way.
func TestANodeMaintenanceWithAnOddStatusCanBeDeleted(t *testing.T) {
	t.Parallel()
	api := reviewing(t, nil)
	response := maintenanceValidator{api, reviewer{api}, trusted}.Handle(t.Context(),
		admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Operation: admissionv1.Delete,
			UserInfo:  authenticationv1.UserInfo{Username: "admin", Groups: []string{"system:masters"}},
			OldObject: runtime.RawExtension{Raw: []byte(`{"metadata":{"name":"any"},"status":{"stageStatuses":[{"startTimestamp":"noon"}]}}`)},
		}})
	if !response.Allowed {
		t.Errorf("answer %+v, want that it may be deleted", response)
	}
}

func TestAReviewThatFailsIsNoYes(t *testing.T) {
	t.Parallel()
	api := reviewing(t, errors.New("the authorizer is away"))
	object, err := json.Marshal(sample.Maintenance("any", "no-such-node"))
	must(t, err)
	response := maintenanceValidator{api, reviewer{api}, trusted}.Handle(t.Context(),
		admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Operation: admissionv1.Create,
			UserInfo:  authenticationv1.UserInfo{Username: "jane"},
			Object:    runtime.RawExtension{Raw: object},
		}})
	if response.Allowed || response.Result.Message != `review the rights of user "jane": the authorizer is away` {
		t.Errorf("answer %+v, want a refusal because nobody could be asked", response)
	}
}
