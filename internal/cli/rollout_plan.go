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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/internal/core/view"
)

// rolloutPlan are the options of rollout plan.
type rolloutPlan struct {
	rolloutStart
	// Each is the time that each node is assumed to take.
	Each time.Duration

	// existing is the rollout that is planned; empty plans the one that the flags describe.
	existing string
}

func newRolloutPlan(streams genericiooptions.IOStreams) *cobra.Command {
	o := &rolloutPlan{rolloutStart: rolloutStart{rolloutRequest: rolloutRequest{rolloutOptions: rolloutOptions{IOStreams: streams}, prefix: "rollout"}}}
	cmd := &cobra.Command{
		Use:        "plan NAME | NODE... | -l LABELS",
		SuggestFor: []string{"preview", "dry-run", "simulate", "order"},
		Short:      "Show in which order nodes start, without changing anything",
		Long: `Show in which order nodes start, without changing anything.

Given the name of a rollout, the command plans its remaining nodes; otherwise
the rollout that "start" with the same flags would create. The decision is that
of the manager. Later starts are an estimate: each node is assumed to take
--each, and none to fail.

The exit code is 2 if nodes would never start by themselves. Requires the verb
list on nodes, nodemaintenances, noderollouts and nodebudgets.`,
		Example: `  # Plan the upgrade of a pool
  kubectl ebbtide rollout plan -l pool=a --until kubelet=1.37.1 --max 2

  # Show which nodes of a rollout follow
  kubectl ebbtide rollout plan noderollout/kernel-update`,
		RunE: runs(o),
	}
	o.choice.addFlags(cmd, false, &o.connection)
	o.rolloutSpec.addFlags(cmd)
	cmd.Flags().StringVar(&o.Name, "name", "", "name of the NodeRollout (default derived from the nodes and --until)")
	cmd.Flags().DurationVar(&o.Each, "each", 30*time.Minute, "time that each node is assumed to take")
	o.rolloutOptions.addFlags(cmd, formatJSON, formatYAML, formatWide, formatName)
	cmd.ValidArgsFunction = o.suggest(suggestRollouts.under("noderollout/"), suggestNodes)
	return cmd
}

// Complete reads the arguments.
func (o *rolloutPlan) Complete(args []string) error {
	subjects, err := subjectsOf(args, kindAny, kindNode, kindRollout)
	if err != nil {
		return err
	}
	if at := slices.IndexFunc(subjects, func(s subject) bool { return s.kind == kindRollout }); at >= 0 {
		if len(subjects) > 1 || o.Selector != "" {
			return errors.New("specify nodes or one NodeRollout, not both")
		}
		o.existing = subjects[at].name
		return nil
	}
	return o.choice.complete(subjects)
}

// Validate rejects invalid flags.
func (o *rolloutPlan) Validate() error {
	o.Mode = dryRunNone
	if o.Each < time.Second {
		return fmt.Errorf("--each must be at least 1s, not %s", o.Each)
	}
	o.Wait = true
	return o.rolloutStart.Validate()
}

// Run prints the plan.
func (o *rolloutPlan) Run(ctx context.Context) error {
	if err := o.open(); err != nil {
		return err
	}
	s, err := o.snapshot(ctx)
	if err != nil {
		return err
	}
	name, err := o.planOf(ctx, s)
	if err != nil {
		return err
	}
	plan := view.RolloutPlanOf(s, name, o.Each)
	err = o.print(o.Out, plan, rolloutName(name), func(to io.Writer) error {
		return printPlan(to, &plan, textStyle{wide: o.isWide()})
	})
	if err == nil && len(plan.Stuck) > 0 {
		return ended{code: codeNotDone}
	}
	return err
}

// snapshot reads what a decision depends on.
func (o *rolloutPlan) snapshot(ctx context.Context) (s *rollout.Snapshot, err error) {
	s = &rollout.Snapshot{MachineKinds: rollout.AllMachineKinds()}
	if s.Rollouts, err = rollouts(ctx, o.reached); err != nil {
		return nil, err
	}
	if s.Maintenances, err = pages(ctx, o.reached, &v1alpha1.NodeMaintenanceList{}, whole[*v1alpha1.NodeMaintenance]); err != nil {
		return nil, fmt.Errorf("list nodemaintenances: %w", err)
	}
	s.Nodes, err = pages(ctx, o.reached, &corev1.NodeList{}, func(node *corev1.Node) *corev1.Node {
		node.Status.Images, node.Status.VolumesAttached = nil, nil
		return whole(node)
	})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	if s.Budgets, err = nodeBudgets(ctx, o.reached); err != nil {
		return nil, err
	}
	s.Now = timeOf(o.clock)
	return s, nil
}

