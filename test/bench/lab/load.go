package lab

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// preparedWithin bounds how long the work may take to be ready or to be gone.
const preparedWithin = 4 * time.Minute

// Load is work that is ready to be drained: its pods run on Nodes.
type Load struct {
	// Namespace of the pods.
	Namespace string
	// Nodes are those to drain.
	Nodes []string

	work   Work
	refuge string
	apps   []app
	// slow is the webhook of the refused pods; nil if there is none.
	slow *webhook
}

// Prepare creates fresh nodes and pods and waits until they are ready.
func (l *Lab) Prepare(ctx context.Context, work Work) (*Load, error) {
	l.loads++
	name := fmt.Sprintf("bench-%d", l.loads)
	load := newLoad(name, work)
	if err := l.prepare(ctx, load); err != nil {
		return nil, fmt.Errorf("prepare %s: %w", name, err)
	}
	return load, nil
}

func newLoad(name string, work Work) *Load {
	load := &Load{Namespace: name, work: work, refuge: name + "-refuge", apps: work.apps()}
	for i := range work.nodes() {
		load.Nodes = append(load.Nodes, fmt.Sprintf("%s-node-%d", name, i+1))
	}
	return load
}

// leaves says whether a pod is one that the drain is to remove.
func (load *Load) leaves(pod *corev1.Pod) bool {
	return slices.Contains(load.Nodes, pod.Spec.NodeName)
}

// fill creates the nodes and the Deployments that run on them.
func (l *Lab) fill(ctx context.Context, load *Load) error {
	if err := l.cluster.CreateNodes(ctx, load.Nodes, load.labels()); err != nil {
		return err
	}
	if err := l.createNamespace(ctx, load.Namespace); err != nil {
		return err
	}
	for _, app := range load.apps {
		if err := l.Client.Create(ctx, load.deployment(app)); err != nil {
			return fmt.Errorf("create deployment: %w", err)
		}
	}
	return l.waitReady(ctx, load)
}

// prepare fills the nodes before there is another one, so that nothing but the
// order of creation decides where the pods run.
func (l *Lab) prepare(ctx context.Context, load *Load) error {
	if err := l.fill(ctx, load); err != nil {
		return err
	}
	if err := l.addRefuge(ctx, load); err != nil {
		return err
	}
	if err := l.addBudgets(ctx, load); err != nil {
		return err
	}
	return l.addRefused(ctx, load)
}

// addRefuge creates the node to which evicted pods go, unless it is closed, with
// the other pods on it.
func (l *Lab) addRefuge(ctx context.Context, load *Load) error {
	if err := l.setUnschedulable(ctx, true, load.Nodes...); err != nil {
		return err
	}
	if err := l.cluster.CreateNodes(ctx, []string{load.refuge}, load.labels()); err != nil {
		return err
	}
	if err := l.setUnschedulable(ctx, load.work.NoRefuge, load.refuge); err != nil {
		return err
	}
	for i := range load.apps {
		app := &load.apps[i]
		deployment := load.deployment(*app)
		patch := client.MergeFrom(deployment.DeepCopy())
		app.replicas += app.others
		deployment.Spec.Replicas = new(app.replicas)
		if err := l.Client.Patch(ctx, deployment, patch); err != nil {
			return fmt.Errorf("scale deployment: %w", err)
		}
	}
	if err := l.waitReady(ctx, load); err != nil {
		return err
	}
	return l.setUnschedulable(ctx, false, load.Nodes...)
}

func (l *Lab) addBudgets(ctx context.Context, load *Load) error {
	for _, app := range load.apps {
		if app.budget == nil {
			continue
		}
		budget := load.budget(app)
		if err := l.Client.Create(ctx, budget); err != nil {
			return fmt.Errorf("create budget: %w", err)
		}
		if err := l.until(ctx, "budget counted", func(ctx context.Context) (bool, error) {
			err := l.Client.Get(ctx, client.ObjectKeyFromObject(budget), budget)
			return err == nil && budget.Status.ObservedGeneration == budget.Generation &&
				budget.Status.CurrentHealthy == app.replicas, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// Relieve adds a healthy pod elsewhere, so that the first Deployment's budget,
// which asks for a number of available pods, lets one more go.
func (l *Lab) Relieve(ctx context.Context, load *Load, name string) error {
	pod := &corev1.Pod{ObjectMeta: load.meta(name, load.apps[0]), Spec: podSpec()}
	pod.Spec.NodeName = load.refuge
	if err := l.Client.Create(ctx, pod); err != nil {
		return fmt.Errorf("create pod: %w", err)
	}
	return nil
}

// Clear deletes the work and waits until it is gone, so that it costs the next
// run nothing.
func (l *Lab) Clear(ctx context.Context, load *Load) error {
	if err := l.removeWebhook(ctx, load); err != nil {
		return err
	}
	for _, name := range []string{load.Namespace, load.refusing()} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := client.IgnoreNotFound(l.Client.Delete(ctx, namespace)); err != nil {
			return fmt.Errorf("delete namespace: %w", err)
		}
		if err := l.until(ctx, "namespace gone", func(ctx context.Context) (bool, error) {
			err := l.Client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
			return err != nil, client.IgnoreNotFound(err)
		}); err != nil {
			return err
		}
	}
	if err := l.Client.DeleteAllOf(ctx, &corev1.Node{}, client.MatchingLabels(load.labels())); err != nil {
		return fmt.Errorf("delete nodes: %w", err)
	}
	return nil
}

func (l *Lab) setUnschedulable(ctx context.Context, unschedulable bool, names ...string) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, unschedulable))
	for _, name := range names {
		if err := l.Client.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, patch); err != nil {
			return fmt.Errorf("patch node: %w", err)
		}
	}
	return nil
}

// createNamespace creates a namespace and waits for what the API server wants
// before it accepts pods.
func (l *Lab) createNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := l.Client.Create(ctx, namespace); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	return l.until(ctx, "service account", func(ctx context.Context) (bool, error) {
		err := l.Client.Get(ctx, client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
		return err == nil, client.IgnoreNotFound(err)
	})
}

func (l *Lab) waitReady(ctx context.Context, load *Load) error {
	for _, app := range load.apps {
		deployment := load.deployment(app)
		if err := l.until(ctx, "pods ready", func(ctx context.Context) (bool, error) {
			err := l.Client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)
			return err == nil && deployment.Status.AvailableReplicas == app.replicas, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// create creates objects one after the other.
func create[T client.Object](ctx context.Context, c client.Client, objects ...T) error {
	for _, object := range objects {
		if err := c.Create(ctx, object); err != nil {
			return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// until waits for a state outside of what is measured.
func (l *Lab) until(ctx context.Context, what string, reached wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, preparedWithin, true, reached); err != nil {
		return fmt.Errorf("wait for %s: %w", what, err)
	}
	return nil
}
