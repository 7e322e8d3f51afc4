package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

const (
	// maxTerms is how many nodes a NodeMaintenance can name.
	maxTerms = 256
	// maxNodeInName is how much of a node's name goes into that of a maintenance, which
	// people type.
	maxNodeInName = 40
	// settleWithin is how long an answer is waited for after Ctrl-C.
	settleWithin = 3 * time.Second
)

// maintainOptions is what the verbs have in common that ask for a maintenance.
type maintainOptions struct {
	genericiooptions.IOStreams
	connection
	choice
	output
	dryRun
	Name, Reason string
	Wait         bool
	Timeout      time.Duration

	// stage is what the verb asks for, and verb is what it is called.
	stage v1alpha1.NodeMaintenanceStage
	verb  string
	// existing is true if Name is a maintenance that is there, and no nodes are named.
	existing bool
	reached  client.WithWatch
	clock    *clock
}

func (o *maintainOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	o.choice.addFlags(cmd, true, &o.connection)
	flags.StringVar(&o.Name, "name", "", "what the NodeMaintenance is called (default: made of the verb and the node)")
	flags.StringVar(&o.Reason, "reason", "", "what it is for; everybody who has to wait is shown it")
	o.output.addFlag(cmd, "Print the NodeMaintenance instead of sentences", formatJSON, formatYAML, formatName)
	o.dryRun.addFlag(cmd)
	o.connection.addFlags(cmd)
	// Nodes have none.
	cmd.Flags().Lookup("namespace").Hidden = true
	ofNodes, ofMaintenances := o.suggest(suggestNodes), o.suggest(suggestMaintenances.under("nodemaintenance/"))
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, written string) ([]string, cobra.ShellCompDirective) {
		if strings.Contains(written, "/") && len(args) == 0 {
			return ofMaintenances(cmd, args, written)
		}
		return ofNodes(cmd, args, written)
	}
}

// Complete reads the arguments. It asks nobody.
func (o *maintainOptions) Complete(args []string) error {
	if len(args) > 0 {
		if kind, name, found := strings.Cut(args[0], "/"); found && isMaintenanceKind(kind) {
			return o.completeExisting(name, args[1:])
		}
	}
	if len(args) == 0 && o.Selector == "" && o.Name != "" {
		o.existing = true
		return nil
	}
	return o.choice.complete(args)
}

func (o *maintainOptions) completeExisting(name string, more []string) error {
	switch {
	case o.Name != "" || o.Selector != "":
		return fmt.Errorf("nodemaintenance/%s is there already, with its name and nodes: leave out --name and --selector", name)
	case len(more) > 0:
		return fmt.Errorf("one NodeMaintenance at a time, and no nodes besides: not also %s", excerpt.Line(strings.Join(more, " "), 300))
	}
	o.Name, o.existing = name, true
	return nil
}

// Validate refuses what no cluster would make right.
func (o *maintainOptions) Validate() error {
	if err := errors.Join(o.dryRun.check(), o.output.check()); err != nil {
		return err
	}
	if wrong := validation.IsDNS1123Subdomain(o.Name); o.Name != "" && len(wrong) > 0 {
		return fmt.Errorf("%q is no name of a NodeMaintenance: %s", o.Name, wrong[0])
	}
	if o.Timeout < 0 {
		return fmt.Errorf("--timeout must be a time such as 5m, or 0 for as long as it takes, not %s", o.Timeout)
	}
	if len(o.Names) > maxTerms {
		return fmt.Errorf("a NodeMaintenance can name at most %d nodes, not %d; choose them by labels with -l", maxTerms, len(o.Names))
	}
	return nil
}

func (o *maintainOptions) open() (err error) {
	o.reached, o.clock, _, err = o.reachWarned(o.ErrOut)
	return err
}

// planned is the NodeMaintenance that is asked for, and the nodes that it has now.
func (o *maintainOptions) planned(ctx context.Context) (*v1alpha1.NodeMaintenance, []*metav1.PartialObjectMetadata, error) {
	cluster, err := nodes(ctx, o.reached)
	if err != nil {
		return nil, nil, err
	}
	picked, err := pick(&o.choice, cluster)
	if err != nil {
		return nil, nil, err
	}
	m := &v1alpha1.NodeMaintenance{Spec: v1alpha1.NodeMaintenanceSpec{Stage: o.stage, Reason: o.Reason}}
	m.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("NodeMaintenance"))
	if m.Name = o.Name; m.Name == "" {
		m.Name = generated(o.verb, picked)
	}
	if m.Spec.NodeSelector, err = o.selector(); err != nil {
		return nil, nil, err
	}
	return m, picked, nil
}

// generated is a name that people recognise, with a random end.
func generated(verb string, picked []*metav1.PartialObjectMetadata) string {
	of := fmt.Sprintf("%d-nodes", len(picked))
	if len(picked) == 1 {
		of = strings.TrimRight(picked[0].Name[:min(len(picked[0].Name), maxNodeInName)], "-.")
	}
	return verb + "-" + of + "-" + rand.String(5)
}

