package api

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/evacuation"
)

// keep creates an object and removes it when the test ends.
func keep(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(c.Delete(context.WithoutCancel(t.Context()), o)); err != nil {
			t.Errorf("delete %T %s: %v", o, o.GetName(), err)
		}
	})
}

// podOn returns a pod of one container that is named after its application.
func podOn(namespace, node, name, app string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: app, Image: app}}},
	}
}

// withData gives a pod a volume that is lost with it.
func withData(pod *corev1.Pod, volume string) *corev1.Pod {
	pod.Spec.Volumes = []corev1.Volume{{Name: volume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	return pod
}

// run creates a pod and says what its kubelet would: it runs and is ready.
func run(t *testing.T, c client.Client, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	must(t, c.Create(t.Context(), pod))
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	must(t, c.Status().Update(t.Context(), pod))
	return pod
}

// budgeted is an application whose pods a budget counts.
type budgeted struct {
	namespace, budget, app string
	healthy, desired       int32
}

// budgetOf creates a budget of an application and says what the disruption controller would.
func budgetOf(t *testing.T, c client.Client, a budgeted, spec policyv1.PodDisruptionBudgetSpec) {
	t.Helper()
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": a.app}}
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: a.budget}, Spec: spec}
	must(t, c.Create(t.Context(), b))
	b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation, ExpectedPods: a.healthy, CurrentHealthy: a.healthy, DesiredHealthy: a.desired}
	must(t, c.Status().Update(t.Context(), b))
}

// needs is a budget that wants so many pods to be available.
func needs(pods int32) policyv1.PodDisruptionBudgetSpec {
	return policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(pods))}
}

// refused creates the Evacuation of a pod, whose eviction a budget refuses.
func refused(t *testing.T, c client.Client, pod *corev1.Pod, budget, message string) {
	t.Helper()
	e := core.New(pod, v1alpha1.NodeMaintenanceInstigator, nil)
	must(t, client.IgnoreAlreadyExists(c.Create(t.Context(), e)))
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(e), e))
	e.Status = v1alpha1.EvacuationStatus{RefusingBudgetName: budget, Conditions: []metav1.Condition{{
		Type: v1alpha1.ConditionEvictionRefused, Status: metav1.ConditionTrue, LastTransitionTime: metav1.Now(),
		Reason: string(v1alpha1.BlockerPDBExhausted), Message: message,
	}}}
	must(t, c.Status().Update(t.Context(), e))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
