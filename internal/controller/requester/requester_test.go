package requester

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/event"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/sandbox"
)

var errStorm = errors.New("the API server is overloaded")

// stage is an API server in memory on which requests of the requester go wrong.
type stage struct {
	t      *testing.T
	client client.WithWatch
	r      *Requester
	// refused are the requests that are not answered, such as "get Pod web-0".
	refused []string
	told    []string
}

// newStage has pods of these names that name a responder, each with an Evacuation that
// somebody asks for. Requests are answered by others.
func newStage(t *testing.T, names ...string) *stage {
	t.Helper()
	s := &stage{t: t}
	scheme, err := sandbox.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, name := range names {
		pod := aPod(name)
		builder.WithObjects(pod, evacuation.New(pod, v1alpha1.InstigatorFinalizerPrefix+"descheduler.example.com", nil))
	}
	s.client = builder.Build()
	s.r = &Requester{
		client:  s.failing(),
		options: Options{Acts: func() bool { return false }, Now: time.Now},
		asked:   func() (bool, bool) { return true, true }, watching: true, gone: map[item]time.Time{},
		emit: func(events ...event.Event) {
			for _, e := range events {
				s.told = append(s.told, e.Reason+": "+e.Message)
			}
		},
	}
	return s
}

func aPod(name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}}
	pod.Spec.EvictionResponders = []corev1.EvictionResponder{{Name: "example.com/leader", Priority: new(int32(20000))}}
	return pod
}

func (s *stage) failing() client.Client {
	answer := func(verb string, object client.Object, name string) error {
		kind := fmt.Sprintf("%T", object)
		if slices.Contains(s.refused, fmt.Sprintf("%s %s %s", verb, kind[strings.LastIndex(kind, ".")+1:], name)) {
			return errStorm
		}
		return nil
	}
	return interceptor.NewClient(s.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if err := answer("get", object, key.Name); err != nil {
				return err
			}
			return c.Get(ctx, key, object, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := answer("create", object, object.GetName()); err != nil {
				return err
			}
			return c.Create(ctx, object, options...)
		},
	})
}

func (s *stage) step(name string) error {
	_, err := s.r.Reconcile(s.t.Context(), item{types.NamespacedName{Namespace: "shop", Name: name}, types.UID("uid-" + name)})
	return err
}

// intent is what the request of an Evacuation asks for; empty if there is none.
func (s *stage) intent(name string) string {
	request := &lifecyclev1alpha1.EvictionRequest{}
	if err := s.client.Get(s.t.Context(), types.NamespacedName{Namespace: "shop", Name: "evacuation-uid-" + name}, request); err != nil {
		return ""
	}
	return string(request.Spec.Intent)
}

// A request that cannot be made has its pod wait, which is told, and no other.
func TestARequestThatIsRefusedHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := newStage(t, "web-0", "web-1")
	s.refused = []string{"create EvictionRequest evacuation-uid-web-0"}
	if err := s.step("web-0"); !errors.Is(err, errStorm) {
		t.Errorf("the refusal comes to %v, want it tried again", err)
	}
	const want = "EvictionRequestRefused: EvictionRequest evacuation-uid-web-0 cannot be made, so that pod web-0 waits: the API server is overloaded"
	if !slices.Equal(s.told, []string{want}) {
		t.Errorf("it tells %q, want %q", s.told, want)
	}
	if err := s.step("web-1"); err != nil || s.intent("web-0") != "" || s.intent("web-1") != "Eviction" {
		t.Errorf("the other pod is asked for %q, this one for %q: %v", s.intent("web-1"), s.intent("web-0"), err)
	}
}

// What cannot be read is not taken for gone: nothing is withdrawn.
func TestWhatCannotBeReadIsNotGone(t *testing.T) {
	t.Parallel()
	for _, refused := range []string{"get Pod web-0", "get Evacuation uid-web-0-web-0", "get EvictionRequest evacuation-uid-web-0"} {
		s := newStage(t, "web-0")
		if err := s.step("web-0"); err != nil {
			t.Fatal(err)
		}
		s.refused = []string{refused}
		if err := s.step("web-0"); !errors.Is(err, errStorm) || s.intent("web-0") != "Eviction" {
			t.Errorf("%s: it is asked for %q, %v; want it asked still, and tried again", refused, s.intent("web-0"), err)
		}
	}
}

