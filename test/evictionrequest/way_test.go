package evictionrequest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/test/cluster"
)

// A pod of a Deployment that is to be surged leaves when it is replaced, whoever asks.
func TestAPodIsReplacedBeforeItIsEvicted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	meta, labels := metav1.ObjectMeta{Namespace: w.ns, Name: "shop"}, map[string]string{"app": "shop"}
	spec := w.newPod("any").Spec
	spec.NodeName, spec.NodeSelector = "", map[string]string{cluster.PoolLabel: w.cluster.Pool()}
	w.must(w.client.Create(w.ctx, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}}}))
	w.must(w.client.Create(w.ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(1))}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{v1alpha1.EvacuatorAnnotationPrefix + v1alpha1.DeploymentEvacuatorClass: "10000/controller"}},
			Spec:       spec,
		},
	}}))
	w.eventually("the Deployment to serve", func() (bool, any) {
		ready, err := w.cluster.ReadyEndpoints(w.ctx, client.ObjectKeyFromObject(&corev1.Service{ObjectMeta: meta}))
		w.must(err)
		d := &appsv1.Deployment{ObjectMeta: meta}
		w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(d), d))
		return ready == 1 && d.Status.ReadyReplicas == 1, ready
	})
	pods := &corev1.PodList{}
	w.must(w.client.List(w.ctx, pods, client.InNamespace(w.ns), client.MatchingLabels(labels)))
	endpoints := w.cluster.WatchEndpoints(t, client.ObjectKeyFromObject(&corev1.Service{ObjectMeta: meta}))
	request := w.ask("example.com/upgrade", &pods.Items[0])
	w.awaitGone(&pods.Items[0])
	w.eventually("the request to have succeeded", func() (bool, any) {
		w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(request), request))
		return strings.Contains(tells(request.Status.Conditions), "TargetEvicted=True/PodDeleted"), tells(request.Status.Conditions)
	})
	endpoints.AssertAtLeast(t, 1)
}

// Who has locked a budget is named, and has it until the lock goes.
func TestLongALockedBudgetHoldsAPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pod := w.pod("db-0")
	b := w.budget(0)
	now := time.Now()
	lock := budget.Lock{Holder: "dba", Reason: "defragmentation", AcquiredAt: metav1.Time{Time: now}, ExpiresAt: metav1.Time{Time: now.Add(time.Hour)}}
	w.must(w.client.Patch(w.ctx, b, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.LockAnnotation, lock.Write()))))
	// The manager may not know of the lock yet.
	time.Sleep(time.Second)
	request := w.ask("example.com/upgrade", pod)
	w.awaitMessage("pod-1-db-0", "is locked by dba until")
	w.awaitRequest(request, awaiting)
	w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(pod), pod))
	if pod.DeletionTimestamp != nil {
		t.Error("a pod is evicted whose budget is locked")
	}
	w.must(w.client.Patch(w.ctx, b, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, v1alpha1.LockAnnotation))))
	w.awaitRequest(request, gone("db-0"))
}

// awaitMessage waits until the default evictor says something.
func (w *world) awaitMessage(eviction, words string) {
	w.t.Helper()
	e := &lifecyclev1alpha1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: eviction}}
	w.eventually("the evictor to say "+words, func() (bool, any) {
		if err := w.client.Get(w.ctx, client.ObjectKeyFromObject(e), e); err != nil {
			return false, err
		}
		own := core.ResponderOf(&e.Status, evictor)
		if own == nil || own.Message == nil {
			return false, own
		}
		return strings.Contains(*own.Message, words), *own.Message
	})
}

// A responder that is silent loses its turn to the evictor, and so does one that has spoken
// once: the manager wakes up by itself. That takes it up to one heartbeat after its start.
func TestLongAPodGoesThoughItsResponderIsSilent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pod := w.pod("web-0", "example.com/leader 20000")
	request := w.ask("example.com/upgrade", pod)
	e := w.awaitEviction("pod-1-web-0", awaiting, "example.com/leader Active, "+evictor+" Inactive")
	w.must(w.reports(e.Name, "example.com/leader", false))
	cluster.Rewrite(t, w.cluster, e, func(e *lifecyclev1alpha1.Eviction) {
		own := core.ResponderOf(&e.Status, "example.com/leader")
		for _, at := range []*metav1.Time{own.StartTime, own.HeartbeatTime} {
			at.Time = at.Add(2*time.Second - core.HeartbeatDeadline)
		}
	})
	w.awaitEviction(e.Name, gone("web-0"), "example.com/leader Interrupted, "+evictor+" Completed")
	w.awaitRequest(request, gone("web-0"))
}

// A pod that ends on its own while somebody moves it is not waited for.
func TestLongAPodEndsWhileItIsMoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pod := w.pod("job-0", "example.com/leader 20000")
	request := w.ask("example.com/upgrade", pod)
	w.awaitEviction("pod-1-job-0", awaiting, "example.com/leader Active, "+evictor+" Inactive")
	w.must(w.client.Status().Patch(w.ctx, pod, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`))))
	const ended = "Failed=False/Succeeded, TargetEvicted=True/PodTerminal: Pod job-0 has ended: Failed."
	w.awaitEviction("pod-1-job-0", ended, "example.com/leader Interrupted, "+evictor+" Inactive")
	w.awaitRequest(request, ended)
}

// A pod of a PodGroup is left alone. The API server knows such pods by another feature gate
// only, so that the group is written where it stores them.
func TestLongAPodOfAGroupIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pod := w.pod("worker-0")
	cluster.Rewrite(t, w.cluster, pod, func(pod *corev1.Pod) {
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("training")}
	})
	// The manager may not know of the group yet.
	time.Sleep(time.Second)
	request := w.ask("example.com/upgrade", pod)
	w.awaitRequest(request, "Failed=True/EvictionInvalid: Target pod references a SchedulingGroup. Eviction is currently not supported., TargetEvicted=False/EvictionFailed")
	w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(pod), pod))
	if pod.DeletionTimestamp != nil {
		t.Error("a pod of a group is evicted")
	}
}
