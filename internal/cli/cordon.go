package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
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
		Short: "Have nodes take no new pods, and keep it so",
		Long: `Have nodes take no new pods, and keep it so.

It asks for one NodeMaintenance in stage Cordon: its nodes are unschedulable
until it is complete, whoever uncordons them meanwhile, and afterwards they are
what they were before. No pod leaves; "drain nodemaintenance/NAME" goes on from
there.

nodemaintenance/NAME begins one that is planned (stage Idle). You need the verbs
list and watch on nodes, create and get on nodemaintenances, and delete on the
nodes.`,
		Example: `  # Let no new pods come to a node
  kubectl ebbtide cordon node-7 --reason "disk is failing"

  # Give it back
  kubectl ebbtide complete node-7`,
		RunE: runs(o),
	}
	cmd.Flags().BoolVar(&o.Wait, "wait", true, "wait until the nodes are unschedulable")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", time.Minute, "how long to wait; 0 is as long as it takes")
	o.addFlags(cmd)
	return cmd
}

// Run asks for the maintenance, and waits until its nodes take no pods.
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
		_, err := fmt.Fprintf(to, "NodeMaintenance %s "+words, m.Name, meant(m), o.only())
		return err
	})
}

// begin creates the maintenance, or sets the stage of the one that is there. The names are
// those of its nodes.
func (o *cordonOptions) begin(ctx context.Context) (*v1alpha1.NodeMaintenance, []string, error) {
	if !o.existing {
		m, picked, err := o.planned(ctx)
		if err != nil {
			return nil, nil, err
		}
		return m, namesOf(picked), o.ask(ctx, m, picked)
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
		return notDone("not cordoned within %s: %s. NodeMaintenance %s goes on in the cluster; see what it waits for with\n  %s",
			o.Timeout, someOf(open), name, o.kubectl("describe nodemaintenance %s", name))
	case errors.Is(err, context.Canceled):
		return detached{fmt.Sprintf("detached from NodeMaintenance %s, which goes on in the cluster. End it with\n  %s", name, o.command("complete %s", name))}
	}
	return err
}

// awaitNodes waits until all of these nodes are as they should be. That is asked with what is
// known of each that takes no new pods, and with nil of others. It returns those that are not
// when it ends before.
func awaitNodes(ctx context.Context, reached client.WithWatch, names []string, is func(cordoned *metav1.PartialObjectMetadata) bool) (left []string, err error) {
	cordoned := map[string]*metav1.PartialObjectMetadata{}
	left = names
	look := func() bool {
		left = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return is(cordoned[name]) })
		return len(left) == 0
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	one := &metav1.PartialObjectMetadata{}
	one.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	unschedulable := watching(reached, list, fields.OneTermEqualSelector("spec.unschedulable", "true"))
	_, err = watchtools.UntilWithSync(ctx, unschedulable, one, func(known cache.Store) (bool, error) {
		for _, object := range known.List() {
			if node, ok := object.(*metav1.PartialObjectMetadata); ok {
				cordoned[node.Name] = node
			}
		}
		return look(), nil
	}, func(event watch.Event) (bool, error) {
		if node, ok := event.Object.(*metav1.PartialObjectMetadata); ok && event.Type == watch.Deleted {
			delete(cordoned, node.Name)
		} else if ok {
			cordoned[node.Name] = node
		}
		return look(), nil
	})
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return left, err
}
