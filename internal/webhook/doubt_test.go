package webhook

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/fault"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// A lock that has ended long ago by a clock that is not believed bars an eviction, and
// who tries is told why.
func TestALockDoesNotEndByAClockThatIsNotBelieved(t *testing.T) {
	t.Parallel()
	locked := sample.LockedBudget("shop", time.Hour)
	api := fault.NewServer(t, sample.Pod("shop", "web"), locked)
	doubt := "The manager's clock is wrong."
	gate := newEvictionGate(registry{cached: api.Manager, live: api.Manager}, api.Manager, api.Manager, Options{
		Now: func() (time.Time, string) { return time.Now().AddDate(0, 0, 1), doubt },
	})
	evict := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Namespace: "shop", Name: "web", Object: runtime.RawExtension{Raw: []byte("{}")},
	}}
	answer := gate.Handle(t.Context(), evict)
	if words := "It does not end by itself now: The manager's clock is wrong; try again when it is free"; answer.Allowed || !strings.Contains(answer.Result.Message, words) {
		t.Errorf("allowed %v: %+v, want it to wait with the words %q", answer.Allowed, answer.Result, words)
	}
	doubt = ""
	if answer := gate.Handle(t.Context(), evict); !answer.Allowed {
		t.Errorf("refused when the clock is right: %+v", answer.Result)
	}
}

// The report of an evacuator is not refused because our clock is wrong.
func TestAReportIsNotMeasuredByAClockThatIsNotBelieved(t *testing.T) {
	t.Parallel()
	before := &v1alpha1.Evacuation{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	after := before.DeepCopy()
	after.Status.EvacuationProgressTimestamp = &metav1.Time{Time: time.Now().Add(5 * time.Minute)}
	report := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Object: raw(t, after), OldObject: raw(t, before)}}
	for doubt, allowed := range map[string]bool{"": false, "The manager's clock is wrong.": true} {
		validator := evacuationStatusValidator{func() (time.Time, string) { return time.Now(), doubt }}
		if answer := validator.Handle(t.Context(), report); answer.Allowed != allowed {
			t.Errorf("with the doubt %q it is allowed: %v, %+v", doubt, answer.Allowed, answer.Result)
		}
	}
}

func raw(t *testing.T, object runtime.Object) runtime.RawExtension {
	t.Helper()
	text, err := json.Marshal(object)
	must(t, err)
	return runtime.RawExtension{Raw: text}
}
