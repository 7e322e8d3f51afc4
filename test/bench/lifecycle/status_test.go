package lifecycle

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/lifecycle"
	"k8s.io/kubernetes/pkg/apis/lifecycle/install"
	"k8s.io/kubernetes/pkg/apis/lifecycle/validation"
	clocktesting "k8s.io/utils/clock/testing"

	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

var noon = time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC)

// stage is one pod, those who ask for its eviction, those who respond, and an API server
// that validates every status.
type stage struct {
	t      *testing.T
	random *rand.Rand
	scheme *runtime.Scheme
	// clock is the API server's. Ours is ahead by skew, which is less than a second or two.
	clock *clocktesting.FakePassiveClock
	skew  time.Duration

	pod       *corev1.Pod
	gone      time.Time
	requests  []*lifecyclev1alpha1.EvictionRequest
	evictions []*lifecyclev1alpha1.Eviction
	// writes are how many statuses were shown.
	writes *int
}

func newStage(t *testing.T, seed uint64, writes *int) *stage {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	s := &stage{t: t, random: rand.New(rand.NewPCG(seed, 3)), scheme: scheme, clock: clocktesting.NewFakePassiveClock(noon), writes: writes}
	s.skew = time.Duration(s.random.IntN(3000)-1500) * time.Millisecond
	s.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "5d2f1d6e-3f0a-4c8b-9f0e-0a1b2c3d4e5f"}}
	for n := range s.random.IntN(11) {
		s.pod.Spec.EvictionResponders = append(s.pod.Spec.EvictionResponders, corev1.EvictionResponder{
			Name: fmt.Sprintf("r%d.%s/x", n, []string{"example.com", "example.org", "a.example.com"}[s.random.IntN(3)]), Priority: new(int32(1000 + s.random.IntN(3))),
		})
	}
	s.ask()
	return s
}

func (s *stage) now() time.Time { return s.clock.Now().Add(s.skew) }

func (s *stage) ask() {
	n := len(s.requests)
	s.requests = append(s.requests, &lifecyclev1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprintf("request-%d", n), UID: types.UID(fmt.Sprintf("%08d-0000-4000-8000-000000000000", n)),
			Generation: 1, CreationTimestamp: metav1.Time{Time: s.clock.Now().Truncate(time.Second)},
		},
		Spec: lifecyclev1alpha1.EvictionRequestSpec{
			Target:    lifecyclev1alpha1.EvictionRequestTarget{Pod: &lifecyclev1alpha1.EvictionRequestPodReference{Name: s.pod.Name, UID: s.pod.UID}},
			Requester: fmt.Sprintf("%c.example.com/x", 'a'+n%3), Intent: lifecyclev1alpha1.EvictionRequestIntentEviction,
		},
	})
}

// status is what the API server says to a status.
func (s *stage) validate(e *lifecyclev1alpha1.Eviction, status lifecyclev1alpha1.EvictionStatus) field.ErrorList {
	s.t.Helper()
	*s.writes++
	after := e.DeepCopy()
	after.Status = status
	return validation.ValidateEvictionStatusUpdate(s.internal(after), s.internal(e), validation.EvictionStatusValidationOptions{Clock: s.clock})
}

func (s *stage) internal(e *lifecyclev1alpha1.Eviction) *lifecycle.Eviction {
	s.t.Helper()
	// The validation looks at names and versions, too.
	e = e.DeepCopy()
	e.ResourceVersion = "1"
	converted := &lifecycle.Eviction{}
	if err := s.scheme.Convert(e, converted, nil); err != nil {
		s.t.Fatal(err)
	}
	return converted
}

// write shows a status to the API server, which must take it.
func (s *stage) write(e *lifecyclev1alpha1.Eviction, status lifecyclev1alpha1.EvictionStatus, what string) {
	s.t.Helper()
	if faults := s.validate(e, status); len(faults) > 0 {
		s.t.Fatalf("%s is refused: %v\nbefore %+v\nafter %+v", what, faults.ToAggregate(), e.Status, status)
	}
	e.Status = *status.DeepCopy()
}

// decide has the controller act once; false if there is nothing to do.
func (s *stage) decide() bool {
	s.t.Helper()
	snapshot := evictionrequest.Snapshot{Now: s.now(), Acting: time.Hour, Requests: s.requests, Evictions: s.evictions, Ended: map[types.UID]time.Duration{}}
	if s.gone.IsZero() {
		snapshot.Pods = []*corev1.Pod{s.pod}
	} else {
		snapshot.Ended[s.pod.UID] = s.clock.Now().Sub(s.gone)
	}
	d := evictionrequest.Decide(snapshot)
	for _, e := range d.Creations {
		e.UID, e.Generation, e.CreationTimestamp = types.UID(fmt.Sprintf("%08d-0000-4000-9000-000000000000", len(s.evictions))), 1, metav1.Time{Time: s.clock.Now().Truncate(time.Second)}
		s.evictions = append(s.evictions, e)
	}
	for _, whole := range d.Metadata {
		for _, e := range s.evictions {
			if e.Name == whole.Name {
				e.Labels, e.OwnerReferences = whole.Labels, whole.OwnerReferences
			}
		}
	}
	for _, change := range d.Evictions {
		s.write(change.Eviction, change.Status, "what the controller writes")
	}
	for _, change := range d.Requests {
		change.Request.Status = change.Status
	}
	return !d.Empty()
}
