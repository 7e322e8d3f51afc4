package webhook

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/test/fault"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

func errorText(err error) string {
	if err == nil {
		return "admitted"
	}
	return err.Error()
}

// lockedGate answers calls for the pod web of a namespace with a locked budget.
func lockedGate(t *testing.T, longest time.Duration, refuse func(request string) error) (*fault.Server, admission.Response) {
	t.Helper()
	pod := sample.Pod("shop", "web")
	pod.Annotations = registered("mover.example.com", "20")
	locked := sample.LockedBudget("shop", time.Hour)
	api := fault.NewServer(t, pod, locked)
	api.Refuse = refuse
	gate := newEvictionGate(registry{cached: api.Manager, live: api.Manager, surge: surge.Annotated}, api.Manager, api.Manager, Options{LongestLock: longest})
	gate.now = func() (time.Time, bool) { return time.Now().Add(10 * time.Minute), false }
	return api, gate.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Namespace: "shop", Name: "web", Object: runtime.RawExtension{Raw: []byte("{}")},
	}})
}

// A replica whose watch is cut off knows of the lock as well.
func TestALockCountsWhereTheCacheIsBehind(t *testing.T) {
	t.Parallel()
	pod, locked := sample.Pod("shop", "web"), sample.LockedBudget("shop", time.Hour)
	free := locked.DeepCopy()
	free.Annotations = nil
	behind, now := fault.NewServer(t, pod, free), fault.NewServer(t, pod, locked)
	gate := newEvictionGate(registry{cached: behind.Manager, live: now.Manager}, behind.Manager, now.Manager, Options{Now: trusted})
	answer := gate.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Namespace: "shop", Name: "web", Object: runtime.RawExtension{Raw: []byte("{}")},
	}})
	if answer.Allowed || !strings.Contains(answer.Result.Message, "is locked by dba@example.com until") {
		t.Errorf("allowed %v, answer %+v; want it to wait for the lock", answer.Allowed, answer.Result)
	}
}

func TestALockHoldsNoLongerThanTheManagerLets(t *testing.T) {
	t.Parallel()
	_, answer := lockedGate(t, 5*time.Minute, nil)
	if answer.Allowed || !strings.Contains(answer.Result.Message, "mover.example.com is asked to move pod web") {
		t.Errorf("allowed %v, answer %+v; want the evacuators to be asked", answer.Allowed, answer.Result)
	}
}

// Budgets that cannot be read may be locked; who evicts tries again.
func TestBudgetsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	api, answer := lockedGate(t, 0, func(request string) error {
		if strings.HasPrefix(request, "list PodDisruptionBudget") {
			return errors.New("no cache")
		}
		return nil
	})
	const want = "cannot read the PodDisruptionBudgets and evacuators of pod web, try again: list poddisruptionbudgets: no cache"
	if answer.Allowed || answer.Result.Code != http.StatusTooManyRequests || answer.Result.Message != want || len(api.Writes()) > 0 {
		t.Errorf("allowed %v, answer %+v, writes %v; want 429 and %q", answer.Allowed, answer.Result, api.Writes(), want)
	}
}
