package scenario

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/test/cluster"
)

// holdFinalizer keeps a pod terminating until the test releases it.
const holdFinalizer = "scenario.ebbtide.dev/hold"

// pod is what a scenario cares about in a pod.
type pod struct {
	name     string
	priority int32
	labels   map[string]string
	// held pods stay terminating until they are released.
	held bool
	// neverEvicted pods are under a budget that never allows a disruption.
	neverEvicted bool
	// mirror pods stand for a static pod.
	mirror bool
}

// pods creates pods on a node, waits until they run and returns their names.
func (w *world) pods(node string, pods ...pod) []string {
	w.t.Helper()
	var names []string
	for _, p := range pods {
		w.createPod(w.podOn(node, p))
		if p.neverEvicted {
			w.createBudget(p.name, policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1))})
		}
		names = append(names, p.name)
	}
	for _, name := range names {
		w.awaitPod(name, "running", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	}
	return names
}

// createPod tries until the API server has seen the pod's new priority class.
func (w *world) createPod(p *corev1.Pod) {
	w.t.Helper()
	w.eventually("create pod "+p.Name, func() (bool, any) {
		err := w.client.Create(w.ctx, p.DeepCopy())
		if !apierrors.IsForbidden(err) {
			w.must("create pod "+p.Name, err)
			return true, nil
		}
		return false, err.Error()
	})
}

func (w *world) podOn(node string, p pod) *corev1.Pod {
	w.t.Helper()
	result := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.name, Namespace: w.ns, Labels: map[string]string{"name": p.name}, Annotations: map[string]string{}},
		Spec:       w.podSpec(),
	}
	result.Spec.NodeName = node
	result.Spec.TerminationGracePeriodSeconds = new(int64(0))
	for key, value := range p.labels {
		result.Labels[key] = value
	}
	if p.priority != 0 {
		result.Spec.PriorityClassName = w.priorityClass(p.priority)
	}
	if p.held {
		result.Finalizers = []string{holdFinalizer}
		w.t.Cleanup(func() { w.release(p.name) })
	}
	if p.mirror {
		var of corev1.Node
		w.must("get the node of a mirror pod", w.client.Get(w.ctx, client.ObjectKey{Name: node}, &of))
		podclass.MakeMirror(result, of.UID)
	}
	return result
}

func (w *world) podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		AutomountServiceAccountToken: new(false),
		Containers:                   []corev1.Container{{Name: "app", Image: "app"}},
	}
}

// priorityClass makes sure of a class for a priority; all scenarios share them.
func (w *world) priorityClass(priority int32) string {
	w.t.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("priority-%d", priority)}, Value: priority}
	if err := w.client.Create(w.ctx, class); !apierrors.IsAlreadyExists(err) {
		w.must("create priority class", err)
	}
	return class.Name
}

// release lets held pods go. One that is gone already is fine.
func (w *world) release(names ...string) {
	w.t.Helper()
	for _, name := range names {
		held := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.ns}}
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		w.must("release "+name, client.IgnoreNotFound(w.client.Patch(w.ctx, held, patch)))
	}
}

// deployment creates a Deployment whose pods run on this world's nodes.
func (w *world) deployment(name string, replicas int32) {
	w.t.Helper()
	labels := map[string]string{"name": name}
	w.create(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.ns},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: w.podSpec()},
		},
	})
}

// daemonSet creates a DaemonSet for one node.
func (w *world) daemonSet(name, node string) {
	w.t.Helper()
	labels := map[string]string{"name": name}
	spec := w.podSpec()
	spec.NodeSelector = map[string]string{cluster.PoolLabel: w.cluster.Pool(), corev1.LabelHostname: node}
	w.create(&appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.ns},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	})
}

// budget lets so many pods of an application be unavailable.
func (w *world) budget(name string, unavailable int32) {
	w.t.Helper()
	w.createBudget(name, policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(unavailable))})
}

func (w *world) createBudget(name string, spec policyv1.PodDisruptionBudgetSpec) {
	w.t.Helper()
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": name}}
	w.create(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.ns}, Spec: spec})
	await(w, "budget "+name+" counted", &policyv1.PodDisruptionBudget{}, name, func(b *policyv1.PodDisruptionBudget) bool {
		return b.Status.ObservedGeneration >= b.Generation && b.Status.ExpectedPods > 0
	})
}

func terminating(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }

func readyPods(n int) func([]corev1.Pod) bool {
	return func(pods []corev1.Pod) bool {
		ready := 0
		for i := range pods {
			if available(&pods[i]) {
				ready++
			}
		}
		return ready == n && len(pods) == n
	}
}

// available is what a budget counts as healthy.
func available(p *corev1.Pod) bool {
	if p.DeletionTimestamp != nil {
		return false
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// evict calls the eviction API once, as drainers do that know nothing of us.
func (w *world) evict(pod *corev1.Pod, dryRun ...string) error {
	eviction := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{DryRun: dryRun}}
	return w.client.SubResource("eviction").Create(w.ctx, pod.DeepCopy(), eviction)
}

// awaitAnswer tries to evict until the API server says so. Every answer is to be
// one on which drainers try again.
func (w *world) awaitAnswer(pod *corev1.Pod, words string) {
	w.t.Helper()
	w.eventually("an eviction of "+pod.Name+" answered "+words, func() (bool, any) {
		err := w.evict(pod)
		if !apierrors.IsTooManyRequests(err) {
			w.t.Fatalf("eviction of %s: %v, want 429", pod.Name, err)
		}
		return contains(err.Error(), words), err.Error()
	})
}
