package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

// completeOptions are the options of complete. It takes no new nodes and no --name.
type completeOptions struct {
	maintainOptions
	subjects []subject

	cluster []*metav1.PartialObjectMetadata
	// named are the named nodes by maintenance; a maintenance that is named itself has none.
	named map[string][]string
	// aborted are the named rollouts that are not complete.
	aborted []*v1alpha1.NodeRollout
}

func newComplete(streams genericiooptions.IOStreams) *cobra.Command {
	o := &completeOptions{maintainOptions: maintainOptions{IOStreams: streams, stage: v1alpha1.StageComplete, verb: "complete"}}
	cmd := &cobra.Command{
		Use:     "complete NAME... | NODE... | noderollout/NAME",
		Aliases: []string{"uncordon"},
		SuggestFor: []string{
			"cancel", "abort", "stop", "end", "finish", "undo", "delete", "pause", "suspend", "hold",
		},
		Short: "Complete maintenances and return nodes to service",
		Long: `Complete maintenances and return nodes to service.

Given a maintenance, the command sets stage Complete, which is final. Given
nodes, it completes these and the maintenance continues for the others; it ends
with its last node. A drain in progress is cancelled. Given a NodeRollout, it
completes its maintenances, and aborts the rollout if it is not complete.

The command waits until the nodes are as they were before: schedulable, unless
they had been cordoned or another maintenance holds them. --yes completes a node
for all maintenances that hold it.

Requires the verbs get, list, watch and patch on nodemaintenances, list and
watch on nodes, and delete on the nodes; for a NodeRollout also get and patch on
noderollouts.`,
		Example: `  # Return a node to service
  kubectl ebbtide complete node-7

  # Complete a maintenance
  kubectl ebbtide complete kernel-update

  # Return all nodes of a rollout to service
  kubectl ebbtide complete noderollout/drain-pool-a`,
		RunE: runs(o),
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.Yes, "yes", false, "complete a node for all maintenances that hold it")
	flags.BoolVar(&o.Wait, "wait", true, "wait until the nodes are released")
	flags.DurationVar(&o.Timeout, "timeout", 0, "time to wait; 0 waits forever")
	o.output.addFlag(cmd, formatJSON, formatYAML, formatName)
	o.dryRun.addFlag(cmd)
	o.connection.addFlags(cmd)
	// Nodes have no namespace.
	cmd.Flags().Lookup("namespace").Hidden = true
	cmd.ValidArgsFunction = o.suggest(suggestMaintenances, suggestNodes, suggestRollouts.under("noderollout/"))
	return cmd
}

// Complete reads the arguments.
func (o *completeOptions) Complete(args []string) (err error) {
	if o.subjects, err = subjectsOf(args, kindAny, kindMaintenance, kindNode, kindRollout); err == nil && len(o.subjects) == 0 {
		err = errors.New("specify a NodeMaintenance or a node. List them with kubectl ebbtide status")
	}
	return err
}

// Run completes the maintenances or nodes, and waits for the nodes.
func (o *completeOptions) Run(ctx context.Context) (err error) {
	if err := o.open(); err != nil {
		return err
	}
	if o.cluster, err = nodes(ctx, o.reached); err != nil {
		return err
	}
	names, err := o.names(ctx)
	if err != nil {
		return err
	}
	endings := make([]ending, 0, len(names))
	for _, name := range names {
		one, err := o.ending(ctx, name)
		if err != nil {
			return err
		}
		endings = append(endings, one)
	}
	// All errors are found before the first write.
	if err := o.endAll(ctx, endings); err != nil {
		return err
	}
	for _, one := range endings {
		if err := o.show(one.NodeMaintenance, func(to io.Writer) error { return o.printResult(ctx, to, one) }); err != nil {
			return err
		}
	}
	return nil
}

// endAll completes all, and then waits for the nodes.
func (o *completeOptions) endAll(ctx context.Context, endings []ending) error {
	if err := o.abort(ctx); err != nil {
		return err
	}
	for _, one := range endings {
		if err := o.end(ctx, one); err != nil {
			return err
		}
	}
	limited, stop := within(ctx, o.Timeout)
	defer stop()
	for _, one := range endings {
		if err := o.awaitEnding(limited, one); err != nil {
			return err
		}
	}
	return nil
}

