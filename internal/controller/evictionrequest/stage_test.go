package evictionrequest

import (
	"context"
	"fmt"
	"os"
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

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/evictionrequest/said"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainOfEvictionRequests(m)) }

const (
	awaiting = said.Awaiting
	leader   = "example.com/leader"
)

// stage is a namespace of a real API server, in which the controller is stepped by hand.
// It reads what is there: there is no cache.
type stage struct {
	t       *testing.T
	ctx     context.Context
	cluster *cluster.Cluster
	client  client.WithWatch
	ns      string
	r       *reconciler
	// refuse is asked before every request of the controller, such as "get Pod web-0" or
	// "status of EvictionRequest mine"; what it returns is the answer.
	refuse func(request string) error
	// statuses are how many the controller has written.
	statuses int
	again    time.Duration
}

func newStage(t *testing.T) *stage {
	t.Helper()
	c := cluster.Start(t, cluster.Spec{EvictionRequests: true, OnlyAPIServer: true, NoManager: true})
	s := &stage{
		t: t, ctx: context.WithoutCancel(t.Context()), cluster: c, client: c.Client, ns: c.Namespace(t),
		refuse: func(string) error { return nil },
	}
	s.r = &reconciler{
		client: s.controller(""), live: s.controller("live "), acts: func() bool { return true }, now: time.Now,
		ended: newEnded(), written: newWritten(),
	}
	return s
}

// controller is the client of the controller, whose reads have a name that begins so.
func (s *stage) controller(prefix string) client.WithWatch {
	return interceptor.NewClient(s.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if err := s.refuse(fmt.Sprintf("%sget %s %s", prefix, kindOf(object), key.Name)); err != nil {
				return err
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return s.listed(ctx, c, list, options)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := s.refuse(fmt.Sprintf("create %s %s", kindOf(object), object.GetName())); err != nil {
				return err
			}
			return c.Create(ctx, object, options...)
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, object runtime.ApplyConfiguration, options ...client.SubResourceApplyOption) error {
			if err := s.refuse(fmt.Sprintf("%s of %s", sub, nameOf(object))); err != nil {
				return err
			}
			s.statuses++
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
func (s *stage) listed(ctx context.Context, c client.WithWatch, list client.ObjectList, options []client.ListOption) error {
	var asked client.ListOptions
	asked.ApplyOptions(options)
	stem, _ := asked.FieldSelector.RequiresExactMatch(stemField)
	if err := c.List(ctx, list, client.InNamespace(asked.Namespace)); err != nil {
		return err
	}
	of := func(object client.Object) bool {
		return slices.Contains(stems(object), stem)
	}
	switch list := list.(type) {
	case *lifecyclev1alpha1.EvictionRequestList:
		list.Items = matching(list.Items, func(one *lifecyclev1alpha1.EvictionRequest) bool { return of(one) })
	case *lifecyclev1alpha1.EvictionList:
		list.Items = matching(list.Items, func(one *lifecyclev1alpha1.Eviction) bool { return of(one) })
	}
	return nil
}

func matching[T any](all []T, is func(*T) bool) (some []T) {
	for i := range all {
		if is(&all[i]) {
			some = append(some, all[i])
		}
	}
	return some
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// pod makes a pod with responders such as "example.com/leader 20000".
func (s *stage) pod(name string, responders ...string) *corev1.Pod {
	s.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.com/web"}}},
	}
	for _, one := range responders {
		responder := corev1.EvictionResponder{Priority: new(int32(0))}
		if _, err := fmt.Sscan(one, &responder.Name, responder.Priority); err != nil {
			s.t.Fatal(err)
		}
		pod.Spec.EvictionResponders = append(pod.Spec.EvictionResponders, responder)
	}
	s.must(s.client.Create(s.ctx, pod))
	return pod
}

func (s *stage) ask(name, requester string, pod *corev1.Pod) *lifecyclev1alpha1.EvictionRequest {
	s.t.Helper()
	request := &lifecyclev1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name},
		Spec: lifecyclev1alpha1.EvictionRequestSpec{
			Target:    lifecyclev1alpha1.EvictionRequestTarget{Pod: &lifecyclev1alpha1.EvictionRequestPodReference{Name: pod.Name, UID: pod.UID}},
			Requester: requester, Intent: lifecyclev1alpha1.EvictionRequestIntentEviction,
		},
	}
	s.must(s.client.Create(s.ctx, request))
	return request
}

// step has the controller act once on the pods of a name.
func (s *stage) step(pod string) error {
	result, err := s.r.Reconcile(s.ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: s.ns, Name: pod}})
	s.again = result.RequeueAfter
	return err
}

// settle has the controller act until it writes nothing more.
func (s *stage) settle(pod string) {
	s.t.Helper()
	for range 20 {
		before := s.statuses
		s.must(s.step(pod))
		if s.statuses == before {
			return
		}
	}
	s.t.Fatal("the controller never comes to rest")
}

// pass makes everything older that counts for the turns of an Eviction.
func (s *stage) pass(eviction string, by time.Duration) {
	s.t.Helper()
	at := &lifecyclev1alpha1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: eviction}}
	cluster.Rewrite(s.t, s.cluster, at, func(e *lifecyclev1alpha1.Eviction) {
		for i := range e.Status.Responders {
			one := &e.Status.Responders[i]
			for _, at := range []*metav1.Time{one.StartTime, one.HeartbeatTime, one.CompletionTime} {
				if at != nil {
					at.Time = at.Add(-by)
				}
			}
		}
	})
	for _, gone := range s.r.ended.all {
		for uid, since := range gone {
			gone[uid] = since.Add(-by)
		}
	}
}

// reports is what a responder says of itself.
func (s *stage) reports(eviction, responder string, complete bool) error {
	now := metav1.Now()
	own := lifecycleac.ResponderStatus().WithName(responder).WithHeartbeatTime(now).WithMessage("moving")
	if complete {
		own.WithCompletionTime(now)
	}
	return s.client.Status().Apply(s.ctx, lifecycleac.Eviction(eviction, s.ns).WithStatus(lifecycleac.EvictionStatus().WithResponders(own)),
		client.FieldOwner(responder), client.ForceOwnership)
}

func (s *stage) eviction(name string) *lifecyclev1alpha1.Eviction {
	s.t.Helper()
	e := &lifecyclev1alpha1.Eviction{}
	s.must(s.client.Get(s.ctx, types.NamespacedName{Namespace: s.ns, Name: name}, e))
	return e
}

// says are the conditions of a request as they are now.
func (s *stage) says(request *lifecyclev1alpha1.EvictionRequest) string {
	s.t.Helper()
	s.must(s.client.Get(s.ctx, client.ObjectKeyFromObject(request), request))
	return tells(request.Status.Conditions)
}

var tells, turns = said.Conditions, said.Turns

func (s *stage) expect(what, got, want string) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

const evictor = core.DefaultEvictor
