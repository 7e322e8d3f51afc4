// Package stage steps the controller of EvictionRequests by hand, on an API server in memory
// or on a real one.
package stage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	lifecycleac "k8s.io/client-go/applyconfigurations/lifecycle/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/internal/controller/evictionrequest"
	"ebbtide.dev/ebbtide/test/evictionrequest/said"
)

// Stage is a namespace of an API server, in which the controller is stepped by hand.
// It reads what is there: there is no cache. Make one with New.
type Stage struct {
	T         *testing.T
	Ctx       context.Context
	Client    client.WithWatch
	Namespace string
	// Reconciler is stepped.
	Reconciler *evictionrequest.Reconciler
	// Now is what time the controller takes it to be.
	Now func() time.Time
	// Refuse is asked before every request of the controller, such as "get Pod web-0" or
	// "status of EvictionRequest mine"; what it returns is the answer.
	Refuse func(request string) error
	// Statuses are how many the controller has written.
	Statuses int
	// Again is after how long the controller wants to look again.
	Again time.Duration

	// later is by how much its clock that nobody sets is ahead.
	later time.Duration
}

// New returns a stage on an API server, with a controller.
func New(t *testing.T, c client.WithWatch, namespace string) *Stage {
	t.Helper()
	s := &Stage{
		T: t, Ctx: context.WithoutCancel(t.Context()), Client: c, Namespace: namespace,
		Now: time.Now, Refuse: func(string) error { return nil },
	}
	s.Restart()
	return s
}

// Restart replaces the controller by one that remembers nothing.
func (s *Stage) Restart() {
	steady := func() time.Time { return time.Now().Add(s.later) }
	began := steady()
	s.Reconciler = evictionrequest.New(evictionrequest.Parts{
		Client: s.controller(""), Live: s.controller("live "), Acts: func() bool { return true },
		Now: func() time.Time { return s.Now() }, Steady: steady, Since: func() time.Time { return began },
	})
}

// controller is the client of the controller, whose reads have a name that begins so.
func (s *Stage) controller(prefix string) client.WithWatch {
	return interceptor.NewClient(s.Client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if err := s.Refuse(fmt.Sprintf("%sget %s %s", prefix, kindOf(object), key.Name)); err != nil {
				return err
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return s.listed(ctx, c, list, options)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := s.Refuse(fmt.Sprintf("create %s %s", kindOf(object), object.GetName())); err != nil {
				return err
			}
			return c.Create(ctx, object, options...)
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, object runtime.ApplyConfiguration, options ...client.SubResourceApplyOption) error {
			if err := s.Refuse(fmt.Sprintf("%s of %s", sub, nameOf(object))); err != nil {
				return err
			}
			s.Statuses++
			return c.SubResource(sub).Apply(ctx, object, options...)
		},
	})
}

func kindOf(object client.Object) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", object)[strings.LastIndex(fmt.Sprintf("%T", object), "."):], ".")
}

func nameOf(object runtime.ApplyConfiguration) string {
	switch object := object.(type) {
	case *lifecycleac.EvictionApplyConfiguration:
		return "Eviction " + *object.Name
	case *lifecycleac.EvictionRequestApplyConfiguration:
		return "EvictionRequest " + *object.Name
	}
	return fmt.Sprintf("%T", object)
}

// listed lists without the index that a cache has.
func (s *Stage) listed(ctx context.Context, c client.WithWatch, list client.ObjectList, options []client.ListOption) error {
	var asked client.ListOptions
	asked.ApplyOptions(options)
	stem, _ := asked.FieldSelector.RequiresExactMatch(evictionrequest.StemField)
	if err := c.List(ctx, list, client.InNamespace(asked.Namespace)); err != nil {
		return err
	}
	of := func(object client.Object) bool {
		return slices.Contains(evictionrequest.Stems(object), stem)
	}
	switch list := list.(type) {
	case *lifecyclev1alpha1.EvictionRequestList:
		list.Items = Matching(list.Items, func(one *lifecyclev1alpha1.EvictionRequest) bool { return of(one) })
	case *lifecyclev1alpha1.EvictionList:
		list.Items = Matching(list.Items, func(one *lifecyclev1alpha1.Eviction) bool { return of(one) })
	}
	return nil
}

