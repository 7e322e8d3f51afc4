package scenario

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/cluster"
)

const surgeAnnotation = v1alpha1.EvacuatorAnnotationPrefix + v1alpha1.DeploymentEvacuatorClass

// app is an application behind a Service whose pods are moved by surging.
type app struct {
	name     string
	replicas int32
	// ready is how long its pods take to be ready.
	ready string
	edit  func(*appsv1.Deployment)
}

// serve creates an application on the only node that takes pods, and waits
// until all of it serves.
func (w *world) serve(a app) {
	w.t.Helper()
	labels := map[string]string{"name": a.name}
	meta := metav1.ObjectMeta{Namespace: w.ns, Name: a.name}
	d := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: &a.replicas,
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(1))}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{
				surgeAnnotation: "10000/controller", "sandbox.ebbtide.dev/ready-after": a.ready,
			}},
			Spec: w.podSpec(),
		},
	}}
	if a.edit != nil {
		a.edit(d)
	}
	w.create(d)
	w.create(&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}}})
	w.awaitServing(a)
	// What was ready a moment ago is not yet known to everybody, such as the manager.
	w.eventually(fmt.Sprintf("%d pods of %s are counted", a.replicas, a.name), func() (bool, any) {
		w.must("get "+a.name, w.client.Get(w.ctx, w.key(a.name), d))
		return d.Status.ReadyReplicas == a.replicas, d.Status
	})
}

func (w *world) awaitServing(a app) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d pods of %s serve", a.replicas, a.name), func() (bool, any) {
		ready, err := w.cluster.ReadyEndpoints(w.ctx, w.key(a.name))
		w.must("count endpoints", err)
		return ready == int(a.replicas), ready
	})
}

func (w *world) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: w.ns, Name: name}
}

// oldAndNew are nodes of which only the old one takes pods; letNew opens the other.
func (w *world) oldAndNew() (nodes []string, letNew func()) {
	w.t.Helper()
	nodes = append(w.nodes("old"), w.name("new"))
	// The scheduler never knows it without its cordon.
	fresh := sandbox.NewNode(nodes[1], map[string]string{cluster.PoolLabel: w.cluster.Pool()})
	fresh.Spec.Unschedulable = true
	w.cluster.ForgetNodes(w.t, fresh.Name)
	w.create(fresh)
	w.eventually("node "+fresh.Name+" to be ready", func() (bool, any) {
		w.must("get "+fresh.Name, w.client.Get(w.ctx, client.ObjectKeyFromObject(fresh), fresh))
		ready := slices.ContainsFunc(fresh.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		return ready && len(fresh.Spec.Taints) == 1 && fresh.Spec.Taints[0].Key == corev1.TaintNodeUnschedulable, fresh.Spec.Taints
	})
	return nodes, func() { w.cordon(nodes[1], false) }
}

// shape is what has to be of an application after a drain as it was before: pods
// have other names and nodes.
func (w *world) shape(name string) []string {
	w.t.Helper()
	d, sets, pods := &appsv1.Deployment{}, &appsv1.ReplicaSetList{}, &corev1.PodList{}
	w.get(d, name)
	w.must("list ReplicaSets", w.client.List(w.ctx, sets, client.InNamespace(w.ns), client.MatchingLabels{"name": name}))
	w.must("list pods", w.client.List(w.ctx, pods, client.InNamespace(w.ns), client.MatchingLabels{"name": name}))
	shape := []string{fmt.Sprintf("Deployment generation %d, replicas %d, %v", d.Generation, *d.Spec.Replicas, d.Annotations)}
	for i := range sets.Items {
		set := &sets.Items[i]
		shape = append(shape, fmt.Sprintf("ReplicaSet %s generation %d, replicas %d", set.Name, set.Generation, *set.Spec.Replicas))
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		owner := "nobody"
		if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
			owner = ref.Name
		}
		shape = append(shape, fmt.Sprintf("pod of %s: %v, %v, available %t", owner, pod.Labels, pod.Annotations, available(pod)))
	}
	slices.Sort(shape)
	return shape
}

func (w *world) awaitShape(name string, want []string) {
	w.t.Helper()
	var diff string
	w.eventually(name+" is as it was", func() (bool, any) {
		diff = cmp.Diff(want, w.shape(name))
		return diff == "", diff
	})
}