// A request of a maintenance that cannot be read does not hold up that of the Evacuation.
func TestOneRequestOfAPodHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := newStage(t, "web-0")
	s.refused = []string{"get EvictionRequest node-maintenance-uid-web-0"}
	if err := s.step("web-0"); !errors.Is(err, errStorm) || s.intent("web-0") != "Eviction" {
		t.Errorf("the Evacuation asks for %q: %v", s.intent("web-0"), err)
	}
}

// Who calls an Evacuation off has its request withdrawn, and gone in the end, and so does
// one whose pod is gone, by whichever manager.
func TestARequestIsClearedAway(t *testing.T) {
	t.Parallel()
	s := newStage(t, "web-0", "web-1")
	for _, name := range []string{"web-0", "web-1"} {
		if err := s.step(name); err != nil {
			t.Fatal(err)
		}
	}
	e := evacuation.New(aPod("web-0"), "", nil)
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
		t.Fatal(err)
	}
	e.Finalizers = nil
	if err := errors.Join(s.client.Update(t.Context(), e), s.client.Delete(t.Context(), aPod("web-1")), s.step("web-0"), s.step("web-1")); err != nil {
		t.Fatal(err)
	}
	if s.intent("web-0") != "Withdrawn" || s.intent("web-1") != "Eviction" {
		t.Errorf("they ask for %q and %q, want the first withdrawn, and the second kept for a minute", s.intent("web-0"), s.intent("web-1"))
	}
	s.r.options.Now = func() time.Time { return time.Now().Add(core.KeptFor) }
	for key := range s.r.gone {
		s.r.gone[key] = time.Now().Add(-core.KeptFor)
	}
	if err := errors.Join(s.step("web-0"), s.step("web-1")); err != nil || s.intent("web-0") != "" || s.intent("web-1") != "" {
		t.Errorf("a minute later they ask for %q and %q: %v", s.intent("web-0"), s.intent("web-1"), err)
	}
	// What is remembered of pods goes with their requests.
	if err := errors.Join(s.step("web-0"), s.step("web-1")); err != nil || len(s.r.gone) > 0 {
		t.Errorf("it remembers %v: %v", s.r.gone, err)
	}
}

// Nobody answers: that is remembered for an hour, or until somebody does.
func TestNobodyIsAskedInVainForAnHour(t *testing.T) {
	t.Parallel()
	s := newStage(t, "web-0", "web-1", "web-2")
	start := time.Now()
	at := func(d time.Duration) { s.r.options.Now = func() time.Time { return start.Add(d) } }
	if err := s.step("web-0"); err != nil {
		t.Fatal(err)
	}
	request := &lifecyclev1alpha1.EvictionRequest{}
	if err := s.client.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "evacuation-uid-web-0"}, request); err != nil {
		t.Fatal(err)
	}
	// The API in memory does not set it.
	request.CreationTimestamp = metav1.NewTime(start)
	at(31 * time.Second)
	if err := errors.Join(s.client.Update(t.Context(), request), s.step("web-0"), s.step("web-1")); err != nil {
		t.Fatal(err)
	}
	if s.intent("web-0") != "Withdrawn" || s.intent("web-1") != "" || s.r.State().Able {
		t.Errorf("they ask for %q and %q, and more would be asked: %t", s.intent("web-0"), s.intent("web-1"), s.r.State().Able)
	}
	at(time.Hour + time.Minute)
	if err := s.step("web-2"); err != nil || s.intent("web-2") != "Eviction" {
		t.Errorf("an hour later the next one is asked for %q: %v", s.intent("web-2"), err)
	}
}

// Whether anybody can be asked is not known before it is.
func TestWhatIsKnownOfRequests(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		served, known, watching bool
		unknown                 string
		can                     bool
	}{
		"nobody has said":    {unknown: "The API server has not said yet whether it serves EvictionRequests."},
		"it is not served":   {known: true, watching: true},
		"it is not read yet": {served: true, known: true, unknown: "The EvictionRequests that there are have not been read yet."},
		"it is":              {served: true, known: true, watching: true, can: true},
	} {
		s := newStage(t)
		s.r.asked = func() (bool, bool) { return test.served, test.known }
		s.r.watching = test.watching
		if state := s.r.State(); state.Unknown != test.unknown || state.Served != test.can || state.Able != test.can {
			t.Errorf("%s: it knows %+v", name, state)
		}
	}
}