// names returns the maintenances that the arguments mean, each once.
//
// Errors: an object does not exist; a node is held by no maintenance, or by several without --yes.
func (o *completeOptions) names(ctx context.Context) (names []string, err error) {
	o.named = map[string][]string{}
	var whole []string
	for _, s := range o.subjects {
		holders, isNode, err := o.resolve(ctx, s)
		if err != nil {
			return nil, err
		}
		for _, name := range holders {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			o.named[name] = append(o.named[name], s.name)
		}
		if !isNode {
			whole = append(whole, holders...)
		}
	}
	for _, name := range whole {
		o.named[name] = nil
	}
	return names, nil
}

// resolve returns the maintenances that an argument means, and whether it names a node. A name
// without a kind is that of a node if there is one, otherwise of a maintenance, otherwise of a rollout.
func (o *completeOptions) resolve(ctx context.Context, s subject) (names []string, isNode bool, err error) {
	at := slices.IndexFunc(o.cluster, func(node *metav1.PartialObjectMetadata) bool { return node.Name == s.name })
	switch {
	case (s.kind == kindRollout || at < 0) && o.isRollout(ctx, s):
		names, err = o.ofRollout(ctx, s.name)
		return names, false, err
	case s.kind == kindMaintenance, s.kind == kindAny && at < 0:
		return []string{s.name}, false, nil
	case at < 0:
		return nil, true, notFound("node", []string{s.name}, namesOf(o.cluster))
	}
	names, err = o.holders(o.cluster[at])
	return names, true, err
}

// holders returns the maintenances that hold a node.
func (o *completeOptions) holders(node *metav1.PartialObjectMetadata) ([]string, error) {
	holders := holdersOf(node)
	switch {
	case len(holders) == 0:
		return nil, fmt.Errorf("no maintenance holds node %q. If it is cordoned, uncordon it with\n  %s", node.Name, o.kubectl("uncordon %s", node.Name))
	case len(holders) > 1 && !o.Yes:
		return nil, fmt.Errorf("node %q is held by %s; specify one of them, or add --yes to complete the node for all", node.Name, someOf(holders))
	}
	return holders, nil
}

// holdersOf returns the maintenances in the annotation of a node, without invalid names: other
// clients can write it.
func holdersOf(node *metav1.PartialObjectMetadata) []string {
	return slices.DeleteFunc(cordon.Holders(&corev1.Node{ObjectMeta: node.ObjectMeta}), func(name string) bool {
		return len(validation.IsDNS1123Subdomain(name)) > 0
	})
}

// end completes a maintenance or nodes of it.
func (o *completeOptions) end(ctx context.Context, one ending) error {
	m := one.NodeMaintenance
	switch {
	case m.DeletionTimestamp != nil:
		o.warn(fmt.Sprintf("NodeMaintenance %s is already being deleted, which completes it", m.Name))
	case m.Spec.Stage == v1alpha1.StageComplete:
		o.warn(fmt.Sprintf("NodeMaintenance %s is already complete", m.Name))
	case len(one.nodes) > 0:
		return o.completeNodes(ctx, one)
	default:
		o.warn(o.warnings(m)...)
		return o.setStage(ctx, m, v1alpha1.StageComplete)
	}
	return nil
}

// awaitEnding waits until the nodes are released.
func (o *completeOptions) awaitEnding(ctx context.Context, one ending) error {
	switch {
	case !o.Wait || o.dryRun.Mode != dryRunNone:
		return nil
	case len(one.nodes) > 0:
		return o.awaitNodes(ctx, one)
	}
	return o.awaitEnd(ctx, one.NodeMaintenance)
}

