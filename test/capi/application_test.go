package capi

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// surges has the pods of a Deployment replaced before they leave.
const surges = v1alpha1.EvacuatorAnnotationPrefix + v1alpha1.DeploymentEvacuatorClass + ": 10000/controller"

// application makes a Deployment with a Service and waits until it is up.
func (w *world) application(name string, replicas int, annotations string) {
	w.t.Helper()
	w.at.Apply(w.t, w.app, fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, annotations: {%[3]s}}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers: [{name: web, image: web, ports: [{containerPort: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec:
  selector: {app: %[1]s}
  ports: [{port: 80}]
`, name, replicas, annotations))
	w.awaitApplication(name, replicas)
}

func (w *world) awaitApplication(name string, replicas int) {
	w.t.Helper()
	w.await(fmt.Sprintf("%d pods of %s", replicas, name), func() (string, bool) {
		d := &appsv1.Deployment{}
		err := w.at.Client.Get(w.ctx, client.ObjectKey{Namespace: w.app, Name: name}, d)
		return fmt.Sprint(d.Status, err), int(d.Status.AvailableReplicas) == replicas
	})
}

// podsOn are the pods of the story on a node.
func (w *world) podsOn(node string) []corev1.Pod {
	w.t.Helper()
	list := &corev1.PodList{}
	w.must(w.at.Client.List(w.ctx, list, client.InNamespace(w.app), client.MatchingFields{"spec.nodeName": node}))
	return list.Items
}

// stuckPod is a pod on a node that its budget does not let go.
func (w *world) stuckPod(node string) {
	w.t.Helper()
	w.never(node)
	w.runningPod(node, node, map[string]string{"app": node})
}

// runningPod is a pod on a node. Budgets do not hold pods that do not run.
func (w *world) runningPod(name, node string, labels map[string]string) {
	w.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name, Labels: labels},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: ptr.To[int64](0), Containers: []corev1.Container{{Name: "web", Image: "web"}},
		},
	}
	w.create(pod)
	w.must(w.c.Client.Status().Patch(w.ctx, pod, mergePatch(`{"status":{"phase":"Running"}}`)))
}
