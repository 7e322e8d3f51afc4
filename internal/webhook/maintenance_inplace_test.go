package webhook

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// A warning is not worth a refusal: whoever cannot be told of others is told that.
func TestUnreadableNeighboursHoldUpNoOthers(t *testing.T) {
	t.Parallel()
	api := reviewing(t, nil, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}})
	broken := interceptor.NewClient(api, interceptor.Funcs{
		List: func(ctx context.Context, under client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, others := list.(*v1alpha1.NodeMaintenanceList); !others {
				return under.List(ctx, list, options...)
			}
			<-ctx.Done()
			return ctx.Err()
		},
	})
	m := sample.Maintenance("any", "one")
	m.Spec.Stage = v1alpha1.StageDrain
	object, err := json.Marshal(m)
	must(t, err)
	response := maintenanceValidator{broken, reviewer{api}, trusted}.Handle(t.Context(),
		admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Operation: admissionv1.Create,
			UserInfo:  authenticationv1.UserInfo{Username: "admin", Groups: []string{"system:masters"}},
			Object:    runtime.RawExtension{Raw: object},
		}})
	want := "could not look for other NodeMaintenances that drain the same nodes: list NodeMaintenances: context deadline exceeded"
	if got := strings.Join(response.Warnings, "\n"); !response.Allowed || !strings.Contains(got, want) {
		t.Errorf("answer %+v, want it allowed with the warning %q", response, want)
	}
}
