// Package demo shows a drain: it runs applications on a sandbox, asks Ebbtide
// to empty one of the nodes, and tells what happens as the watches see it.
//
// It reports what it observed and nothing else: every line of the timeline
// stands for a change of an object. It ends when the node is schedulable again and
// has its DaemonSets, and fails when that takes too long.
package demo

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
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

// Demo is what a demo needs.
type Demo struct {
	// Version of Kubernetes.
	Version string
	// Out gets the story, Progress what happens before it.
	Out, Progress io.Writer
	// Colour says whether Out shows colours.
	Colour bool
}

// Run builds what is missing, shows a drain and removes everything again.
func (d Demo) Run(ctx context.Context) (err error) {
	binaries, err := sandbox.Build(ctx, sandbox.BuildSpec{Version: d.Version}, d.Progress)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Progress, "starting Kubernetes %s with %d simulated nodes\n", d.Version, nodes)
	c, err := sandbox.Start(ctx, binaries, sandbox.Spec{Nodes: nodes})
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := c.Stop(); err == nil {
			err = stopErr
		}
	}()
	fmt.Fprintln(d.Progress, "starting the manager and the applications")
	manager, err := c.StartManager(ctx)
	if err != nil {
		return err
	}
	node, err := openShop(ctx, c.Client)
	if err != nil {
		return err
	}
	if err := d.drain(ctx, c.Client, node); err != nil {
		if ctx.Err() == nil {
			fmt.Fprintf(d.Progress, "the end of the manager's log:\n%s\n", manager.Tail(40))
		}
		return err
	}
	return nil
}

// drain drains a node, gives it back, and tells the story.
func (d Demo) drain(ctx context.Context, c client.WithWatch, node string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, drainWithin, errTooLong)
	defer cancel()
	changes, err := watchAll(ctx, c, node)
	if err != nil {
		return err
	}
	d.printOpening(node)
	t := &teller{story: newStory(node, plan, printer(d.Out, d.Colour)), changes: changes, start: time.Now()}
	if err := c.Create(ctx, newMaintenance(node)); err != nil {
		return fmt.Errorf("create NodeMaintenance: %w", err)
	}
	if err := t.tellUntil(ctx, t.story.isDrained); err != nil {
		return err
	}
	t.story.say(time.Since(t.start), "complete", "the work is done: stage Complete")
	if err := complete(ctx, c); err != nil {
		return err
	}
	if err := t.tellUntil(ctx, t.story.isBack); err != nil {
		return err
	}
	t.story.printSummary(d.Out)
	return nil
}

var errTooLong = fmt.Errorf("the node is not back after %s", drainWithin)

// teller tells a story as the changes come in.
type teller struct {
	story   *story
	changes <-chan watch.Event
	start   time.Time
}

func (t *teller) tellUntil(ctx context.Context, reached func() bool) error {
	for !reached() {
		select {
		case change := <-t.changes:
			if err := t.story.see(time.Since(t.start), change); err != nil {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", context.Cause(ctx), t.story.lastStatus())
		}
	}
	return nil
}

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

`, d.Version, nodes, maintenance, node)
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

// complete gives the node back, as an administrator does after the work.
func complete(ctx context.Context, c client.Client) error {
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"stage":"Complete"}}`))
	object := &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: maintenance}}
	if err := c.Patch(ctx, object, patch); err != nil {
		return fmt.Errorf("set stage Complete: %w", err)
	}
	return nil
}