// thePod is the only pod of an application.
func (w *world) thePod(name string) *corev1.Pod {
	w.t.Helper()
	pods := &corev1.PodList{}
	w.must("list pods", w.client.List(w.ctx, pods, client.InNamespace(w.ns), client.MatchingLabels{"name": name}))
	if len(pods.Items) != 1 {
		w.t.Fatalf("%s has %d pods, want 1", name, len(pods.Items))
	}
	return &pods.Items[0]
}

func (w *world) awaitDetached(pod string) {
	w.t.Helper()
	w.awaitPod(pod, "detached", func(p *corev1.Pod) bool {
		return p.Annotations[v1alpha1.SurgeAnnotation] != "" && metav1.GetControllerOfNoCopy(p) == nil
	})
}

// A drain moves single-replica applications with and without a budget and an
// application with several pods; none of them ever serves with fewer.
func TestDrainTakesNoServiceDown(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		replicas, maxSurge int32
		budget             bool
		edit               func(*appsv1.Deployment)
	}{
		"one pod":                          {replicas: 1, maxSurge: 1},
		"one pod under a budget":           {replicas: 1, maxSurge: 1, budget: true},
		"three pods, one at a time":        {replicas: 3, maxSurge: 1},
		"three pods, two at a time":        {replicas: 3, maxSurge: 2, budget: true},
		"annotated on the Deployment only": {replicas: 1, maxSurge: 1, edit: annotatedAbove},
		"available after a while":          {replicas: 1, maxSurge: 1, edit: func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 2 }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			nodes, letNew := w.oldAndNew()
			web := app{name: "web", replicas: test.replicas, ready: "1s", edit: func(d *appsv1.Deployment) {
				d.Spec.Strategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(test.maxSurge))
				if test.edit != nil {
					test.edit(d)
				}
			}}
			w.serve(web)
			if test.budget {
				w.createBudget("web", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(test.replicas))})
			}
			before := w.shape("web")
			endpoints := w.cluster.WatchEndpoints(t, w.key("web"))
			most := w.watchDetached()
			letNew()

			w.maintain("upgrade", v1alpha1.StageDrain, nodes[:1])

			w.awaitDrained("upgrade")
			w.awaitNoEvacuations()
			endpoints.AssertAtLeast(t, int(test.replicas))
			w.awaitShape("web", before)
			if got := most(); got < 1 || got > int(test.maxSurge) {
				t.Errorf("%d pods were detached at a time, want 1 to %d", got, test.maxSurge)
			}
		})
	}
}

func annotatedAbove(d *appsv1.Deployment) {
	d.Annotations = map[string]string{surgeAnnotation: "10000/controller"}
	delete(d.Spec.Template.Annotations, surgeAnnotation)
}

// watchDetached counts the pods that are detached; the result ends it and
// returns how many there were at a time at most.
func (w *world) watchDetached() func() int {
	w.t.Helper()
	detached, most := map[string]bool{}, 0
	stop := w.watchPods(func(kind watch.EventType, p *corev1.Pod) {
		delete(detached, p.Name)
		if kind != watch.Deleted && p.DeletionTimestamp == nil && p.Annotations[v1alpha1.SurgeAnnotation] != "" {
			detached[p.Name] = true
		}
		most = max(most, len(detached))
	})
	return func() int { stop(); return most }
}

// Kubernetes warns on a budget of the pod that is detached, and lets it go all the
// same when it is replaced, although the budget allows no pod to be unavailable.
func TestLongABudgetWarnsOfADetachedPodAndLetsItGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes, letNew := w.oldAndNew()
	w.serve(app{name: "web", replicas: 1, ready: "0s"})
	w.createBudget("web", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(0))})
	pod := w.thePod("web")
	endpoints := w.cluster.WatchEndpoints(t, w.key("web"))

	w.maintain("upgrade", v1alpha1.StageDrain, nodes[:1])
	w.awaitDetached(pod.Name)
	w.awaitWarning("PodDisruptionBudget", "web", "UnmanagedPods", "were found to be unmanaged")
	letNew()

	w.awaitDrained("upgrade")
	endpoints.AssertAtLeast(t, 1)
}
