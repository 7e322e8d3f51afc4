package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

type cordonOptions struct{ maintainOptions }

func newCordon(streams genericiooptions.IOStreams) *cobra.Command {
	o := &cordonOptions{maintainOptions{IOStreams: streams, stage: v1alpha1.StageCordon, verb: "cordon"}}
	cmd := &cobra.Command{
		Use:   "cordon NODE... | -l LABELS | nodemaintenance/NAME",
		Short: "Keep nodes unschedulable with a NodeMaintenance",
		Long: `Keep nodes unschedulable with a NodeMaintenance.

The command creates one NodeMaintenance in stage Cordon. Its nodes stay
unschedulable until it is complete, even after kubectl uncordon, and are then
restored. No pod leaves; "drain nodemaintenance/NAME" continues from here.

nodemaintenance/NAME starts a planned one (stage Idle). Requires the verbs list
and watch on nodes, create and get on nodemaintenances, and delete on the nodes.`,
		Example: `  # Keep new pods away from a node
  kubectl ebbtide cordon node-7 --reason "disk is failing"

  # Return the node to service
  kubectl ebbtide complete node-7`,
		RunE: runs(o),
	}
	cmd.Flags().BoolVar(&o.Wait, "wait", true, "wait until the nodes are unschedulable")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", time.Minute, "time to wait; 0 waits forever")
	o.addFlags(cmd)
	return cmd
}

// Run creates the maintenance, and waits until its nodes are unschedulable.
func (o *cordonOptions) Run(ctx context.Context) error {
	if err := o.open(); err != nil {
		return err
	}
	m, names, err := o.begin(ctx)
	if err != nil {
		return err
	}
	if o.Wait && o.dryRun.Mode == dryRunNone {
		if err := o.await(ctx, m.Name, names); err != nil {
			return err
		}
	}
	return o.show(m, func(to io.Writer) error {
		words := "keeps %s cordoned%s\n"
		if !o.Wait || o.dryRun.Mode != dryRunNone {
			words = "cordons %s%s\n"
		}
		_, err := fmt.Fprintf(to, "NodeMaintenance %s "+words, m.Name, selectionOf(m), o.suffix())
		return err
	})
}

// begin creates the maintenance, or sets the stage of an existing one, and returns the names of its
// nodes.
func (o *cordonOptions) begin(ctx context.Context) (*v1alpha1.NodeMaintenance, []string, error) {
	if !o.existing {
		m, picked, err := o.planned(ctx)
		if err != nil {
			return nil, nil, err
		}
		return m, namesOf(picked), o.start(ctx, m, picked)
	}
	m, err := o.promote(ctx)
	if err != nil {
		return nil, nil, err
	}
	cluster, err := nodes(ctx, o.reached)
	return m, selectedBy(m, cluster), err
}

// await waits until all of these nodes are unschedulable.
func (o *cordonOptions) await(ctx context.Context, name string, nodes []string) error {
	limited, stop := within(ctx, o.Timeout)
	defer stop()
	open, err := awaitNodes(limited, o.reached, nodes, func(cordoned *metav1.PartialObjectMetadata) bool { return cordoned != nil })
	switch {
	case errors.Is(err, errTimeout):
		return notDone("Timed out after %s: %s not cordoned yet. NodeMaintenance %s continues in the background; see why with\n  %s",
			o.Timeout, someOf(open), name, o.kubectl("describe nodemaintenance %s", name))
	case errors.Is(err, context.Canceled):
		return detached("NodeMaintenance %s continues in the background. Complete it with\n  %s", name, o.command("complete %s", name))
	}
	return err
}

// awaitNodes waits until isDone holds for all of these nodes, given an unschedulable node or nil.
// It returns those that are left.
func awaitNodes(ctx context.Context, reached client.WithWatch, names []string, isDone func(cordoned *metav1.PartialObjectMetadata) bool) (left []string, err error) {
	cordoned := map[string]*metav1.PartialObjectMetadata{}
	left = names
	check := func() bool {
		left = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return isDone(cordoned[name]) })
		return len(left) == 0
	}
	one := &metav1.PartialObjectMetadata{}
	one.SetGroupVersionKind(nodeKind)
	unschedulable := watching(reached, listKind(nodeKind), fields.OneTermEqualSelector("spec.unschedulable", "true"))
	_, err = watchtools.UntilWithSync(ctx, unschedulable, one, func(known cache.Store) (bool, error) {
		for _, object := range known.List() {
			if node, ok := object.(*metav1.PartialObjectMetadata); ok {
				cordoned[node.Name] = node
			}
		}
		return check(), nil
	}, func(event watch.Event) (bool, error) {
		if node, ok := event.Object.(*metav1.PartialObjectMetadata); ok && event.Type == watch.Deleted {
			delete(cordoned, node.Name)
		} else if ok {
			cordoned[node.Name] = node
		}
		return check(), nil
	})
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return left, err
}
