package proof

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// app is the name of everything that a world drains.
const app = "web"

// world is an application with a Service on nodes of its own.
type world struct {
	t         *testing.T
	cluster   *cluster.Cluster
	client    client.WithWatch
	namespace string
}

// newWorld returns a world whose application is available.
func newWorld(t *testing.T, spec cluster.Spec, s story) *world {
	t.Helper()
	c := cluster.Start(t, spec)
	w := &world{t: t, cluster: c, client: c.Client, namespace: c.Namespace(t)}
	w.create(w.deployment(s))
	w.create(&corev1.Service{ObjectMeta: w.meta(), Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": app}, Ports: []corev1.ServicePort{{Port: 80}},
	}})
	if s.minAvailable != nil || s.maxUnavailable != nil {
		w.create(&policyv1.PodDisruptionBudget{ObjectMeta: w.meta(), Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: s.minAvailable, MaxUnavailable: s.maxUnavailable, Selector: selector(),
		}})
	}
	w.awaitServing(s)
	return w
}

func selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

func (w *world) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: app}
}

func (w *world) key() client.ObjectKey { return client.ObjectKey{Namespace: w.namespace, Name: app} }

func (w *world) deployment(s story) *appsv1.Deployment {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{"app": app},
			Annotations: map[string]string{
				sandbox.ReadyAfter:     s.readyAfter.String(),
				sandbox.TerminateAfter: s.terminateAfter.String(),
				v1alpha1.EvacuatorAnnotationPrefix + v1alpha1.DeploymentEvacuatorClass: "10000/controller",
			},
		},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false),
			Containers:                   []corev1.Container{{Name: app, Image: app}},
		},
	}
	return &appsv1.Deployment{ObjectMeta: w.meta(), Spec: appsv1.DeploymentSpec{
		Replicas: &s.replicas, MinReadySeconds: s.minReadySeconds, Selector: selector(), Template: template,
		Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxSurge: &s.maxSurge, MaxUnavailable: new(intstr.FromInt32(0)),
		}},
	}}
}

func (w *world) create(object client.Object) {
	w.t.Helper()
	if err := w.client.Create(w.t.Context(), object); err != nil {
		w.t.Fatalf("create %T: %v", object, err)
	}
}

// awaitServing waits until every pod is available, counted by its budget and
// behind the Service.
func (w *world) awaitServing(s story) {
	w.t.Helper()
	want := int(s.replicas)
	patience.Eventually(w.t, "the application serves", func(ctx context.Context) (string, bool) {
		deployment := &appsv1.Deployment{}
		if err := w.client.Get(ctx, w.key(), deployment); err != nil {
			return err.Error(), false
		}
		budget := &policyv1.PodDisruptionBudget{}
		counted := s.minAvailable == nil && s.maxUnavailable == nil ||
			w.client.Get(ctx, w.key(), budget) == nil && int(budget.Status.CurrentHealthy) == want
		ready, err := w.cluster.ReadyEndpoints(ctx, w.key())
		return fmt.Sprintf("%+v, %+v, %d ready endpoints, %v", deployment.Status, budget.Status, ready, err),
			int(deployment.Status.AvailableReplicas) == want && counted && ready == want
	})
}

// drained are the nodes that a story drains: the first runs a pod.
func (w *world) drained(together int) []string {
	w.t.Helper()
	pods := &corev1.PodList{}
	if err := w.client.List(w.t.Context(), pods, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatalf("list pods: %v", err)
	}
	names := []string{pods.Items[0].Spec.NodeName}
	for _, name := range w.cluster.Nodes {
		if name != names[0] && len(names) < together {
			names = append(names, name)
		}
	}
	return names
}

func (w *world) maintenance(nodes []string) *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
		Spec: v1alpha1.NodeMaintenanceSpec{
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: nodes},
				},
			}}},
			Stage: v1alpha1.StageDrain, Reason: "proof",
		},
	}
}

// try makes a change again until it succeeds: while the manager is killed, there
// is nobody to admit it.
func (w *world) try(what string, change func(context.Context) error) {
	w.t.Helper()
	patience.Eventually(w.t, what, func(ctx context.Context) (string, bool) {
		err := change(ctx)
		return fmt.Sprint(err), err == nil
	})
}

// awaitAsBefore waits until nothing tells that there was a drain.
func (w *world) awaitAsBefore(before fingerprint) {
	w.t.Helper()
	differs := "nothing was read"
	patience.Eventually(w.t, "everything as before", func(ctx context.Context) (string, bool) {
		now, err := w.fingerprint(ctx)
		if err != nil {
			return fmt.Sprintf("%s\nthen: %v", differs, err), false
		}
		differs = before.differs(now)
		return differs, differs == ""
	})
}