// awaitEnd waits until the maintenance has finished.
func (o *completeOptions) awaitEnd(ctx context.Context, m *v1alpha1.NodeMaintenance) error {
	err := await(ctx, o.reached, m.Name, func(now *v1alpha1.NodeMaintenance) bool {
		if now == nil {
			return true
		}
		now.SetGroupVersionKind(m.GroupVersionKind())
		now.DeepCopyInto(m)
		return maintenance.Finished(now)
	})
	switch {
	case errors.Is(err, errTimeout):
		return notDone("Timed out after %s: NodeMaintenance %s is complete but has not released %s yet. See why with\n  %s",
			o.Timeout, m.Name, someOf(selectedBy(m, o.cluster)), o.kubectl("describe nodemaintenance %s", m.Name))
	case errors.Is(err, context.Canceled):
		return detached("NodeMaintenance %s is complete; its nodes will be released in the background", m.Name)
	}
	return err
}

// warnings returns what the user should know before a maintenance is completed.
func (o *completeOptions) warnings(m *v1alpha1.NodeMaintenance) (lines []string) {
	if owner := metav1.GetControllerOf(m); owner != nil {
		lines = append(lines, fmt.Sprintf("NodeMaintenance %s is owned by %s %s, which may create another one", m.Name, excerpt.Line(owner.Kind, 63), excerpt.Line(owner.Name, 253)))
	}
	if node := maintenance.OfShutdown(m); node != "" {
		lines = append(lines, fmt.Sprintf("NodeMaintenance %s was created for the shutdown of node %s and completes automatically afterwards", m.Name, node))
	}
	drained := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrained)
	if m.Spec.Stage == v1alpha1.StageDrain && (drained == nil || drained.Status != metav1.ConditionTrue) {
		lines = append(lines, fmt.Sprintf("NodeMaintenance %s is cancelled before its nodes are drained: %s", m.Name, cmp.Or(m.Status.Summary, "no status yet")))
	}
	return lines
}

// selectedBy returns the nodes that a maintenance selects.
func selectedBy(m *v1alpha1.NodeMaintenance, cluster []*metav1.PartialObjectMetadata) (names []string) {
	all := make([]*corev1.Node, len(cluster))
	for i := range cluster {
		all[i] = &corev1.Node{ObjectMeta: cluster[i].ObjectMeta}
	}
	// An invalid selector selects none.
	matching, _ := maintenance.Matching(&m.Spec, all)
	for _, node := range matching {
		names = append(names, node.Name)
	}
	return names
}

// printResult prints which nodes were released.
func (o *completeOptions) printResult(ctx context.Context, to io.Writer, one ending) error {
	state := "is complete"
	if len(one.nodes) > 0 {
		state = "continues without " + someOf(one.nodes)
	}
	if !o.Wait || o.dryRun.Mode != dryRunNone {
		_, err := fmt.Fprintf(to, "NodeMaintenance %s %s%s\n", one.Name, state, o.suffix())
		return err
	}
	nodes := one.nodes
	if len(nodes) == 0 {
		nodes = selectedBy(one.NodeMaintenance, o.cluster)
	}
	released, kept, err := o.released(ctx, nodes)
	if err != nil {
		return err
	}
	if len(released) > 0 {
		state += "; schedulable again: " + someOf(released)
	}
	_, err = fmt.Fprintf(to, "NodeMaintenance %s %s\n", one.Name, state)
	for _, line := range kept[:min(len(kept), maxNamed)] {
		o.warn(line)
	}
	if more := len(kept) - maxNamed; more > 0 {
		o.warn(fmt.Sprintf("and %d more nodes stay cordoned", more))
	}
	return err
}

// released returns the schedulable nodes, and a line for each other one that gives the reason.
func (o *completeOptions) released(ctx context.Context, names []string) (released, kept []string, err error) {
	unschedulable, err := metadataList(ctx, o.reached, nodeKind, client.MatchingFields{"spec.unschedulable": "true"})
	if err != nil {
		return nil, nil, err
	}
	cordoned := map[string]*metav1.PartialObjectMetadata{}
	for _, node := range unschedulable {
		cordoned[node.Name] = node
	}
	for _, name := range names {
		node, is := cordoned[name]
		if !is {
			released = append(released, name)
			continue
		}
		why := "as it was cordoned before. Uncordon it with\n  " + o.kubectl("uncordon %s", name)
		if holders := holdersOf(node); len(holders) > 0 {
			why = "as it is held by NodeMaintenance " + someOf(holders)
		}
		kept = append(kept, fmt.Sprintf("%s stays cordoned, %s", name, why))
	}
	return released, kept, nil
}
