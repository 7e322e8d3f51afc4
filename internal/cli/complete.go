package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

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

// completeOptions is what complete is told. Of maintainOptions it has no nodes to choose
// and no name to give.
type completeOptions struct {
	maintainOptions
	args []string

	cluster []*metav1.PartialObjectMetadata
	// meant are by maintenance the nodes of it that are named; those that are named themselves
	// have none.
	meant map[string][]string
}

func newComplete(streams genericiooptions.IOStreams) *cobra.Command {
	o := &completeOptions{maintainOptions: maintainOptions{IOStreams: streams, stage: v1alpha1.StageComplete, verb: "complete"}}
	cmd := &cobra.Command{
		Use:     "complete NAME... | NODE...",
		Aliases: []string{"uncordon"},
		Short:   "Give nodes back, and end maintenances",
		Long: `Give nodes back, and end maintenances.

With the name of a maintenance, stage Complete is set, which is final, and all
of its nodes are given back. With nodes, these are given back and the others go
on; the maintenance ends with its last node. A drain that is not through is
cancelled.

It waits until the nodes are what they were before: schedulable, unless somebody
else had cordoned them or another maintenance has them. A node that several
maintenances hold is refused, unless you say --yes.

You need the verbs get, list, watch and patch on nodemaintenances, list and
watch on nodes, and delete on the nodes.`,
		Example: `  # The work on a node is done
  kubectl ebbtide complete node-7

  # That on all nodes of a maintenance
  kubectl ebbtide complete kernel-update`,
		RunE: runs(o),
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.Yes, "yes", false, "give a node back for all maintenances that hold it")
	flags.BoolVar(&o.Wait, "wait", true, "wait until the nodes have been given back")
	flags.DurationVar(&o.Timeout, "timeout", 0, "how long to wait; 0 is as long as it takes")
	o.output.addFlag(cmd, "Print the NodeMaintenance instead of sentences", formatJSON, formatYAML, formatName)
	o.dryRun.addFlag(cmd)
	o.connection.addFlags(cmd)
	// Nodes have none.
	cmd.Flags().Lookup("namespace").Hidden = true
	cmd.ValidArgsFunction = o.suggest(suggestMaintenances, suggestNodes)
	return cmd
}

// Complete reads the arguments. It asks nobody.
func (o *completeOptions) Complete(args []string) error {
	o.args = nil
	kind := ""
	for _, arg := range args {
		if len(args) > 1 && arg == args[0] && (isNodeKind(arg) || isMaintenanceKind(arg)) {
			kind = arg + "/"
			continue
		}
		o.args = append(o.args, kind+arg)
	}
	if len(o.args) == 0 {
		return errors.New("name a NodeMaintenance or a node; kubectl get nodemaintenances shows which there are")
	}
	return nil
}

// Run sets the stage, and waits for the nodes.
func (o *completeOptions) Run(ctx context.Context) (err error) {
	if err := o.open(); err != nil {
		return err
	}
	if o.cluster, err = nodes(ctx, o.reached); err != nil {
		return err
	}
	names, err := o.names()
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
	// What ends is decided before anything does.
	for _, one := range endings {
		if err := o.end(ctx, one); err != nil {
			return err
		}
	}
	for _, one := range endings {
		if err := o.show(one.NodeMaintenance, func(to io.Writer) error { return o.told(ctx, to, one) }); err != nil {
			return err
		}
	}
	return nil
}

// names are the maintenances that are meant, each once.
//
// Errors: nothing has such a name; nobody holds a node, or several maintenances do, without
// --yes.
func (o *completeOptions) names() (names []string, err error) {
	o.meant = map[string][]string{}
	var whole []string
	for _, arg := range o.args {
		of, node, err := o.meantBy(arg)
		if err != nil {
			return nil, err
		}
		for _, name := range of {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			o.meant[name] = append(o.meant[name], node)
		}
		if node == "" {
			whole = append(whole, of...)
		}
	}
	for _, name := range whole {
		o.meant[name] = nil
	}
	return names, nil
}

// meantBy are the maintenances that an argument means, and the node of them that it names, if
// it does. A word that is the name of a node is a node; any other is a maintenance.
func (o *completeOptions) meantBy(arg string) (names []string, node string, err error) {
	kind, name, found := strings.Cut(arg, "/")
	if !found {
		name = arg
	}
	at := slices.IndexFunc(o.cluster, func(node *metav1.PartialObjectMetadata) bool { return node.Name == name })
	switch {
	case found && isMaintenanceKind(kind), !found && at < 0:
		return []string{name}, "", nil
	case found && !isNodeKind(kind):
		return nil, "", fmt.Errorf("%q is neither a NodeMaintenance nor a node: name NAME, nodemaintenance/NAME or node/NAME", excerpt.Line(arg, 300))
	case at < 0:
		return nil, "", unknownNames("node", []string{name}, namesOf(o.cluster))
	}
	names, err = o.holders(o.cluster[at])
	return names, name, err
}

// holders are the maintenances that hold a node, if it is clear that they are meant.
func (o *completeOptions) holders(node *metav1.PartialObjectMetadata) ([]string, error) {
	holders := holdersOf(node)
	switch {
	case len(holders) == 0:
		return nil, fmt.Errorf("no maintenance holds node %s; if somebody has cordoned it, give it back with\n  %s", node.Name, o.kubectl("uncordon %s", node.Name))
	case len(holders) > 1 && !o.Yes:
		return nil, fmt.Errorf("node %s is held by %s: name the one that is done, or say --yes to give it back for all of them", node.Name, someOf(holders))
	}
	return holders, nil
}

