// Package evictionrequest tells stories of EvictionRequests on a real control plane with
// the feature gate EvictionRequestAPI. Kubernetes before 1.37 has none: nothing is run there.
package evictionrequest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	lifecycleac "k8s.io/client-go/applyconfigurations/lifecycle/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/evictionrequest/said"
	"ebbtide.dev/ebbtide/test/patience"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainOfEvictionRequests(m)) }

const (
	evictor  = core.DefaultEvictor
	awaiting = said.Awaiting
)

// world is a namespace of a control plane that serves EvictionRequests.
type world struct {
	t       testing.TB
	ctx     context.Context
	cluster *cluster.Cluster
	client  client.WithWatch
	ns      string
	// began is when another controller gave the first turn.
	began metav1.Time
}

// newWorld is one in which the manager runs.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := bareWorld(t, cluster.Spec{EvictionRequests: true, Nodes: 1})
	w.cluster.StartManager(t)
	return w
}

func bareWorld(t testing.TB, spec cluster.Spec) *world {
	t.Helper()
	c := cluster.Start(t, spec)
	return &world{t: t, ctx: context.WithoutCancel(t.Context()), cluster: c, client: c.Client, ns: c.Namespace(t)}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// pod makes a running pod with responders such as "example.com/leader 20000".
func (w *world) pod(name string, responders ...string) *corev1.Pod {
	w.t.Helper()
	pod := w.newPod(name, responders...)
	w.must(w.client.Create(w.ctx, pod))
	return pod
}

func (w *world) newPod(name string, responders ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name, Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			Containers:                    []corev1.Container{{Name: "web", Image: "example.com/web"}},
			TerminationGracePeriodSeconds: new(int64(1)),
			AutomountServiceAccountToken:  new(false),
		},
	}
	if len(w.cluster.Nodes) > 0 {
		pod.Spec.NodeName = w.cluster.Nodes[0]
	}
	for _, one := range responders {
		responder := corev1.EvictionResponder{Priority: new(int32(0))}
		if _, err := fmt.Sscan(one, &responder.Name, responder.Priority); err != nil {
			w.t.Fatal(err)
		}
		pod.Spec.EvictionResponders = append(pod.Spec.EvictionResponders, responder)
	}
	return pod
}

// ask makes a request for the eviction of a pod.
func (w *world) ask(requester string, pod *corev1.Pod) *lifecyclev1alpha1.EvictionRequest {
	w.t.Helper()
	request := newRequest(requester, pod)
	w.must(w.client.Create(w.ctx, request))
	return request
}

func newRequest(requester string, pod *corev1.Pod) *lifecyclev1alpha1.EvictionRequest {
	return &lifecyclev1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: strings.NewReplacer("/", "-").Replace(requester) + "-" + pod.Name},
		Spec: lifecyclev1alpha1.EvictionRequestSpec{
			Target:    lifecyclev1alpha1.EvictionRequestTarget{Pod: &lifecyclev1alpha1.EvictionRequestPodReference{Name: pod.Name, UID: pod.UID}},
			Requester: requester, Intent: lifecyclev1alpha1.EvictionRequestIntentEviction,
		},
	}
}

func (w *world) withdraw(request *lifecyclev1alpha1.EvictionRequest) {
	w.t.Helper()
	w.intend(request, lifecyclev1alpha1.EvictionRequestIntentWithdrawn)
}

func (w *world) intend(request *lifecyclev1alpha1.EvictionRequest, intent lifecyclev1alpha1.EvictionRequestIntent) {
	w.t.Helper()
	w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(request), request))
	before := request.DeepCopy()
	request.Spec.Intent = intent
	w.must(w.client.Patch(w.ctx, request, client.MergeFrom(before)))
}

// budget wants so many of the pods.
func (w *world) budget(minAvailable int) *policyv1.PodDisruptionBudget {
	w.t.Helper()
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, MinAvailable: new(intstr.FromInt32(int32(minAvailable))),
		},
	}
	w.must(w.client.Create(w.ctx, b))
	return b
}

// eventually waits for a state; what is there is shown if it does not come.
func (w *world) eventually(what string, is func() (bool, any)) {
	w.t.Helper()
	patience.EventuallyShown(w.t, what, func(context.Context) (func() string, bool) {
		done, seen := is()
		return func() string { return cluster.Brief(seen) }, done
	})
}

// awaitRequest waits until a request says something.
func (w *world) awaitRequest(request *lifecyclev1alpha1.EvictionRequest, want string) {
	w.t.Helper()
	w.eventually("the request to say "+want, func() (bool, any) {
		w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(request), request))
		return tells(request.Status.Conditions) == want, tells(request.Status.Conditions)
	})
}

// awaitEviction waits until an Eviction says something of itself and its responders.
func (w *world) awaitEviction(name, conditions, turns string) *lifecyclev1alpha1.Eviction {
	w.t.Helper()
	e := &lifecyclev1alpha1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	w.eventually("Eviction "+name+" to say "+conditions+" with "+turns, func() (bool, any) {
		if err := w.client.Get(w.ctx, client.ObjectKeyFromObject(e), e); err != nil {
			return false, err
		}
		return tells(e.Status.Conditions) == conditions && turnsOf(e) == turns, tells(e.Status.Conditions) + " with " + turnsOf(e)
	})
	return e
}

func (w *world) awaitGone(object client.Object) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%T %s to be gone", object, object.GetName()), func() (bool, any) {
		err := w.client.Get(w.ctx, client.ObjectKeyFromObject(object), object)
		return client.IgnoreNotFound(err) == nil && err != nil, object.GetDeletionTimestamp()
	})
}

// reports is what a responder says of itself, as those of others do it.
func (w *world) reports(eviction, responder string, complete bool) error {
	own := lifecycleac.ResponderStatus().WithName(responder).WithHeartbeatTime(metav1.Now()).WithMessage("moving")
	if complete {
		own.WithCompletionTime(metav1.Now())
	}
	return w.client.Status().Apply(w.ctx, lifecycleac.Eviction(eviction, w.ns).WithStatus(lifecycleac.EvictionStatus().WithResponders(own)),
		client.FieldOwner(responder), client.ForceOwnership)
}

var tells, turnsOf = said.Conditions, said.Turns

func gone(pod string) string {
	return "Failed=False/Succeeded, TargetEvicted=True/PodDeleted: Pod " + pod + " is gone."
}