// Matching are those that are so.
func Matching[T any](all []T, is func(*T) bool) (some []T) {
	for i := range all {
		if is(&all[i]) {
			some = append(some, all[i])
		}
	}
	return some
}

// Must wants no error.
func (s *Stage) Must(err error) {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
}

// Pod makes a pod with responders such as "example.com/leader 20000".
func (s *Stage) Pod(name string, responders ...string) *corev1.Pod {
	s.T.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.com/web"}}},
	}
	for _, one := range responders {
		responder := corev1.EvictionResponder{Priority: new(int32(0))}
		if _, err := fmt.Sscan(one, &responder.Name, responder.Priority); err != nil {
			s.T.Fatal(err)
		}
		pod.Spec.EvictionResponders = append(pod.Spec.EvictionResponders, responder)
	}
	s.Must(s.Client.Create(s.Ctx, pod))
	return pod
}

// Ask makes the request of a requester for a pod.
func (s *Stage) Ask(name, requester string, pod *corev1.Pod) *lifecyclev1alpha1.EvictionRequest {
	s.T.Helper()
	request := &lifecyclev1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
		Spec: lifecyclev1alpha1.EvictionRequestSpec{
			Target:    lifecyclev1alpha1.EvictionRequestTarget{Pod: &lifecyclev1alpha1.EvictionRequestPodReference{Name: pod.Name, UID: pod.UID}},
			Requester: requester, Intent: lifecyclev1alpha1.EvictionRequestIntentEviction,
		},
	}
	s.Must(s.Client.Create(s.Ctx, request))
	return request
}

// Step has the controller act once on the pods of a name.
func (s *Stage) Step(pod string) error {
	result, err := s.Reconciler.Reconcile(s.Ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: s.Namespace, Name: pod}})
	s.Again = result.RequeueAfter
	return err
}

// Settle has the controller act until it writes nothing more.
func (s *Stage) Settle(pod string) {
	s.T.Helper()
	for range 20 {
		before := s.Statuses
		s.Must(s.Step(pod))
		if s.Statuses == before {
			return
		}
	}
	s.T.Fatal("the controller never comes to rest")
}

// Age makes everything older that counts for the turns of an Eviction.
func Age(e *lifecyclev1alpha1.Eviction, by time.Duration) {
	for i := range e.Status.Responders {
		one := &e.Status.Responders[i]
		for _, at := range []*metav1.Time{one.StartTime, one.HeartbeatTime, one.CompletionTime} {
			if at != nil {
				at.Time = at.Add(-by)
			}
		}
	}
}

// Later makes older what the controller remembers.
func (s *Stage) Later(by time.Duration) { s.later += by }

// Reports is what a responder says of itself.
func (s *Stage) Reports(eviction, responder string, complete bool) error {
	now := metav1.Now()
	own := lifecycleac.ResponderStatus().WithName(responder).WithHeartbeatTime(now).WithMessage("moving")
	if complete {
		own.WithCompletionTime(now)
	}
	return s.Client.Status().Apply(s.Ctx, lifecycleac.Eviction(eviction, s.Namespace).WithStatus(lifecycleac.EvictionStatus().WithResponders(own)),
		client.FieldOwner(responder), client.ForceOwnership)
}

// Eviction is the one of a name.
func (s *Stage) Eviction(name string) *lifecyclev1alpha1.Eviction {
	s.T.Helper()
	e := &lifecyclev1alpha1.Eviction{}
	s.Must(s.Client.Get(s.Ctx, types.NamespacedName{Namespace: s.Namespace, Name: name}, e))
	return e
}

// Says are the conditions of a request as they are now.
func (s *Stage) Says(request *lifecyclev1alpha1.EvictionRequest) string {
	s.T.Helper()
	s.Must(s.Client.Get(s.Ctx, client.ObjectKeyFromObject(request), request))
	return said.Conditions(request.Status.Conditions)
}

// Expect compares what is said.
func (s *Stage) Expect(what, got, want string) {
	s.T.Helper()
	if got != want {
		s.T.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}
