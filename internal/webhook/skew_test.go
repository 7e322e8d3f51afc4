package webhook

import (
	"encoding/json"
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

// A lock that has ended long ago by a skewed clock bars an eviction.
func TestSkewedClockEndsNoLock(t *testing.T) {
	t.Parallel()
	api := fault.NewServer(t, sample.Pod("shop", "web"), sample.LockedBudget("shop", time.Hour))
	evict := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Namespace: "shop", Name: "web", Object: runtime.RawExtension{Raw: []byte("{}")},
	}}
	for _, skewed := range []bool{true, false} {
		gate := newEvictionGate(registry{cached: api.Manager, live: api.Manager}, api.Manager, api.Manager, Options{
			Now: func() (time.Time, bool) { return time.Now().AddDate(0, 0, 1), skewed },
		})
		if answer := gate.Handle(t.Context(), evict); answer.Allowed == skewed {
			t.Errorf("allowed by a clock that is skewed (%t): %t, %+v", skewed, answer.Allowed, answer.Result)
		}
	}
}

// The report of an evacuator is not refused because our clock is wrong.
func TestSkewedClockRefusesNoReport(t *testing.T) {
	t.Parallel()
	before := &v1alpha1.Evacuation{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	after := before.DeepCopy()
	after.Status.EvacuationProgressTimestamp = &metav1.Time{Time: time.Now().Add(5 * time.Minute)}
	report := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Object: raw(t, after), OldObject: raw(t, before)}}
	for _, skewed := range []bool{true, false} {
		validator := evacuationStatusValidator{func() (time.Time, bool) { return time.Now(), skewed }}
		if answer := validator.Handle(t.Context(), report); answer.Allowed != skewed {
			t.Errorf("allowed by a clock that is skewed (%t): %t, %+v", skewed, answer.Allowed, answer.Result)
		}
	}
}

func raw(t *testing.T, object runtime.Object) runtime.RawExtension {
	t.Helper()
	text, err := json.Marshal(object)
	must(t, err)
	return runtime.RawExtension{Raw: text}
}
