package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/view"
)

func newRolloutStatus(streams genericiooptions.IOStreams) *cobra.Command {
	o := &rolloutOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:        "status NAME",
		SuggestFor: []string{"get", "show", "describe"},
		Short:      "Show the progress of a rollout, and why nodes wait or failed",
		Long: `Show the progress of a rollout, and why nodes wait or failed.

Nodes that wait are grouped by reason. The end is an estimate from the nodes
that are done. The exit code is 2 if nodes failed or the spec is invalid, and 3
if no manager acts.

Requires the verbs get and list on noderollouts; list on nodemaintenances shows
whether nodes are still drained.`,
		Example: `  # Show a rollout
  kubectl ebbtide rollout status kernel-update`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := oneRollout(args)
			if err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			return o.status(cmd.Context(), name)
		},
	}
	o.addFlags(cmd, formatJSON, formatYAML, formatWide, formatName)
	cmd.ValidArgsFunction = o.suggest(suggestRollouts)
	return cmd
}

// status prints a rollout.
func (o *rolloutOptions) status(ctx context.Context, name string) (err error) {
	if err := o.open(); err != nil {
		return err
	}
	r, err := o.rolloutOf(ctx, o.reached, name)
	if err != nil {
		return err
	}
	notes, away := o.managerNotes(ctx, o.reached, o.clock, o.ebbtide())
	if !o.isForPrograms() {
		o.warn(notes...)
	}
	shown := view.RolloutOf(r)
	shown.Unread, shown.Returned = notes, isReturned(ctx, o.reached, &shown)
	err = o.print(o.Out, shown, rolloutName(name), func(to io.Writer) error {
		return printRollout(to, &shown, timeOf(o.clock), textStyle{wide: o.isWide(), terminal: terminalOf(o.Out)})
	})
	if err == nil && (away || shown.FailedCount > 0 || shown.State == view.StateInvalid) {
		return ended{code: codeOfNotDone(away)}
	}
	return err
}

// isReturned reports whether the nodes of a complete rollout that stayed drained were all returned to
// service. If that cannot be read, they may still be drained.
func isReturned(ctx context.Context, reached client.Client, s *view.RolloutStatus) bool {
	if s.State != view.StateComplete || s.After != v1alpha1.AfterStayDrained {
		return false
	}
	active, err := maintenancesOfRollout(ctx, reached, s.Name)
	return err == nil && len(active) == 0
}

func newRolloutList(streams genericiooptions.IOStreams) *cobra.Command {
	o := &rolloutOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:        "list",
		Aliases:    []string{"ls"},
		SuggestFor: []string{"all"},
		Short:      "List rollouts and their progress",
		Long: `List rollouts and their progress, those in progress first.

Requires the verb list on noderollouts.`,
		Example: `  # List the rollouts
  kubectl ebbtide rollout list`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return o.list(cmd.Context())
		},
	}
	o.addFlags(cmd, formatJSON, formatYAML, formatWide, formatName)
	return cmd
}

// rolloutList is the printed list of rollouts.
type rolloutList struct {
	APIVersion string               `json:"apiVersion"`
	Kind       string               `json:"kind"`
	Items      []view.RolloutStatus `json:"items"`
}

// list prints a table of rollouts.
func (o *rolloutOptions) list(ctx context.Context) error {
	if err := o.open(); err != nil {
		return err
	}
	all, err := rollouts(ctx, o.reached)
	if err != nil {
		return err
	}
	shown := rolloutList{APIVersion: view.APIVersion, Kind: "RolloutStatusList", Items: view.RolloutsOf(all)}
	if len(shown.Items) == 0 && !o.isForPrograms() {
		fmt.Fprintln(o.ErrOut, "No NodeRollouts found.")
		return nil
	}
	names := make([]string, len(shown.Items))
	for i := range shown.Items {
		names[i] = rolloutName(shown.Items[i].Name)
	}
	return o.print(o.Out, shown, strings.Join(names, "\n"), func(to io.Writer) error {
		p := &printer{to: to}
		p.rollouts(shown.Items, timeOf(o.clock), textStyle{wide: o.isWide()})
		return p.err
	})
}