// nodeBudgets reads all NodeBudgets; none if the cluster does not know them.
func nodeBudgets(ctx context.Context, reached client.Client) ([]*v1alpha1.NodeBudget, error) {
	all, err := pages(ctx, reached, &v1alpha1.NodeBudgetList{}, whole[*v1alpha1.NodeBudget])
	if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("list nodebudgets: %w", err)
	}
	return all, nil
}

// planOf returns the name of the rollout to plan. One that does not exist yet is added to the snapshot.
func (o *rolloutPlan) planOf(ctx context.Context, s *rollout.Snapshot) (string, error) {
	if at := slices.Index(namesOf(s.Rollouts), o.only()); at >= 0 {
		return s.Rollouts[at].Name, nil
	}
	if o.existing != "" {
		_, err := o.rolloutOf(ctx, o.reached, o.existing)
		return "", err
	}
	r, _, err := o.planned(ctx)
	if err != nil {
		return "", err
	}
	r.UID, r.Generation, r.CreationTimestamp = "planned", 1, metav1.NewTime(s.Now)
	known := slices.IndexFunc(s.Rollouts, func(other *v1alpha1.NodeRollout) bool { return other.Name == r.Name })
	switch {
	case known >= 0 && !isComplete(s.Rollouts[known]):
		o.warn(fmt.Sprintf("NodeRollout %s exists; this is its plan", r.Name))
		return r.Name, nil
	case known >= 0:
		s.Rollouts = slices.Delete(s.Rollouts, known, known+1)
	}
	s.Rollouts = append(s.Rollouts, r)
	return r.Name, nil
}

// only returns the only name that was given, which may be that of a rollout.
func (o *rolloutPlan) only() string {
	if o.existing == "" && len(o.Names) == 1 {
		return o.Names[0]
	}
	return o.existing
}

// Bounds of the starts that a plan shows, and with -o wide.
const shownStarts, wideStarts = 25, 1000

// printPlan prints the nodes in the order of their starts, and why others wait.
func printPlan(to io.Writer, s *view.RolloutPlan, style textStyle) error {
	p := &printer{to: to}
	p.line("NodeRollout %s: %s, %d done, %d failed, %d under maintenance.", s.Name, countNodes(s.NodeCount), s.DoneCount, len(s.Failed), len(s.Working))
	most := min(style.most(shownStarts, wideStarts), len(s.Starts))
	var rows [][]string
	for i, start := range s.Starts[:most] {
		at := "now"
		if in := start.StartTime.Sub(s.Time.Time); in > 0 {
			at = fmt.Sprintf("in ~%s (%s)", duration.HumanDuration(in), absolute(&start.StartTime))
		}
		rows = append(rows, []string{fmt.Sprint(i + 1), start.Node, at})
	}
	if len(rows) > 0 {
		p.line("")
	}
	p.table("ORDER\tNODE\tSTART", rows)
	if more := len(s.Starts) - most + s.OmittedCount; more > 0 {
		p.line("and %s", countNodes(more))
	}
	if len(s.Starts) > 0 || len(s.Stuck) == 0 {
		p.section("Waiting now:", sentences(s.Waiting), shownNodes, "")
	}
	p.section("These would never start by themselves:", sentences(s.Stuck), shownNodes, "")
	if len(s.Starts) > 0 {
		p.line("\nStarts are estimates: each node is assumed to take %s, and none to fail.", duration.HumanDuration(time.Duration(s.AssumedSeconds)*time.Second))
	}
	if len(s.Assumed) > 0 {
		p.line("Not checked, and assumed to hold: %s.", phrase.And(s.Assumed))
	}
	return p.err
}

func sentences(waits []view.RolloutWait) (lines []string) {
	for i := range waits {
		lines = append(lines, waits[i].Sentence())
	}
	return lines
}
