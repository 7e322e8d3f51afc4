package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

type drainOptions struct {
	maintainOptions
	drainSpec
	AllAtOnce, RefuseLoss bool
	Max                   string

	flags *pflag.FlagSet
}

func newDrain(streams genericiooptions.IOStreams) *cobra.Command {
	o := &drainOptions{maintainOptions: maintainOptions{IOStreams: streams, stage: v1alpha1.StageDrain, verb: "drain"}}
	cmd := &cobra.Command{
		Use:        "drain NODE... | -l LABELS | nodemaintenance/NAME",
		SuggestFor: []string{"start", "resume", "continue", "evict"},
		Short:      "Drain nodes within the PodDisruptionBudgets of their pods",
		Long: `Drain nodes within the PodDisruptionBudgets of their pods, and show what blocks.

The command creates one NodeMaintenance in stage Drain and follows it until the
node is drained. Ctrl-C leaves the drain running in the cluster. Afterwards,
"complete" returns the node to service. Without --name, the same command
continues the same NodeMaintenance until that is complete.

Several nodes are drained one after the other, or --max at a time, by a
NodeRollout, and stay drained. "complete noderollout/NAME" returns them all to
service. With --all-at-once, one NodeMaintenance drains all at the same time.

nodemaintenance/NAME starts a planned maintenance (stage Idle or Cordon), or
follows a running one. Flags of kubectl drain are accepted; those that would
break a promise are rejected.

The exit code is 0 once the nodes are drained, and 2 if they are not within
--timeout. Requires the verbs list on nodes, create, get, list and watch on
nodemaintenances (for several nodes: on noderollouts), and delete on the nodes.`,
		Example: `  # Drain a node and wait
  kubectl ebbtide drain node-7 --reason "new kernel"

  # Drain the nodes of a pool, two at a time
  kubectl ebbtide drain -l pool=a --max 2

  # Drain all nodes of a pool at the same time, without waiting
  kubectl ebbtide drain -l pool=a --all-at-once --wait=false

  # Show what would be created
  kubectl ebbtide drain node-7 --dry-run=server -o yaml

  # Start a planned maintenance
  kubectl ebbtide drain nodemaintenance/kernel-update`,
		RunE: runs(o),
	}
	flags := cmd.Flags()
	o.drainSpec.addFlags(cmd)
	flags.StringVar(&o.Max, "max", "1", "number or percentage of several nodes that are drained at the same time")
	flags.BoolVar(&o.AllAtOnce, "all-at-once", false, "drain all nodes at the same time, with one NodeMaintenance")
	flags.BoolVar(&o.RefuseLoss, "refuse-loss", false, "refuse to drain if pods would lose data or not be recreated, or if their Jobs would fail")
	flags.BoolVar(&o.Wait, "wait", true, "wait until the nodes are drained")
	flags.DurationVar(&o.Timeout, "timeout", 0, "time to wait, after which the drain continues in the background; 0 waits forever")
	addDrainFlags(flags)
	o.maintainOptions.addFlags(cmd)
	o.flags = flags
	return cmd
}

// specFlags set fields of a new NodeMaintenance.
var specFlags = []string{"reason", "depth", "in-place", "deadline", "on-deadline", "ignore-daemonsets", "selector"}

// Validate rejects invalid flags.
func (o *drainOptions) Validate() error {
	if err := o.maintainOptions.Validate(); err != nil {
		return err
	}
	if _, err := translate(o.flags); err != nil {
		return err
	}
	for _, name := range specFlags {
		if o.existing && o.flags.Changed(name) {
			return fmt.Errorf("--%s does not change the existing NodeMaintenance %s. Change it with\n  %s", name, o.Name, o.kubectl("edit nodemaintenance %s", o.Name))
		}
	}
	if err := o.drainSpec.validate(); err != nil {
		return err
	}
	if o.flags.Lookup("ignore-daemonsets").Value.String() == "true" {
		if o.Depth != "" && o.Depth != string(v1alpha1.PodTypeDefault) {
			return fmt.Errorf("--ignore-daemonsets and --depth=%s contradict each other", o.Depth)
		}
		o.Depth = string(v1alpha1.PodTypeDefault)
	}
	if o.Timeout > 0 && !o.Wait {
		return errors.New("--timeout and --wait=false contradict each other")
	}
	return o.checkRollout()
}

// Run creates the maintenance, or starts a planned one, and follows it.
func (o *drainOptions) Run(ctx context.Context) error {
	if err := o.open(); err != nil {
		return err
	}
	lines, err := translate(o.flags)
	if err != nil {
		return err
	}
	o.warn(lines...)
	if o.isRollout() {
		return o.drainRollout(ctx)
	}
	m, err := o.begin(ctx)
	if err != nil {
		return err
	}
	if err := o.show(m, func(to io.Writer) error { return o.printStarted(to, m) }); err != nil {
		return err
	}
	if !o.Wait || o.dryRun.Mode != dryRunNone {
		return nil
	}
	return o.follow(ctx, m.Name)
}

// begin creates the maintenance, or sets the stage of an existing one.
func (o *drainOptions) begin(ctx context.Context) (*v1alpha1.NodeMaintenance, error) {
	if o.existing {
		if err := o.checkExisting(ctx); err != nil {
			return nil, err
		}
		return o.promote(ctx)
	}
	m, picked, err := o.planned(ctx)
	if err != nil {
		return nil, err
	}
	if err := o.apply(&m.Spec, timeOf(o.clock)); err != nil {
		return nil, err
	}
	o.relative = o.ahead()
	if err := o.warnLoss(ctx, picked); err != nil {
		return nil, err
	}
	return m, o.start(ctx, m, picked)
}

// checkExisting applies the checks of a new maintenance to an existing one.
func (o *drainOptions) checkExisting(ctx context.Context) error {
	m, err := o.maintenance(ctx, o.Name)
	if err != nil || m.DeletionTimestamp != nil || m.Spec.Stage == o.stage || maintenance.Past(m, o.stage) {
		return err
	}
	if o.AllAtOnce && !o.RefuseLoss {
		return nil
	}
	cluster, err := nodes(ctx, o.reached)
	if err != nil {
		return err
	}
	picked, err := named(selectedBy(m, cluster), cluster)
	if err != nil {
		return err
	}
	if err := o.refuseSeveral(ctx, m, namesOf(picked)); err != nil || !o.RefuseLoss {
		return err
	}
	return o.warnLoss(ctx, picked)
}

// printStarted prints which nodes are drained.
func (o *drainOptions) printStarted(to io.Writer, m *v1alpha1.NodeMaintenance) error {
	_, err := fmt.Fprintf(to, "NodeMaintenance %s drains %s%s\n", m.Name, selectionOf(m), o.suffix())
	if err != nil || o.Wait || o.dryRun.Mode != dryRunNone {
		return err
	}
	_, err = fmt.Fprintf(to, "Watch it with\n  %s\n", o.command("watch %s", m.Name))
	return err
}