// rollouts prints a line for each rollout.
func (p *printer) rollouts(all []view.RolloutStatus, now time.Time, style textStyle) {
	header := "ROLLOUT\tSTATE\tDONE\tWORKING\tFAILED\tETA\tREASON\tAGE"
	if style.wide {
		header = "ROLLOUT\tSTATE\tDONE\tWORKING\tFAILED\tFINISH\tREASON\tCREATED\tSUMMARY"
	}
	var rows [][]string
	for i := range all {
		r := &all[i]
		cells := []string{r.Name, string(r.State), fmt.Sprintf("%d/%d", r.DoneCount, r.NodeCount), fmt.Sprint(r.WorkingCount), fmt.Sprint(r.FailedCount)}
		if style.wide {
			cells = append(cells, absolute(r.EstimatedCompletionTime), dash(r.Reason), absolute(&r.CreationTime), dash(r.Summary))
		} else {
			cells = append(cells, rolloutETA(r, now), shorten(dash(r.Reason), 40), duration.HumanDuration(now.Sub(r.CreationTime.Time)))
		}
		rows = append(rows, cells)
	}
	p.table(header, rows)
}

// rolloutETA returns the estimated rest for a column.
func rolloutETA(r *view.RolloutStatus, now time.Time) string {
	if r.EstimatedCompletionTime == nil || r.State != view.StateRunning {
		return "-"
	}
	return "~" + duration.HumanDuration(max(r.EstimatedCompletionTime.Sub(now), 0))
}

// printRollout prints the progress of a rollout, and the nodes that wait, work and failed.
func printRollout(to io.Writer, s *view.RolloutStatus, now time.Time, style textStyle) error {
	p := &printer{to: to}
	head := fmt.Sprintf("NodeRollout %s, %s", s.Name, s.State)
	if s.Reason != "" {
		head += ": " + s.Reason
	}
	p.line("%s", head)
	p.line("%s", s.Brief())
	if s.RequestedBy != "" {
		p.line("Requested by %s.", s.RequestedBy)
	}
	if s.Outdated {
		p.line("Its controller has not seen its current spec yet.")
	}
	if at := s.EstimatedCompletionTime; at != nil && s.State == view.StateRunning {
		p.line("Estimated end: %s, in about %s.", absolute(at), duration.HumanDuration(max(at.Sub(now), 0)))
	}
	most := style.most(shownNodes, wideNodes)
	var failed, working, waiting []string
	for i := range s.Failed {
		n := &s.Failed[i]
		failed = append(failed, n.Line(), "  "+n.Suggestion)
	}
	for i := range s.Working {
		working = append(working, s.Working[i].Line())
	}
	for i := range s.Waiting {
		waiting = append(waiting, s.Waiting[i].Sentence())
	}
	p.section("Failed:", failed, 2*most, "")
	p.section("Working:", working, most, "")
	p.section("Waiting:", waiting, most, "")
	if help := s.Help(); help != "" {
		p.line("\n%s", help)
	}
	return p.err
}

func newRolloutWatch(streams genericiooptions.IOStreams) *cobra.Command {
	o := &rolloutOptions{IOStreams: streams}
	var limit time.Duration
	cmd := &cobra.Command{
		Use:        "watch NAME",
		SuggestFor: []string{"follow", "wait"},
		Short:      "Watch a rollout until it is complete",
		Long: `Watch a rollout until it is complete.

Each change of the rollout and of its NodeMaintenances is a line with the time
of the cluster. Leaving the command does not stop the rollout.

The exit code is 0 when all nodes are done, and 2 if nodes have failed, if the
rollout was aborted, or if nodes are not done within --timeout. Requires the
verbs get, list and watch on noderollouts; list and watch on nodemaintenances
show their progress.`,
		Example: `  # Wait at most three hours
  kubectl ebbtide rollout watch kernel-update --timeout=3h`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := oneRollout(args)
			switch {
			case err != nil:
				return err
			case limit < 0:
				return errors.New("--timeout must not be negative")
			}
			if err := o.open(); err != nil {
				return err
			}
			return o.follow(cmd.Context(), name, limit)
		},
	}
	cmd.Flags().DurationVar(&limit, "timeout", 0, "time to wait; 0 waits forever")
	o.connection.addFlags(cmd)
	// Nodes have no namespace.
	cmd.Flags().Lookup("namespace").Hidden = true
	cmd.ValidArgsFunction = o.suggest(suggestRollouts)
	return cmd
}

// countNodes counts nodes.
func countNodes(n int) string { return phrase.Count(n, "node") }
