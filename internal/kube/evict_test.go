package kube_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/kube"
)

// apiServer answers every request in the same way and keeps what it was asked.
type apiServer struct {
	path     string
	eviction policyv1.Eviction
	requests int
}

func evictorFor(t *testing.T, asked *apiServer, answer http.HandlerFunc) *kube.Evictor {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.path = r.URL.Path
		asked.requests++
		if err := json.NewDecoder(r.Body).Decode(&asked.eviction); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	evictor, err := kube.NewEvictor(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	return evictor
}

func says(t *testing.T, status metav1.Status) http.HandlerFunc {
	t.Helper()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	body, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "10")
		w.WriteHeader(int(status.Code))
		_, _ = w.Write(body)
	}
}

var victim = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "uid-0"}}

func TestEvictNamesThePodByUID(t *testing.T) {
	t.Parallel()
	asked := &apiServer{}
	grace := int64(5)
	got := evictorFor(t, asked, says(t, metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated})).
		Evict(t.Context(), victim, &grace)
	if got.Status != metav1.StatusSuccess {
		t.Fatalf("answer = %+v, want success", got)
	}
	if want := "/api/v1/namespaces/shop/pods/web-0/eviction"; asked.path != want {
		t.Errorf("path = %s, want %s", asked.path, want)
	}
	uid := victim.UID
	want := &metav1.DeleteOptions{GracePeriodSeconds: &grace, Preconditions: &metav1.Preconditions{UID: &uid}}
	if diff := cmp.Diff(want, asked.eviction.DeleteOptions); diff != "" {
		t.Errorf("delete options (-want +got):\n%s", diff)
	}
}

func TestEvictionNamesItsMachine(t *testing.T) {
	t.Parallel()
	asked := &apiServer{}
	evictor := evictorFor(t, asked, says(t, metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated}))
	evictor.Evict(t.Context(), victim, nil)
	if diff := cmp.Diff(map[string]string(nil), asked.eviction.Annotations); diff != "" {
		t.Errorf("annotations of an ordinary eviction (-want +got):\n%s", diff)
	}
	evictor.ForMachines().Evict(t.Context(), victim, nil)
	want := map[string]string{v1alpha1.MachineDrainAnnotation: "true"}
	if diff := cmp.Diff(want, asked.eviction.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

func TestEvictReturnsARefusalAtOnce(t *testing.T) {
	t.Parallel()
	asked := &apiServer{}
	refusal := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 10).Status()
	refusal.Details.Causes = []metav1.StatusCause{{
		Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget web needs 3 healthy pods and has 3 currently",
	}}
	got := evictorFor(t, asked, says(t, refusal)).Evict(t.Context(), victim, nil)
	if asked.requests != 1 {
		t.Errorf("asked %d times, want once", asked.requests)
	}
	got.TypeMeta = metav1.TypeMeta{}
	if diff := cmp.Diff(refusal, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

func TestEvictKeepsTheWaitOfAThrottlingServer(t *testing.T) {
	t.Parallel()
	throttled := evictorFor(t, &apiServer{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3")
		http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
	})
	got := throttled.Evict(t.Context(), victim, nil)
	if got.Code != http.StatusTooManyRequests || got.Details == nil || got.Details.RetryAfterSeconds != 3 {
		t.Errorf("answer = %+v, want code 429 and a wait of 3 seconds", got)
	}
}

func TestEvictWithoutAServerIsNoAnswer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	evictor, err := kube.NewEvictor(&rest.Config{Host: server.URL}, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	got := evictor.Evict(t.Context(), victim, nil)
	if got.Code != 0 || got.Status != metav1.StatusFailure || got.Message == "" {
		t.Errorf("answer = %+v, want a failure without a code", got)
	}
}
