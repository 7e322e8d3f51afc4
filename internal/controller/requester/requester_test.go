package requester

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/sandbox"
)

var errStorm = errors.New("the API server is overloaded")

// stage is an API server in memory with pod web-0 and the request for it.
type stage struct {
	t      *testing.T
	client client.WithWatch
	r      *Requester
	// unreadable is the object that cannot be read.
	unreadable string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t}
	scheme, err := sandbox.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	pod := aPod()
	s.client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(pod, core.New(pod)).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if key.Name == s.unreadable {
				return errStorm
			}
			return c.Get(ctx, key, object, options...)
		},
	})
	s.r = &Requester{
		client: s.client, options: Options{Acts: func() bool { return false }, Now: time.Now},
		asked: func() (bool, bool) { return true, true }, watching: true, gone: map[item]time.Time{},
	}
	return s
}

func aPod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "uid-web-0"}}
}

func (s *stage) step() error {
	_, err := s.r.Reconcile(s.t.Context(), item{types.NamespacedName{Namespace: "shop", Name: "web-0"}, "uid-web-0"})
	return err
}

// request is the one for the pod; nil if there is none.
func (s *stage) request() *lifecyclev1alpha1.EvictionRequest {
	request := &lifecyclev1alpha1.EvictionRequest{}
	err := s.client.Get(s.t.Context(), types.NamespacedName{Namespace: "shop", Name: "node-maintenance-uid-web-0"}, request)
	if client.IgnoreNotFound(err) != nil {
		s.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return request
}

// What cannot be read is not taken for gone: the request stays.
func TestFailedReadIsNotAbsence(t *testing.T) {
	t.Parallel()
	for _, unreadable := range []string{"web-0", "node-maintenance-uid-web-0"} {
		s := newStage(t)
		s.unreadable = unreadable
		err := s.step()
		s.unreadable = ""
		if !errors.Is(err, errStorm) || s.request() == nil || len(s.r.gone) > 0 {
			t.Errorf("%s: the request is %v, %v; want it there, and tried again", unreadable, s.request(), err)
		}
	}
}

// A request goes a minute after its pod, and what is remembered of it as well.
func TestARequestGoesAMinuteAfterItsPod(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	if err := errors.Join(s.step(), s.client.Delete(t.Context(), aPod()), s.step()); err != nil || s.request() == nil {
		t.Fatalf("the request is %v just after its pod: %v", s.request(), err)
	}
	for key := range s.r.gone {
		s.r.gone[key] = time.Now().Add(-core.KeptFor)
	}
	if err := s.step(); err != nil || s.request() != nil {
		t.Errorf("a minute later it is %v: %v", s.request(), err)
	}
	if err := s.step(); err != nil || len(s.r.gone) > 0 {
		t.Errorf("it remembers %v: %v", s.r.gone, err)
	}
}

// A request that was withdrawn goes a minute later, by whichever manager. What is not ours stays.
func TestAWithdrawnRequestGoes(t *testing.T) {
	t.Parallel()
	for requester, goes := range map[string]bool{"": true, "example.com/upgrade": false} {
		s := newStage(t)
		withdrawn := core.WithdrawnAt(s.request(), time.Now().Add(-core.KeptFor), false)
		if requester != "" {
			withdrawn.Spec.Requester = requester
		}
		if err := errors.Join(s.client.Update(t.Context(), withdrawn), s.step()); err != nil || (s.request() == nil) != goes {
			t.Errorf("requester %q: the request is %v: %v", requester, s.request(), err)
		}
	}
}

// The node by which another manager finds a request is restored.
func TestTheNodeOfARequestIsRestored(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	pod := aPod()
	pod.Spec.NodeName = "one"
	if err := errors.Join(s.client.Update(t.Context(), pod), s.step()); err != nil || s.request().Annotations["ebbtide.dev/node"] != "one" {
		t.Errorf("the request has %v: %v", s.request().Annotations, err)
	}
}

// Nobody answers: nobody else is asked for an hour.
func TestSilentResponderIsNotAskedForAnHour(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	start := time.Now()
	s.r.options.Now = func() time.Time { return start }
	s.r.Unanswered()
	before := s.r.State().Able
	s.r.options.Now = func() time.Time { return start.Add(time.Hour) }
	if before || !s.r.State().Able {
		t.Errorf("others are asked at once: %t, an hour later: %t", before, s.r.State().Able)
	}
}

// Whether anybody can be asked is not known before it is.
func TestStatesOfRequests(t *testing.T) {
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