// nodesNamed selects nodes by name: a term can have but one of them.
func nodesNamed(names []string) *corev1.NodeSelector {
	selector := &corev1.NodeSelector{}
	for _, name := range names {
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
		}})
	}
	return selector
}

// selector selects the nodes that are named, and no others, or those with the labels,
// whenever they get them.
func (o *maintainOptions) selector() (*corev1.NodeSelector, error) {
	if len(o.Names) > 0 {
		return nodesNamed(o.Names), nil
	}
	requirements, _ := o.labels.Requirements()
	term := corev1.NodeSelectorTerm{}
	for _, r := range requirements {
		operator, known := nodeOperators[r.Operator()]
		if !known {
			return nil, fmt.Errorf("-l %q: operator %s cannot be used for nodes", o.Selector, r.Operator())
		}
		term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
			Key: r.Key(), Operator: operator, Values: r.ValuesUnsorted(),
		})
		slices.Sort(term.MatchExpressions[len(term.MatchExpressions)-1].Values)
	}
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}, nil
}

// nodeOperators are the operators of label selectors as node selectors have them.
var nodeOperators = map[selection.Operator]corev1.NodeSelectorOperator{
	selection.Equals: corev1.NodeSelectorOpIn, selection.DoubleEquals: corev1.NodeSelectorOpIn, selection.In: corev1.NodeSelectorOpIn,
	selection.NotEquals: corev1.NodeSelectorOpNotIn, selection.NotIn: corev1.NodeSelectorOpNotIn,
	selection.Exists: corev1.NodeSelectorOpExists, selection.DoesNotExist: corev1.NodeSelectorOpDoesNotExist,
	selection.GreaterThan: corev1.NodeSelectorOpGt, selection.LessThan: corev1.NodeSelectorOpLt,
}

// ask says what else there is to know, and creates the maintenance.
func (o *maintainOptions) ask(ctx context.Context, m *v1alpha1.NodeMaintenance, picked []*metav1.PartialObjectMetadata) error {
	o.say(o.joint(picked, m.Name)...)
	o.say(o.later()...)
	if o.dryRun.Mode == dryRunClient {
		return nil
	}
	return o.create(ctx, m)
}

// create creates the maintenance. Who presses Ctrl-C meanwhile is told what has become of
// it: the request is not taken back, as nobody would know whether it was in time.
//
// Errors: a maintenance of this name exists; it is unknown whether it was created.
func (o *maintainOptions) create(ctx context.Context, m *v1alpha1.NodeMaintenance) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	settled, stop := settle(ctx)
	defer stop()
	wanted := m.DeepCopy()
	err := o.reached.Create(settled, m, &client.CreateOptions{DryRun: o.dryRun.options(), FieldManager: fieldManager})
	// A client does not say what an answer is of.
	m.SetGroupVersionKind(wanted.GroupVersionKind())
	switch {
	case apierrors.IsAlreadyExists(err):
		return o.exists(settled, wanted, m)
	case uncertain(err):
		return said{fmt.Errorf("whether NodeMaintenance %s was created is unknown: %w. Look with\n  %s\nand end it with\n  %s",
			m.Name, cause(err), o.kubectl("get nodemaintenance %s", m.Name), o.command("complete %s", m.Name))}
	}
	return err
}

// settle is a context for a write, which an interrupt ends only some time later.
func settle(ctx context.Context) (context.Context, context.CancelFunc) {
	settled, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(settleWithin, func() { cancel(noAnswer{settleWithin}) }) })
	return settled, func() { stop(); cancel(nil) }
}

