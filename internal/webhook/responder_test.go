package webhook

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/test/fault"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

const leading = "example.com/leader"

// led is a pod with a responder, and an Eviction in which that has its turn.
func led(uid types.UID) (*corev1.Pod, *lifecyclev1alpha1.Eviction) {
	pod := sample.Pod("shop", "web")
	pod.UID = uid
	pod.Spec.EvictionResponders = []corev1.EvictionResponder{{Name: leading, Priority: new(int32(20000))}}
	now, words := metav1.Now(), "Waits for the last shard."
	return pod, &lifecyclev1alpha1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pod-1-web"},
		Spec:       lifecyclev1alpha1.EvictionSpec{Target: lifecyclev1alpha1.EvictionTarget{Pod: &lifecyclev1alpha1.EvictionPodReference{Name: "web", UID: uid}}},
		Status: lifecyclev1alpha1.EvictionStatus{
			TargetResponders: []lifecyclev1alpha1.TargetResponder{{Name: leading, State: lifecyclev1alpha1.ResponderStateActive}},
			Responders:       []lifecyclev1alpha1.ResponderStatus{{Name: leading, StartTime: &now, Message: &words}},
		},
	}
}

// answerAbout is the answer to an eviction of the pod web, as is known of its responders; a nil
// Eviction is that there is none.
func answerAbout(t *testing.T, known *responders, annotations map[string]string, refuse func(string) error, objects ...client.Object) admission.Response {
	t.Helper()
	api := fault.NewServer(t, objects...)
	api.Refuse = refuse
	gate := newEvictionGate(registry{cached: api.Manager, live: api.Manager}, api.Manager, api.Manager, Options{Now: trusted})
	if known != nil {
		known.cached = api.Manager
	}
	gate.responders = known
	raw, err := json.Marshal(&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}})
	must(t, err)
	return gate.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Namespace: "shop", Name: "web", Object: runtime.RawExtension{Raw: raw},
	}})
}

func served() (served, known bool)    { return true, true }
func notServed() (served, known bool) { return false, true }
func notAsked() (served, known bool)  { return false, false }

// What cannot be read of responders is not that there are none, and where there is no API for
// them nobody hears of it.
func TestStatesOfResponders(t *testing.T) {
	t.Parallel()
	const turn = "eviction in progress: responder example.com/leader has its turn to move pod web (Eviction pod-1-web); try again until the pod is gone. It says: Waits for the last shard."
	broken := func(request string) error {
		if strings.HasPrefix(request, "list Eviction ") || request == "list Eviction" {
			return errors.New("no cache")
		}
		return nil
	}
	nobody := func(string) error { return nil }
	for name, tc := range map[string]struct {
		known  *responders
		refuse func(string) error
		as     string
		words  string
	}{
		"its responder has the turn":      {&responders{asked: served, read: true}, nobody, "", turn},
		"it is the responder":             {&responders{asked: served, read: true}, nobody, leading, ""},
		"it is the evictor of Ebbtide":    {&responders{asked: served, read: true}, nobody, "true", turn},
		"nobody is to ask":                {nil, broken, "", ""},
		"the API is not served":           {&responders{asked: notServed}, broken, "", ""},
		"nobody knows whether it is":      {&responders{asked: notAsked}, nobody, "", "the API server has not reported yet whether it serves EvictionRequests; try again"},
		"it was not read yet":             {&responders{asked: served}, nobody, "", "the cache of Evictions of lifecycle.k8s.io is not synced yet; try again"},
		"it cannot be read":               {&responders{asked: served, read: true}, broken, "", "list its Evictions of lifecycle.k8s.io: no cache; try again"},
		"not even by the responder":       {&responders{asked: served, read: true}, broken, leading, "list its Evictions of lifecycle.k8s.io: no cache; try again"},
		"the evictor, and nobody can say": {&responders{asked: notAsked}, nobody, "true", "the API server has not reported yet whether it serves EvictionRequests; try again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod, e := led("5d2f")
			var annotations map[string]string
			if tc.as != "" {
				annotations = map[string]string{v1alpha1.EvictionRequestAnnotation: tc.as}
			}
			answer := answerAbout(t, tc.known, annotations, tc.refuse, pod, e)
			if answer.Allowed != (tc.words == "") || !answer.Allowed && (answer.Result.Code != http.StatusTooManyRequests || !strings.HasSuffix(answer.Result.Message, tc.words)) {
				t.Errorf("allowed %v: %+v, want 429 with %q", answer.Allowed, answer.Result, tc.words)
			}
		})
	}
	// Most pods name no responder: they go whatever is known.
	pod, _ := led("5d2f")
	pod.Spec.EvictionResponders = nil
	if answer := answerAbout(t, &responders{asked: notAsked}, nil, broken, pod); !answer.Allowed {
		t.Errorf("a pod without responders waits: %+v", answer.Result)
	}
}

// A responder is silent for too long by a trusted clock only, and not while it may have
// been away with a manager that has just come back.
func TestASilentResponderIsWaitedForWhileItMayNotHaveBeenHeard(t *testing.T) {
	t.Parallel()
	pod, e := led("5d2f")
	api := fault.NewServer(t, pod, e)
	skewed := true
	gate := newEvictionGate(registry{cached: api.Manager, live: api.Manager}, api.Manager, api.Manager, Options{
		Now: func() (time.Time, bool) { return time.Now().Add(time.Hour), skewed },
	})
	gate.responders = &responders{cached: api.Manager, asked: served, read: true}
	evict := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Namespace: "shop", Name: "web", Object: runtime.RawExtension{Raw: []byte("{}")},
	}}
	if answer := gate.Handle(t.Context(), evict); answer.Allowed {
		t.Error("a silent responder loses its turn by a skewed clock")
	}
	skewed = false
	gate.responders.reads(true)
	if answer := gate.Handle(t.Context(), evict); answer.Allowed {
		t.Error("a responder loses its turn because the manager was away")
	}
	gate.responders.since = time.Now().Add(-evictionrequest.HeartbeatEvery)
	if answer := gate.Handle(t.Context(), evict); !answer.Allowed {
		t.Errorf("a responder that is silent for an hour holds others up: %+v", answer.Result)
	}
}
