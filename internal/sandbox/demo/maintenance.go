package demo

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox"
)

const (
	nodes = 3
	// drainWithin bounds drain and return of the node, which take about ten seconds.
	drainWithin = 3 * time.Minute
	maintenance = "kernel-update"
)

// plan has batch pods leave first and databases last of the ordinary pods.
var plan = []v1alpha1.DrainPlanEntry{
	{PodPriority: -10, PodType: v1alpha1.PodTypeDefault},
	{PodPriority: 0, PodType: v1alpha1.PodTypeDefault},
	{PodPriority: 1000, PodType: v1alpha1.PodTypeDefault},
}

// Run shows the drain of a node, until the node is schedulable again and has its DaemonSets.
func (d Demo) Run(ctx context.Context) error {
	return d.on(ctx, sandbox.Spec{Nodes: nodes}, func(ctx context.Context, c *sandbox.Cluster) error {
		node, err := openShop(ctx, c.Client)
		if err != nil {
			return err
		}
		return d.drain(ctx, c.Client, node)
	})
}

// drain drains a node, completes the maintenance, and prints the story.
func (d Demo) drain(ctx context.Context, c client.WithWatch, node string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, drainWithin, errTooLong)
	defer cancel()
	changes, err := watchAll(ctx, c, []source{
		{&corev1.NodeList{}, named(node)},
		{&corev1.PodList{}, onNode(node)},
		{&policyv1.PodDisruptionBudgetList{}, in(namespace)},
		{&v1alpha1.NodeMaintenanceList{}, all()},
		{&v1alpha1.EvacuationList{}, all()},
	})
	if err != nil {
		return err
	}
	d.printOpening(node)
	s := newDrain(node, plan, printer(d.Out))
	t := &teller{story: s, changes: changes, start: time.Now()}
	if err := c.Create(ctx, newMaintenance(node)); err != nil {
		return fmt.Errorf("create NodeMaintenance: %w", err)
	}
	if err := t.tellUntil(ctx, s.isDrained); err != nil {
		return err
	}
	s.say(time.Since(t.start), "complete", "the work is done: stage Complete")
	if err := complete(ctx, c); err != nil {
		return err
	}
	if err := t.tellUntil(ctx, s.isBack); err != nil {
		return err
	}
	s.printSummary(d.Out)
	return nil
}

var errTooLong = fmt.Errorf("the node is not back after %s", drainWithin)

func (d Demo) printOpening(node string) {
	fmt.Fprintf(d.Out, `
Kubernetes %s, %d nodes. Namespace shop runs
  Deployment  web        12 pods  priority 0     budget: 1 may be missing; ready after 1s
  Deployment  reports     1 pod   priority 0     annotated: replaced before it leaves; ready after 1s
  StatefulSet db          3 pods  priority 1000  terminate in 1s
  Job         invoices    3 pods  priority -10
  DaemonSet   log-agent   1 pod per node

NodeMaintenance %s, stage Drain, for %s:
batch first, then the web, then databases; DaemonSets last, until the work is done.

`, sandbox.RequestedVersion(), nodes, maintenance, node)
}

func newMaintenance(node string) *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: maintenance},
		Spec: v1alpha1.NodeMaintenanceSpec{
			Stage:     v1alpha1.StageDrain,
			Reason:    "update of the kernel",
			DrainPlan: plan,
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
				}},
			}}},
		},
	}
}

// complete ends the maintenance, as an administrator does after the work.
func complete(ctx context.Context, c client.Client) error {
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"stage":"Complete"}}`))
	object := &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: maintenance}}
	if err := c.Patch(ctx, object, patch); err != nil {
		return fmt.Errorf("set stage Complete: %w", err)
	}
	return nil
}