// uncertain returns true if nobody knows what has become of a write.
func uncertain(err error) bool {
	return errors.As(err, new(noAnswer)) || errors.Is(err, context.Canceled) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

// exists says what it is that has the name already. It is no error that it asks for what is
// wanted: whoever repeats a command goes on with it.
func (o *maintainOptions) exists(ctx context.Context, wanted, into *v1alpha1.NodeMaintenance) error {
	known := &v1alpha1.NodeMaintenance{}
	if err := o.reached.Get(ctx, client.ObjectKey{Name: wanted.Name}, known); err != nil {
		return fmt.Errorf("there is a NodeMaintenance %s already: %w", wanted.Name, err)
	}
	if asksForTheSame(known, wanted) {
		o.say(fmt.Sprintf("NodeMaintenance %s is there already, and asks for the same", known.Name))
		known.SetGroupVersionKind(wanted.GroupVersionKind())
		known.DeepCopyInto(into)
		return nil
	}
	why := ""
	if known.Spec.Reason != "" {
		why = fmt.Sprintf(" (%s)", excerpt.Line(known.Spec.Reason, 100))
	}
	instead := "follow it with\n  " + o.comeBack(known.Name)
	switch stage := known.Spec.Stage; {
	case stage == v1alpha1.StageComplete:
		instead = "delete it with\n  " + o.kubectl("delete nodemaintenance %s", known.Name)
	case o.stage == v1alpha1.StageDrain && stage != v1alpha1.StageDrain:
		instead = "start it with\n  " + o.command("drain nodemaintenance/%s", known.Name)
	}
	return fmt.Errorf("there is a NodeMaintenance %s already%s: stage %s, for %s. Choose another --name, or %s",
		known.Name, why, known.Spec.Stage, meant(known), instead)
}

// asksForTheSame compares what a verb asks for, apart from words.
func asksForTheSame(known, wanted *v1alpha1.NodeMaintenance) bool {
	depth := func(m *v1alpha1.NodeMaintenance) v1alpha1.PodType {
		return cmp.Or(m.Spec.DrainDepth, v1alpha1.PodTypeStatic)
	}
	special := func(m *v1alpha1.NodeMaintenance) bool {
		return m.Spec.InPlace != nil || m.Spec.Deadline != nil || len(m.Spec.CompletedNodes) > 0
	}
	return known.DeletionTimestamp == nil && known.Spec.Stage == wanted.Spec.Stage && depth(known) == depth(wanted) &&
		!special(known) && !special(wanted) && equality.Semantic.DeepEqual(known.Spec.NodeSelector, wanted.Spec.NodeSelector)
}

// meant says in words which nodes a maintenance selects.
func meant(m *v1alpha1.NodeMaintenance) string {
	if m.Spec.NodeSelector == nil {
		return "no nodes"
	}
	var words []string
	for _, term := range m.Spec.NodeSelector.NodeSelectorTerms {
		if len(term.MatchExpressions) == 0 && len(term.MatchFields) == 1 && term.MatchFields[0].Operator == corev1.NodeSelectorOpIn {
			words = append(words, excerpt.Line(strings.Join(term.MatchFields[0].Values, " "), 253))
			continue
		}
		words = append(words, "nodes with "+termWords(term))
	}
	return someOf(words)
}

// termWords are the labels of a term, as people write them.
func termWords(term corev1.NodeSelectorTerm) string {
	var words []string
	for _, e := range slices.Concat(term.MatchFields, term.MatchExpressions) {
		words = append(words, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Key, e.Operator, strings.Join(e.Values, ","))))
	}
	return excerpt.Line(strings.Join(words, " and "), 300)
}

// show prints the maintenance as -o says, otherwise what text prints.
func (o *maintainOptions) show(m *v1alpha1.NodeMaintenance, text func(io.Writer) error) error {
	shown, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		return err
	}
	unstructured.RemoveNestedField(shown, "metadata", "managedFields")
	if equality.Semantic.DeepEqual(m.Status, v1alpha1.NodeMaintenanceStatus{}) {
		// What has not been created has none, and nobody shall apply one.
		delete(shown, "status")
	}
	return o.print(o.Out, shown, nodeMaintenanceName(m), text)
}

// nodeMaintenanceName is the name as -o name has it.
func nodeMaintenanceName(m *v1alpha1.NodeMaintenance) string {
	return "nodemaintenance." + v1alpha1.SchemeGroupVersion.Group + "/" + m.Name
}

// comeBack is the command by which somebody who has left sees how far it is.
func (c *connection) comeBack(name string) string { return c.command("watch %s", name) }

// joint says which of the nodes other maintenances hold already.
func (o *maintainOptions) joint(picked []*metav1.PartialObjectMetadata, own string) (lines []string) {
	held := map[string][]string{}
	var holders []string
	for _, node := range picked {
		for _, holder := range holdersOf(node) {
			if holder == own {
				continue
			}
			if held[holder] == nil {
				holders = append(holders, holder)
			}
			held[holder] = append(held[holder], node.Name)
		}
	}
	slices.Sort(holders)
	for _, holder := range holders[:min(len(holders), maxHolders)] {
		lines = append(lines, fmt.Sprintf("NodeMaintenance %s has %s already: both are one plan, and nodes are given back when both are complete",
			excerpt.Line(holder, 253), someOf(held[holder])))
	}
	if more := len(holders) - maxHolders; more > 0 {
		lines = append(lines, fmt.Sprintf("and so have %d other NodeMaintenances", more))
	}
	return lines
}

// later warns of labels that other nodes may get.
func (o *maintainOptions) later() []string {
	if len(o.Names) > 0 {
		return nil
	}
	return []string{fmt.Sprintf("nodes that get the labels %s later are taken, too, until it is complete", o.labels)}
}

// say tells standard error.
func (o *maintainOptions) say(lines ...string) {
	for _, line := range lines {
		fmt.Fprintln(o.ErrOut, line)
	}
}
