package lab

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// runLabel ties pods to the nodes of their run.
const runLabel = "bench.ebbtide.dev/run"

// preparedWithin bounds how long the work may take to be ready or to be gone.
const preparedWithin = 2 * time.Minute

// Work is what a contender has to drain.
type Work struct {
	// Pods on the node that is drained, all of one Deployment.
	Pods int32
	// Others are pods of the same Deployment on another node.
	Others int32
	// Budget protects all of them; its selector is filled in. Nil for no budget.
	Budget *policyv1.PodDisruptionBudgetSpec
	// NoRefuge leaves the evicted pods without a node to go to, so that a budget
	// once used up stays so until Relieve.
	NoRefuge bool
}

// Load is work that is ready to be drained: its Pods run on Node.
type Load struct {
	// Namespace of the pods, and name of their Deployment and budget.
	Namespace string
	// Node is the one to drain.
	Node string

	refuge string
	labels map[string]string
}

// Prepare creates fresh nodes and pods and waits until they are ready.
func (l *Lab) Prepare(ctx context.Context, work Work) (*Load, error) {
	l.loads++
	name := fmt.Sprintf("bench-%d", l.loads)
	load := &Load{Namespace: name, Node: name + "-node", refuge: name + "-refuge", labels: map[string]string{runLabel: name}}
	if err := l.prepare(ctx, load, work); err != nil {
		return nil, fmt.Errorf("prepare %s: %w", name, err)
	}
	return load, nil
}

// prepare fills the node before there is another one, so that nothing but the
// order of creation decides where the pods run.
func (l *Lab) prepare(ctx context.Context, load *Load, work Work) error {
	if err := l.cluster.CreateNodes(ctx, []string{load.Node}, load.labels); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: load.Namespace}}
	if err := l.Client.Create(ctx, namespace); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	if err := l.waitServiceAccount(ctx, load.Namespace); err != nil {
		return err
	}
	deployment := load.deployment(work.Pods)
	if err := l.Client.Create(ctx, deployment); err != nil {
		return fmt.Errorf("create deployment: %w", err)
	}
	if err := l.waitReady(ctx, deployment); err != nil {
		return err
	}
	if err := l.addRefuge(ctx, load, work, deployment); err != nil {
		return err
	}
	return l.addBudget(ctx, load, work)
}

// addRefuge creates the node to which evicted pods go, with the other pods on it.
func (l *Lab) addRefuge(ctx context.Context, load *Load, work Work, deployment *appsv1.Deployment) error {
	if err := l.setUnschedulable(ctx, load.Node, true); err != nil {
		return err
	}
	if err := l.cluster.CreateNodes(ctx, []string{load.refuge}, load.labels); err != nil {
		return err
	}
	if err := l.setUnschedulable(ctx, load.refuge, work.NoRefuge); err != nil {
		return err
	}
	patch := client.MergeFrom(deployment.DeepCopy())
	deployment.Spec.Replicas = new(work.Pods + work.Others)
	if err := l.Client.Patch(ctx, deployment, patch); err != nil {
		return fmt.Errorf("scale deployment: %w", err)
	}
	if err := l.waitReady(ctx, deployment); err != nil {
		return err
	}
	return l.setUnschedulable(ctx, load.Node, false)
}

func (l *Lab) addBudget(ctx context.Context, load *Load, work Work) error {
	if work.Budget == nil {
		return nil
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: load.meta(load.Namespace), Spec: *work.Budget}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: load.labels}
	if err := l.Client.Create(ctx, budget); err != nil {
		return fmt.Errorf("create budget: %w", err)
	}
	return l.until(ctx, "budget counted", func(ctx context.Context) (bool, error) {
		err := l.Client.Get(ctx, client.ObjectKeyFromObject(budget), budget)
		return err == nil && budget.Status.ObservedGeneration == budget.Generation &&
			budget.Status.CurrentHealthy == work.Pods+work.Others, err
	})
}

// Relieve adds a healthy pod elsewhere, so that a budget that asks for a number
// of available pods lets one more go.
func (l *Lab) Relieve(ctx context.Context, load *Load, name string) error {
	pod := &corev1.Pod{ObjectMeta: load.meta(name), Spec: podSpec()}
	pod.Spec.NodeName = load.refuge
	if err := l.Client.Create(ctx, pod); err != nil {
		return fmt.Errorf("create pod: %w", err)
	}
	return nil
}

// Clear deletes the work and waits until it is gone, so that it costs the next
// run nothing.
func (l *Lab) Clear(ctx context.Context, load *Load) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: load.Namespace}}
	if err := l.Client.Delete(ctx, namespace); err != nil {
		return fmt.Errorf("delete namespace: %w", err)
	}
	if err := l.until(ctx, "namespace gone", func(ctx context.Context) (bool, error) {
		err := l.Client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
		return err != nil, client.IgnoreNotFound(err)
	}); err != nil {
		return err
	}
	if err := l.Client.DeleteAllOf(ctx, &corev1.Node{}, client.MatchingLabels(load.labels)); err != nil {
		return fmt.Errorf("delete nodes: %w", err)
	}
	return nil
}

func (l *Lab) setUnschedulable(ctx context.Context, name string, unschedulable bool) error {
	node := &corev1.Node{}
	if err := l.Client.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return fmt.Errorf("get node: %w", err)
	}
	patch := client.MergeFrom(node.DeepCopy())
	node.Spec.Unschedulable = unschedulable
	if err := l.Client.Patch(ctx, node, patch); err != nil {
		return fmt.Errorf("patch node: %w", err)
	}
	return nil
}

// waitServiceAccount waits for what the API server wants before it accepts pods.
func (l *Lab) waitServiceAccount(ctx context.Context, namespace string) error {
	return l.until(ctx, "service account", func(ctx context.Context) (bool, error) {
		err := l.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{})
		return err == nil, client.IgnoreNotFound(err)
	})
}

func (l *Lab) waitReady(ctx context.Context, deployment *appsv1.Deployment) error {
	return l.until(ctx, "pods ready", func(ctx context.Context) (bool, error) {
		err := l.Client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)
		return err == nil && deployment.Status.AvailableReplicas == *deployment.Spec.Replicas, err
	})
}

// until waits for a state outside of what is measured.
func (l *Lab) until(ctx context.Context, what string, reached wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, preparedWithin, true, reached); err != nil {
		return fmt.Errorf("wait for %s: %w", what, err)
	}
	return nil
}

func (load *Load) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: load.Namespace, Name: name, Labels: load.labels}
}

// podSpec is that of instant pods. Their grace period matters to nobody but the
// namespace controller, which waits for half of it.
func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		Containers:                    []corev1.Container{{Name: "app", Image: "app"}},
		TerminationGracePeriodSeconds: new(int64(1)),
	}
}

func (load *Load) deployment(replicas int32) *appsv1.Deployment {
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: load.labels}, Spec: podSpec()}
	template.Spec.NodeSelector = load.labels
	return &appsv1.Deployment{
		ObjectMeta: load.meta(load.Namespace),
		Spec: appsv1.DeploymentSpec{
			Replicas: new(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: load.labels},
			Template: template,
		},
	}
}
