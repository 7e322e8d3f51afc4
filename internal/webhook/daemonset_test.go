package webhook

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/fault"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// Without an answer the pod may start: a node without its DaemonSet is worse.
func TestAPodIsNotHeldBackInTheDark(t *testing.T) {
	for name, test := range map[string]struct {
		node *corev1.Node
		err  error
		want string
	}{
		"the node cannot be read": {
			node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}},
			err:  errors.New("the API server is busy"),
			want: "cannot determine whether a maintenance keeps this pod away, so it may start: get node one: the API server is busy",
		},
		"its record cannot be read": {
			node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one", Annotations: map[string]string{v1alpha1.DrainTargetsAnnotation: "}"}}},
			want: "cannot determine whether a maintenance keeps this pod away, so it may start: annotation ebbtide.dev/drain-targets of node one: invalid character '}' looking for beginning of value",
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := fault.NewServer(t, test.node)
			api.Refuse = func(string) error { return test.err }
			raw, err := json.Marshal(sample.DaemonPod("ns", "log", "one"))
			must(t, err)
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Object: runtime.RawExtension{Raw: raw}}}
			answer := newDaemonSetGate(api.Scheme(), api.Manager).Handle(t.Context(), request)
			if !answer.Allowed || len(answer.Patches) > 0 {
				t.Errorf("answer is %+v, want the pod as it is", answer)
			}
			if diff := cmp.Diff([]string{test.want}, answer.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
