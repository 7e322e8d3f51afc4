package evictor

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/sandbox"
)

var errStorm = errors.New("the API server is overloaded")

// stage is an API server in memory on which requests of the evictor go wrong.
type stage struct {
	t      *testing.T
	client client.WithWatch
	r      *reconciler
	// refuse is asked before every request of the evictor, such as "live get Pod web-0" or
	// "report web-0"; what it returns is the answer.
	refuse func(request string) error
}

// evacuated names the pods whose evacuation is asked for.
func (s *stage) evacuated() (names []string) {
	s.t.Helper()
	list := &v1alpha1.EvacuationList{}
	if err := s.client.List(s.t.Context(), list); err != nil {
		s.t.Fatal(err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Spec.PodRef.Name)
	}
	return names
}

// newStage has pods of these names, each with an Eviction of the same name in which it is
// the evictor's turn.
func newStage(t *testing.T, names ...string) *stage {
	t.Helper()
	s := &stage{t: t, refuse: func(string) error { return nil }}
	scheme, err := sandbox.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&lifecyclev1alpha1.Eviction{}).
		WithIndex(&v1alpha1.Evacuation{}, kube.EvacuationTurnField, func(object client.Object) []string {
			return kube.EvacuationTurn(object.(*v1alpha1.Evacuation))
		})
	for _, name := range names {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}}
		e := &lifecyclev1alpha1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("eviction-" + name)}}
		e.Spec.Target.Pod = &lifecyclev1alpha1.EvictionPodReference{Name: name, UID: pod.UID}
		e.Status.TargetResponders = []lifecyclev1alpha1.TargetResponder{{Name: core.DefaultEvictor, Priority: new(int32(100)), State: lifecyclev1alpha1.ResponderStateActive}}
		e.Status.Responders = []lifecyclev1alpha1.ResponderStatus{{Name: core.DefaultEvictor, StartTime: new(metav1.Now())}}
		builder.WithObjects(pod, e)
	}
	s.client = builder.Build()
	s.r = &reconciler{
		client: s.as(""), live: s.as("live "), reports: s.as(""), acts: func() bool { return true }, now: time.Now,
		clock: func() (time.Time, bool) { return time.Now(), false }, surge: surge.Annotated, emit: func(...event.Event) {},
	}
	return s
}

// as is the evictor's client, whose reads have a name that begins so.
func (s *stage) as(prefix string) client.WithWatch {
	return interceptor.NewClient(s.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, pod := object.(*corev1.Pod); pod {
				if err := s.refuse(fmt.Sprintf("%sget Pod %s", prefix, key.Name)); err != nil {
					return err
				}
			}
			return c.Get(ctx, key, object, options...)
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, object runtime.ApplyConfiguration, options ...client.SubResourceApplyOption) error {
			if err := s.refuse("report"); err != nil {
				return err
			}
			return c.SubResource(sub).Apply(ctx, object, options...)
		},
	})
}

func (s *stage) step(name string) error {
	_, err := s.r.Reconcile(s.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}})
	return err
}

// said is what the evictor has reported of a pod, and whether it is done with it.
func (s *stage) said(name string) string {
	s.t.Helper()
	e := &lifecyclev1alpha1.Eviction{}
	if err := s.client.Get(s.t.Context(), types.NamespacedName{Namespace: "shop", Name: name}, e); err != nil {
		s.t.Fatal(err)
	}
	own := core.ResponderOf(&e.Status, core.DefaultEvictor)
	switch {
	case own == nil || own.Message == nil:
		return ""
	case own.CompletionTime != nil:
		return "done: " + *own.Message
	}
	return *own.Message
}

func (s *stage) expect(what, got, want string) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// refuseOnly has one kind of request go wrong.
func (s *stage) refuseOnly(name string) {
	s.refuse = func(request string) error {
		if request == name {
			return errStorm
		}
		return nil
	}
}

// A pod that cannot be read is not gone, wherever it is looked for; others go on.
func TestAPodThatCannotBeReadIsNotGone(t *testing.T) {
	t.Parallel()
	for name, unread := range map[string]string{"in the cache": "get Pod web-0", "at the API server": "live get Pod web-0"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "web-0", "web-1")
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"}}
			if err := s.client.Delete(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			s.refuseOnly(unread)
			if err := s.step("web-0"); !errors.Is(err, errStorm) {
				t.Errorf("it ends with %v, want that it is tried again", err)
			}
			s.expect("what is said of it", s.said("web-0"), "")
			if err := s.step("web-1"); err != nil {
				t.Error(err)
			}
			s.expect("who is evacuated", fmt.Sprint(s.evacuated()), "[web-1]")
			s.refuse = func(string) error { return nil }
			if err := s.step("web-0"); err != nil {
				t.Error(err)
			}
			s.expect("what is said of it in the end", s.said("web-0"), "done: Pod web-0 is gone.")
		})
	}
}

// A report that is refused is made later.
func TestAReportThatIsRefusedIsMadeLater(t *testing.T) {
	t.Parallel()
	s := newStage(t, "web-0")
	s.refuseOnly("report")
	if err := s.step("web-0"); err != nil {
		t.Errorf("an evacuation that needs no report ends with %v", err)
	}
	s.expect("who is evacuated", fmt.Sprint(s.evacuated()), "[web-0]")
	if err := s.client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.step("web-0"); !errors.Is(err, errStorm) {
		t.Errorf("it ends with %v, want that it is tried again", err)
	}
	s.expect("what is said of it", s.said("web-0"), "")
	s.refuse = func(string) error { return nil }
	if err := s.step("web-0"); err != nil {
		t.Error(err)
	}
	s.expect("what is said of it in the end", s.said("web-0"), "done: Pod web-0 is gone.")
}

// Who is not the controller does nothing.
func TestWaitingContenderTakesNoLock(t *testing.T) {
	t.Parallel()
	s := newStage(t, "web-0")
	s.r.acts = func() bool { return false }
	if err := s.step("web-0"); err != nil || len(s.evacuated()) > 0 {
		t.Errorf("it ends with %v and has asked for %v, want nobody", err, s.evacuated())
	}
}

// A manager that responds to nobody lets go of what one before it has asked for, whatever
// Evictions there are, and of nothing else.
func TestDisabledResponderReleasesItsEvictions(t *testing.T) {
	t.Parallel()
	s := newStage(t, "web-0")
	const operator = v1alpha1.InstigatorFinalizerPrefix + "operator.example.com"
	for name, finalizers := range map[string][]string{"ours": {v1alpha1.LifecycleInstigator, operator}, "theirs": {operator}} {
		e := &v1alpha1.Evacuation{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Finalizers: finalizers, Annotations: map[string]string{v1alpha1.EvictionTurnAnnotation: `{"name":"web-0","uid":"eviction-web-0","responder":"` + core.DefaultEvictor + `"}`},
		}}
		if err := s.client.Create(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.r.off(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web-0"}}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ours", "theirs"} {
		e := &v1alpha1.Evacuation{}
		if err := s.client.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: name}, e); err != nil || len(e.Finalizers) != 1 || e.Finalizers[0] != operator {
			t.Errorf("Evacuation %s is asked for by %v (%v), want %s only", name, e.Finalizers, err, operator)
		}
	}
}
