package webhook

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/test/fault"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// Whoever evicts tries again while it may help, and evicts as if we were not
// there when it never will.
func TestEvacuatorsThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	evacuations := v1alpha1.SchemeGroupVersion.WithResource("evacuations").GroupResource()
	going := apierrors.NewForbidden(evacuations, "web", errors.New("the namespace goes"))
	going.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, tc := range map[string]struct {
		write, read error
		allowed     bool
		words       string
	}{
		"the namespace goes":             {write: going, allowed: true, words: "the namespace goes"},
		"nobody may":                     {write: apierrors.NewForbidden(evacuations, "web", errors.New("no right")), allowed: true, words: "no right"},
		"it is invalid":                  {write: apierrors.NewInvalid(schema.GroupKind{Kind: "Evacuation"}, "web", nil), allowed: true, words: "is invalid"},
		"somebody was faster":            {write: apierrors.NewAlreadyExists(evacuations, "web"), words: "mover.example.com is asked to move pod web; try again"},
		"the server has much to do":      {write: apierrors.NewTooManyRequestsError("slow down"), words: "slow down"},
		"the server fails":               {write: apierrors.NewInternalError(errors.New("etcd is gone")), words: "etcd is gone"},
		"the server does not answer":     {write: context.DeadlineExceeded, words: "deadline exceeded"},
		"nothing is known about the pod": {read: errors.New("no cache"), words: "cannot read the PodDisruptionBudgets and evacuators of pod web, try again: get pod web: no cache"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := answerWith(t, tc.write, tc.read)
			told := answer.Result.Message
			if tc.allowed && len(answer.Warnings) == 1 {
				told = answer.Warnings[0]
			}
			if answer.Allowed != tc.allowed || !strings.Contains(told, tc.words) {
				t.Errorf("allowed %v, told %q; want %v and %q", answer.Allowed, told, tc.allowed, tc.words)
			}
			if !tc.allowed && (answer.Result.Code != http.StatusTooManyRequests || !strings.Contains(told, "try again")) {
				t.Errorf("code %d, told %q; want 429 and to try again", answer.Result.Code, told)
			}
		})
	}
}

// A caller whose request is known is told how far it has come, also when this
// attempt could not be noted.
func TestAnAttemptThatCannotBeNoted(t *testing.T) {
	t.Parallel()
	pod := sample.Pod("shop", "web")
	pod.Annotations = registered("mover.example.com", "20")
	e := evacuation.New(pod, v1alpha1.EvictionInstigator, nil)
	answer := answerWith(t, errors.New("conflict"), nil, e)
	if want := "evacuation in progress: mover.example.com moves pod web"; answer.Allowed || !strings.Contains(answer.Result.Message, want) {
		t.Errorf("allowed %v, told %q; want to wait and %q", answer.Allowed, answer.Result.Message, want)
	}
	e.Finalizers = []string{v1alpha1.NodeMaintenanceInstigator}
	answer = answerWith(t, errors.New("conflict"), nil, e)
	if want := "cannot request the Evacuation of pod web, try again: record the eviction attempt: conflict"; answer.Allowed || answer.Result.Message != want {
		t.Errorf("allowed %v, told %q; want to wait and %q", answer.Allowed, answer.Result.Message, want)
	}
}

// answerWith is the answer to an eviction when writes and reads fail like this.
func answerWith(t *testing.T, write, read error, existing ...client.Object) admission.Response {
	t.Helper()
	pod := sample.Pod("shop", "web")
	pod.Annotations = registered("mover.example.com", "20")
	api := fault.NewServer(t, append(existing, pod)...)
	api.Refuse = func(request string) error {
		if strings.HasPrefix(request, "get ") || strings.HasPrefix(request, "list ") {
			return read
		}
		return write
	}
	gate := newEvictionGate(registry{cached: api.Manager, live: api.Manager, surge: surge.Annotated}, api.Manager, api.Manager, Options{Now: trusted})
	return gate.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Namespace: "shop", Name: "web", Object: runtime.RawExtension{Raw: []byte("{}")},
	}})
}
