package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// maxTerms is the number of nodes that a NodeMaintenance can name.
	maxTerms = 256
	// settleWithin bounds the wait for an answer after Ctrl-C.
	settleWithin = 3 * time.Second
)

// maintainOptions are the options of the verbs that create or advance a maintenance.
type maintainOptions struct {
	genericiooptions.IOStreams
	connection
	choice
	output
	dryRun
	Name, Reason string
	Wait         bool
	Timeout      time.Duration

	// stage is the one that the verb sets.
	stage v1alpha1.NodeMaintenanceStage
	verb  string
	// existing is true if Name is an existing maintenance, and no nodes are named.
	existing bool
	// relative is the duration of a deadline that counts from now; 0 if it is a time.
	relative time.Duration
	reached  client.WithWatch
	clock    *clock
}

func (o *maintainOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	o.choice.addFlags(cmd, true, &o.connection)
	flags.StringVar(&o.Name, "name", "", "name of the NodeMaintenance (default derived from the verb and the node)")
	flags.StringVar(&o.Reason, "reason", "", "reason shown to everyone who waits")
	o.output.addFlag(cmd, formatJSON, formatYAML, formatName)
	o.dryRun.addFlag(cmd)
	o.connection.addFlags(cmd)
	// Nodes have no namespace.
	cmd.Flags().Lookup("namespace").Hidden = true
	ofNodes, ofMaintenances := o.suggest(suggestNodes), o.suggest(suggestMaintenances.under("nodemaintenance/"))
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, written string) ([]string, cobra.ShellCompDirective) {
		if strings.Contains(written, "/") && len(args) == 0 {
			return ofMaintenances(cmd, args, written)
		}
		return ofNodes(cmd, args, written)
	}
}

// Complete reads the arguments.
func (o *maintainOptions) Complete(args []string) error {
	subjects, err := subjectsOf(args, kindAny, kindNode, kindMaintenance)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(subjects, func(s subject) bool { return s.kind == kindMaintenance })
	switch {
	case at >= 0 && len(subjects) > 1:
		return errors.New("specify nodes or one NodeMaintenance, not both")
	case at >= 0 && (o.Name != "" || o.Selector != ""):
		return errors.New("--name and --selector require a new NodeMaintenance")
	case at >= 0:
		o.Name, o.existing = subjects[0].name, true
		return nil
	case len(subjects) == 0 && o.Selector == "" && o.Name != "":
		o.existing = true
		return nil
	}
	return o.choice.complete(subjects)
}

// Validate rejects invalid flags.
func (o *maintainOptions) Validate() error {
	if err := errors.Join(o.dryRun.check(), o.output.check()); err != nil {
		return err
	}
	if wrong := validation.IsDNS1123Subdomain(o.Name); o.Name != "" && len(wrong) > 0 {
		return fmt.Errorf("invalid name %q: %s", o.Name, wrong[0])
	}
	if o.Timeout < 0 {
		return fmt.Errorf("--timeout must not be negative: %s", o.Timeout)
	}
	if len(o.Names) > maxTerms {
		return fmt.Errorf("a NodeMaintenance can name at most %d nodes, not %d; use -l instead", maxTerms, len(o.Names))
	}
	return nil
}

func (o *maintainOptions) open() (err error) {
	o.reached, o.clock, _, err = o.reach(o.ErrOut)
	return err
}

// planned returns the NodeMaintenance to create, and its current nodes.
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
	m.SetGroupVersionKind(maintenanceKind)
	if m.Spec.NodeSelector, err = o.selector(); err != nil {
		return nil, nil, err
	}
	if m.Name = o.Name; m.Name == "" {
		m.Name = usualName(o.verb, o.Names, m.Spec.NodeSelector)
	}
	return m, picked, nil
}

// nodesNamed selects nodes by name, one in each term.
func nodesNamed(names []string) *corev1.NodeSelector {
	selector := &corev1.NodeSelector{}
	for _, name := range names {
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, maintenance.SelectNode(name).NodeSelectorTerms...)
	}
	return selector
}