// holdersOf are the maintenances that a node says hold it. Whoever may annotate the node
// says so; what cannot be the name of one is left out.
func holdersOf(node *metav1.PartialObjectMetadata) []string {
	return slices.DeleteFunc(cordon.Holders(&corev1.Node{ObjectMeta: node.ObjectMeta}), func(name string) bool {
		return len(validation.IsDNS1123Subdomain(name)) > 0
	})
}

// end has nodes given back, and waits until they are.
func (o *completeOptions) end(ctx context.Context, one ending) error {
	m := one.NodeMaintenance
	switch {
	case m.DeletionTimestamp != nil:
		o.say(fmt.Sprintf("NodeMaintenance %s is being deleted, which completes it", m.Name))
	case m.Spec.Stage == v1alpha1.StageComplete:
		o.say(fmt.Sprintf("NodeMaintenance %s is complete already", m.Name))
	case len(one.nodes) > 0:
		if err := o.giveBack(ctx, one); err != nil {
			return err
		}
	default:
		o.say(o.warnings(m)...)
		if err := o.setStage(ctx, m, v1alpha1.StageComplete); err != nil {
			return err
		}
	}
	if !o.Wait || o.dryRun.Mode != dryRunNone {
		return nil
	}
	limited, stop := within(ctx, o.Timeout)
	defer stop()
	if len(one.nodes) > 0 {
		return o.awaitNodes(limited, one)
	}
	return o.awaitEnd(limited, m)
}

// awaitEnd waits until the maintenance is over.
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
		return notDone("not over within %s: NodeMaintenance %s is complete, and has not given back %s yet. See what it waits for with\n  %s",
			o.Timeout, m.Name, someOf(selectedBy(m, o.cluster)), o.kubectl("describe nodemaintenance %s", m.Name))
	case errors.Is(err, context.Canceled):
		return detached{fmt.Sprintf("NodeMaintenance %s is complete; its nodes are given back without us", m.Name)}
	}
	return err
}

// warnings are what somebody should know who ends a maintenance.
func (o *completeOptions) warnings(m *v1alpha1.NodeMaintenance) (lines []string) {
	if owner := metav1.GetControllerOf(m); owner != nil {
		lines = append(lines, fmt.Sprintf("NodeMaintenance %s belongs to %s %s, which may make another one", m.Name, excerpt.Line(owner.Kind, 63), excerpt.Line(owner.Name, 253)))
	}
	if node := maintenance.OfShutdown(m); node != "" {
		lines = append(lines, fmt.Sprintf("NodeMaintenance %s was made because node %s shuts down, and would end by itself when that is over", m.Name, node))
	}
	drained := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrained)
	if m.Spec.Stage == v1alpha1.StageDrain && (drained == nil || drained.Status != metav1.ConditionTrue) {
		lines = append(lines, fmt.Sprintf("NodeMaintenance %s was not drained, and is cancelled: %s", m.Name, summary(m)))
	}
	return lines
}

func summary(m *v1alpha1.NodeMaintenance) string {
	if m.Status.Summary == "" {
		return "nobody has reported on it yet"
	}
	return m.Status.Summary
}

// selectedBy are the nodes that a maintenance selects.
func selectedBy(m *v1alpha1.NodeMaintenance, cluster []*metav1.PartialObjectMetadata) (names []string) {
	all := make([]*corev1.Node, len(cluster))
	for i := range cluster {
		all[i] = &corev1.Node{ObjectMeta: cluster[i].ObjectMeta}
	}
	// A selector that cannot be understood selects none.
	matching, _ := maintenance.Matching(&m.Spec, all)
	for _, node := range matching {
		names = append(names, node.Name)
	}
	return names
}

// told says what has become of the nodes.
func (o *completeOptions) told(ctx context.Context, to io.Writer, one ending) error {
	state := "is complete"
	if len(one.nodes) > 0 {
		state = "goes on without " + someOf(one.nodes)
	}
	if !o.Wait || o.dryRun.Mode != dryRunNone {
		_, err := fmt.Fprintf(to, "NodeMaintenance %s %s%s\n", one.Name, state, o.only())
		return err
	}
	nodes := one.nodes
	if len(nodes) == 0 {
		nodes = selectedBy(one.NodeMaintenance, o.cluster)
	}
	given, kept, err := o.givenBack(ctx, nodes)
	if err != nil {
		return err
	}
	if len(given) > 0 {
		state += "; schedulable again: " + someOf(given)
	}
	_, err = fmt.Fprintf(to, "NodeMaintenance %s %s\n", one.Name, state)
	for _, line := range kept[:min(len(kept), maxNamed)] {
		o.say(line)
	}
	if more := len(kept) - maxNamed; more > 0 {
		o.say(fmt.Sprintf("and %d more stay cordoned", more))
	}
	return err
}

// givenBack are the nodes that take pods again, and for the others a line each why not.
func (o *completeOptions) givenBack(ctx context.Context, names []string) (given, kept []string, err error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	cordoned, err := pages(ctx, o.reached, list, whole[*metav1.PartialObjectMetadata], client.MatchingFields{"spec.unschedulable": "true"})
	if err != nil {
		return nil, nil, fmt.Errorf("list nodes: %w", err)
	}
	closed := map[string]*metav1.PartialObjectMetadata{}
	for _, node := range cordoned {
		closed[node.Name] = node
	}
	for _, name := range names {
		node, is := closed[name]
		if !is {
			given = append(given, name)
			continue
		}
		why := "as it was before: " + o.kubectl("uncordon %s", name)
		if holders := holdersOf(node); len(holders) > 0 {
			why = "because of NodeMaintenance " + someOf(holders)
		}
		kept = append(kept, fmt.Sprintf("%s stays cordoned, %s", name, why))
	}
	return given, kept, nil
}
