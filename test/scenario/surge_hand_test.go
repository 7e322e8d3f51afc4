package scenario

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// What people do to an application in the middle of its surge. The drain ends
// anyway, no Service is down, and nothing of it is left.

// web is the Deployment that these scenarios change.
func (w *world) web() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "web"}}
}

// awaitClean waits until an application has so many pods and nothing tells of a drain.
func (w *world) awaitClean(replicas int32) {
	w.t.Helper()
	w.awaitNoEvacuations()
	w.awaitPods(fmt.Sprintf("%d pods without a trace", replicas), func(pods []corev1.Pod) bool {
		for i := range pods {
			if !untouched(&pods[i]) {
				return false
			}
		}
		return readyPods(int(replicas))(pods)
	})
}

func TestADeploymentIsChangedInTheMiddleOfItsSurge(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*appsv1.DeploymentSpec)
		least  int
	}{
		"scaled up":     {func(s *appsv1.DeploymentSpec) { s.Replicas = new(int32(4)) }, 2},
		"scaled down":   {func(s *appsv1.DeploymentSpec) { s.Replicas = new(int32(1)) }, 1},
		"scaled to 0":   {func(s *appsv1.DeploymentSpec) { s.Replicas = new(int32(0)) }, 0},
		"paused":        {func(s *appsv1.DeploymentSpec) { s.Paused = true }, 2},
		"to surge none": {func(s *appsv1.DeploymentSpec) { s.Strategy = atMost(0, 1) }, 2},
		"to recreate": {func(s *appsv1.DeploymentSpec) {
			s.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		}, 2},
		"rolled out, and the old ReplicaSet deleted": {func(s *appsv1.DeploymentSpec) {
			s.RevisionHistoryLimit = new(int32(0))
			s.Template.Labels["version"] = "next"
		}, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			nodes, letNew := w.oldAndNew()
			w.serve(app{name: "web", replicas: 2, ready: "1s", edit: func(d *appsv1.Deployment) { d.Spec.Strategy = atMost(2, 0) }})
			endpoints := w.cluster.WatchEndpoints(t, w.key("web"))
			w.maintain("upgrade", v1alpha1.StageDrain, nodes[:1])
			w.awaitPods("two detached", func(pods []corev1.Pod) bool {
				detached := 0
				for i := range pods {
					if pods[i].Annotations[v1alpha1.SurgeAnnotation] != "" {
						detached++
					}
				}
				return detached == 2
			})

			d := w.web()
			w.change(d, d.Name, func() { test.change(&d.Spec) })
			letNew()

			w.awaitDrained("upgrade")
			w.awaitClean(*d.Spec.Replicas)
			endpoints.AssertAtLeast(t, test.least)
		})
	}
}

func atMost(surge, unavailable int32) appsv1.DeploymentStrategy {
	return appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{
		MaxSurge: new(intstr.FromInt32(surge)), MaxUnavailable: new(intstr.FromInt32(unavailable)),
	}}
}

// A ReplicaSet that loses its Deployment goes on to make the replacement, also
// when another Deployment of that name takes it over.
func TestADeploymentIsDeletedWithoutItsPods(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"for good": false, "and created again": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			nodes, letNew := w.oldAndNew()
			w.serve(app{name: "web", replicas: 1, ready: "2s"})
			endpoints := w.cluster.WatchEndpoints(t, w.key("web"))
			pod := w.thePod("web")
			w.maintain("upgrade", v1alpha1.StageDrain, nodes[:1])
			w.awaitDetached(pod.Name)

			before := w.web()
			w.get(before, before.Name)
			w.must("delete web", w.client.Delete(w.ctx, w.web(), client.PropagationPolicy(metav1.DeletePropagationOrphan)))
			w.eventually("web is gone", func() (bool, any) {
				err := w.client.Get(w.ctx, w.key("web"), w.web())
				return apierrors.IsNotFound(err), fmt.Sprint(err)
			})
			if again {
				next := w.web()
				next.Spec = before.Spec
				w.create(next)
			}
			letNew()

			w.awaitDrained("upgrade")
			w.awaitClean(1)
			endpoints.AssertAtLeast(t, 1)
		})
	}
}

// A detached pod without a record holds up nobody: it is evicted.
func TestTheRecordOfADetachedPodIsRemoved(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"altogether": "", "in part": "{"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			nodes, letNew := w.oldAndNew()
			w.serve(app{name: "web", replicas: 1, ready: "0s"})
			pod := w.thePod("web")
			w.maintain("upgrade", v1alpha1.StageDrain, nodes[:1])
			w.awaitDetached(pod.Name)

			w.change(pod, pod.Name, func() {
				pod.Annotations[v1alpha1.SurgeAnnotation] = value
				if value == "" {
					delete(pod.Annotations, v1alpha1.SurgeAnnotation)
				}
			})
			letNew()

			w.awaitDrained("upgrade")
			w.awaitClean(1)
		})
	}
}

// What somebody wrote into our annotations of a pod does not take its turn away.
func TestAnnotationsLeftByHandDoNotPreventASurge(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]map[string]string{
		"a record":           {v1alpha1.SurgeAnnotation: `{"pod":"somebody"}`},
		"a mark for nobody":  {v1alpha1.SurgeReplacementAnnotation: `{"for":"somebody"}`},
		"a mark for another": {v1alpha1.SurgeReplacementAnnotation: `{"for":"somebody","deployment":{"name":"other","uid":"other"}}`},
		"a cost":             {corev1.PodDeletionCost: "-2147483648"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			nodes, letNew := w.oldAndNew()
			w.serve(app{name: "web", replicas: 1, ready: "1s"})
			endpoints := w.cluster.WatchEndpoints(t, w.key("web"))
			pod := w.thePod("web")
			w.change(pod, pod.Name, func() {
				for key, value := range left {
					pod.Annotations[key] = value
				}
			})
			letNew()

			w.maintain("upgrade", v1alpha1.StageDrain, nodes[:1])

			w.awaitDrained("upgrade")
			w.awaitClean(1)
			endpoints.AssertAtLeast(t, 1)
		})
	}
}

// People who change their minds again and again cost no pod.
func TestLongDrainsAreCancelledAndBegunAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two")
	w.serve(app{name: "web", replicas: 3, ready: "1s"})
	before := w.shape("web")
	endpoints := w.cluster.WatchEndpoints(t, w.key("web"))

	for i := range 10 {
		name := fmt.Sprintf("upgrade-%d", i)
		w.maintain(name, v1alpha1.StageDrain, nodes[i%2:i%2+1])
		w.awaitPods("one detached", func(pods []corev1.Pod) bool {
			for j := range pods {
				if pods[j].Annotations[v1alpha1.SurgeAnnotation] != "" {
					return true
				}
			}
			return !onNode(pods, nodes[i%2])
		})
		w.deleteMaintenance(name)
	}

	w.awaitNoEvacuations()
	w.awaitShape("web", before)
	endpoints.AssertAtLeast(t, 3)
}

func onNode(pods []corev1.Pod, node string) bool {
	for i := range pods {
		if pods[i].Spec.NodeName == node {
			return true
		}
	}
	return false
}