// selector selects the named nodes, or those that have the labels now or later.
func (c *choice) selector() (*corev1.NodeSelector, error) {
	if len(c.Names) > 0 {
		return nodesNamed(c.Names), nil
	}
	requirements, _ := c.labels.Requirements()
	term := corev1.NodeSelectorTerm{}
	for _, r := range requirements {
		operator, known := nodeOperators[r.Operator()]
		if !known {
			return nil, fmt.Errorf("invalid selector -l %q: operator %s is not supported for nodes", c.Selector, r.Operator())
		}
		term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
			Key: r.Key(), Operator: operator, Values: r.ValuesUnsorted(),
		})
		slices.Sort(term.MatchExpressions[len(term.MatchExpressions)-1].Values)
	}
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}, nil
}

// nodeOperators maps the operators of label selectors to those of node selectors.
var nodeOperators = map[selection.Operator]corev1.NodeSelectorOperator{
	selection.Equals: corev1.NodeSelectorOpIn, selection.DoubleEquals: corev1.NodeSelectorOpIn, selection.In: corev1.NodeSelectorOpIn,
	selection.NotEquals: corev1.NodeSelectorOpNotIn, selection.NotIn: corev1.NodeSelectorOpNotIn,
	selection.Exists: corev1.NodeSelectorOpExists, selection.DoesNotExist: corev1.NodeSelectorOpDoesNotExist,
	selection.GreaterThan: corev1.NodeSelectorOpGt, selection.LessThan: corev1.NodeSelectorOpLt,
}

// start prints warnings and creates the maintenance. Without --name, one that is complete gives way
// to the next number.
func (o *maintainOptions) start(ctx context.Context, m *v1alpha1.NodeMaintenance, picked []*metav1.PartialObjectMetadata) error {
	usual := m.Name
	if err := o.chooseName(ctx, usual, m); err != nil {
		return err
	}
	o.warn(heldBy(picked, m.Name)...)
	if len(o.Names) == 0 {
		o.warn(fmt.Sprintf("nodes that get the labels %s later join the maintenance until it is complete", o.labels))
	}
	if o.dryRun.Mode == dryRunClient {
		return nil
	}
	err := o.create(ctx, m)
	for range maxRaces {
		if !errors.Is(err, errNameTaken) {
			return err
		}
		if err = o.chooseName(ctx, usual, m); err == nil {
			err = o.create(ctx, m)
		}
	}
	return err
}

// create creates the maintenance. Ctrl-C does not cancel the request, as the result would be unknown.
//
// Errors: a different maintenance of this name exists; the result is unknown.
func (o *maintainOptions) create(ctx context.Context, m *v1alpha1.NodeMaintenance) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	settled, stop := settle(ctx)
	defer stop()
	wanted := m.DeepCopy()
	err := o.reached.Create(settled, m, &client.CreateOptions{DryRun: o.dryRun.options(), FieldManager: fieldManager})
	// The client clears the kind.
	m.SetGroupVersionKind(wanted.GroupVersionKind())
	switch {
	case apierrors.IsAlreadyExists(err):
		return o.exists(settled, wanted, m)
	case isUncertain(err):
		return final(fmt.Errorf("unknown whether NodeMaintenance %s was created: %w. Check with\n  %s\nand complete it with\n  %s",
			m.Name, cause(err), o.kubectl("get nodemaintenance %s", m.Name), o.command("complete %s", m.Name)))
	}
	return err
}

// settle returns a context for a write, which an interrupt ends after settleWithin.
func settle(ctx context.Context) (context.Context, context.CancelFunc) {
	settled, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(settleWithin, func() { cancel(kube.NoAnswer{Within: settleWithin}) }) })
	return settled, func() { stop(); cancel(nil) }
}

