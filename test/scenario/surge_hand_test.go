package scenario

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

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