// isUncertain reports whether the result of a write is unknown.
func isUncertain(err error) bool {
	return errors.As(err, new(kube.NoAnswer)) || errors.Is(err, context.Canceled) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

// exists continues with an existing maintenance that requests the same, so that a command can be
// repeated; otherwise it is an error.
func (o *maintainOptions) exists(ctx context.Context, wanted, into *v1alpha1.NodeMaintenance) error {
	known := &v1alpha1.NodeMaintenance{}
	err := o.reached.Get(ctx, client.ObjectKey{Name: wanted.Name}, known)
	switch {
	case o.Name == "" && (apierrors.IsNotFound(err) || err == nil && givesWay(known, wanted)):
		return errNameTaken
	case err != nil:
		return fmt.Errorf("NodeMaintenance %s already exists: %w", wanted.Name, err)
	case o.isSameRequest(known, wanted):
		until := ""
		if known.Spec.Deadline != nil {
			until = ", with deadline " + phrase.Time(known.Spec.Deadline.Time.Time)
		}
		o.warn(fmt.Sprintf("NodeMaintenance %s already exists with the same request%s", known.Name, until))
		known.SetGroupVersionKind(wanted.GroupVersionKind())
		known.DeepCopyInto(into)
		return nil
	}
	why := ""
	if field := o.difference(known, wanted); field != "" && known.Spec.Stage == wanted.Spec.Stage && hasSameNodes(known, wanted) {
		why = " with another " + field
	}
	if known.Spec.Reason != "" {
		why += fmt.Sprintf(" (%s)", excerpt.Line(known.Spec.Reason, 100))
	}
	instead := "watch it with\n  " + o.command("watch %s", known.Name)
	switch stage := known.Spec.Stage; {
	case stage == v1alpha1.StageComplete:
		instead = "delete it with\n  " + o.kubectl("delete nodemaintenance %s", known.Name)
	case o.stage == v1alpha1.StageDrain && stage != v1alpha1.StageDrain:
		instead = "start it with\n  " + o.command("drain nodemaintenance/%s", known.Name)
	}
	return fmt.Errorf("NodeMaintenance %s already exists%s: stage %s, for %s. Choose another --name, or %s",
		known.Name, why, known.Spec.Stage, selectionOf(known), instead)
}

// selectionOf describes the nodes that a maintenance selects.
func selectionOf(m *v1alpha1.NodeMaintenance) string {
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

// termWords describes the labels of a term.
func termWords(term corev1.NodeSelectorTerm) string {
	var words []string
	for _, e := range slices.Concat(term.MatchFields, term.MatchExpressions) {
		words = append(words, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Key, e.Operator, strings.Join(e.Values, ","))))
	}
	return excerpt.Line(strings.Join(words, " and "), 300)
}

// show prints the maintenance as -o specifies, otherwise what text prints.
func (o *maintainOptions) show(m *v1alpha1.NodeMaintenance, text func(io.Writer) error) error {
	shown, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		return err
	}
	unstructured.RemoveNestedField(shown, "metadata", "managedFields")
	if equality.Semantic.DeepEqual(m.Status, v1alpha1.NodeMaintenanceStatus{}) {
		delete(shown, "status")
	}
	return o.print(o.Out, shown, outputName(m.Name), text)
}

// outputName returns the name of a maintenance for -o name.
func outputName(maintenance string) string {
	return "nodemaintenance." + v1alpha1.SchemeGroupVersion.Group + "/" + maintenance
}

// heldBy warns of nodes that other maintenances hold.
func heldBy(picked []*metav1.PartialObjectMetadata, own string) (lines []string) {
	held := map[string][]string{}
	for _, node := range picked {
		for _, holder := range holdersOf(node) {
			if holder != own {
				held[holder] = append(held[holder], node.Name)
			}
		}
	}
	holders := slices.Sorted(maps.Keys(held))
	for _, holder := range holders[:min(len(holders), maxHolders)] {
		lines = append(lines, fmt.Sprintf("NodeMaintenance %s already holds %s: the plans are combined, and the nodes are released when both are complete",
			holder, someOf(held[holder])))
	}
	if more := len(holders) - maxHolders; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d other NodeMaintenances hold nodes", more))
	}
	return lines
}

// warn prints lines to standard error.
func (o *maintainOptions) warn(lines ...string) {
	for _, line := range lines {
		fmt.Fprintln(o.ErrOut, line)
	}
}
