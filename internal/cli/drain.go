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

	flags *pflag.FlagSet
}

func newDrain(streams genericiooptions.IOStreams) *cobra.Command {
	o := &drainOptions{maintainOptions: maintainOptions{IOStreams: streams, stage: v1alpha1.StageDrain, verb: "drain"}}
	cmd := &cobra.Command{
		Use:   "drain NODE... | -l LABELS | nodemaintenance/NAME",
		Short: "Empty nodes within the budgets of their pods, say what blocks",
		Long: `Empty nodes within the budgets of their pods, say what blocks.

It asks for one NodeMaintenance in stage Drain and follows it until the nodes
are drained. Ctrl-C leaves the drain running in the cluster and prints the
command to come back. Afterwards "complete" gives the nodes back.

Several nodes are emptied at the same time, so that needs --all-at-once. Without
it nothing is done: you are told which applications would be down, and the loop
that empties one node after the other.

nodemaintenance/NAME starts one that is planned (stage Idle or Cordon), or
follows one that drains. The flags of kubectl drain work, and are said to be
what they are here; those that would break a promise are refused.

It ends with 0 when the nodes are drained, with 2 if they are not within
--timeout. You need the verbs list on nodes, create, get, list and watch on
nodemaintenances, and delete on the nodes.`,
		Example: `  # Empty a node, and wait for that
  kubectl ebbtide drain node-7 --reason "new kernel"

  # Empty all nodes of a pool at the same time, and do not wait for that
  kubectl ebbtide drain -l pool=a --all-at-once --wait=false

  # What would be created?
  kubectl ebbtide drain node-7 --dry-run=server -o yaml

  # Start what has been planned
  kubectl ebbtide drain nodemaintenance/kernel-update`,
		RunE: runs(o),
	}
	flags := cmd.Flags()
	o.drainSpec.addFlags(cmd)
	flags.BoolVar(&o.AllAtOnce, "all-at-once", false, "empty several nodes at the same time")
	flags.BoolVar(&o.RefuseLoss, "refuse-loss", false, "do nothing if pods would lose data, nobody would make them again, or their Jobs would fail for good")
	flags.BoolVar(&o.Wait, "wait", true, "follow the drain until the nodes are drained")
	flags.DurationVar(&o.Timeout, "timeout", 0, "how long to follow it; the drain itself goes on. 0 is as long as it takes")
	addDrainFlags(flags)
	o.maintainOptions.addFlags(cmd)
	o.flags = flags
	return cmd
}

// specFlags say what a new NodeMaintenance is like.
var specFlags = []string{"reason", "depth", "in-place", "deadline", "on-deadline", "ignore-daemonsets", "selector"}

// Validate refuses what no cluster would make right.
func (o *drainOptions) Validate() error {
	if err := o.maintainOptions.Validate(); err != nil {
		return err
	}
	if _, err := translate(o.flags); err != nil {
		return err
	}
	for _, name := range specFlags {
		if o.existing && o.flags.Changed(name) {
			return fmt.Errorf("NodeMaintenance %s is there already, so --%s says nothing new: change it with\n  %s", o.Name, name, o.kubectl("edit nodemaintenance %s", o.Name))
		}
	}
	if err := o.drainSpec.validate(); err != nil {
		return err
	}
	if o.flags.Lookup("ignore-daemonsets").Value.String() == "true" {
		if o.Depth != "" && o.Depth != string(v1alpha1.PodTypeDefault) {
			return fmt.Errorf("--ignore-daemonsets leaves pods of DaemonSets on the nodes, and --depth=%s does not: say one of them", o.Depth)
		}
		o.Depth = string(v1alpha1.PodTypeDefault)
	}
	if o.Timeout > 0 && !o.Wait {
		return errors.New("--timeout is how long to wait, and --wait=false does not wait: say one of them")
	}
	return nil
}

// Run asks for the drain, or starts the one that is planned, and follows it.
func (o *drainOptions) Run(ctx context.Context) error {
	if err := o.open(); err != nil {
		return err
	}
	lines, err := translate(o.flags)
	if err != nil {
		return err
	}
	o.say(lines...)
	m, err := o.begin(ctx)
	if err != nil {
		return err
	}
	if err := o.show(m, func(to io.Writer) error { return o.told(to, m) }); err != nil {
		return err
	}
	if !o.Wait || o.dryRun.Mode != dryRunNone {
		return nil
	}
	return o.follow(ctx, m.Name)
}

// begin creates the maintenance, or sets the stage of the one that is there.
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
	now, err := o.clock.now()
	if err != nil {
		return nil, err
	}
	if err := o.shape(&m.Spec, now); err != nil {
		return nil, err
	}
	if err := o.refuseSeveral(ctx, m, namesOf(picked)); err != nil {
		return nil, err
	}
	if err := o.warnOfLoss(ctx, picked); err != nil {
		return nil, err
	}
	return m, o.ask(ctx, m, picked)
}

// checkExisting refuses to begin with a maintenance that is there what a new one is refused.
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
	return o.warnOfLoss(ctx, picked)
}

// told says what has been asked for.
func (o *drainOptions) told(to io.Writer, m *v1alpha1.NodeMaintenance) error {
	_, err := fmt.Fprintf(to, "NodeMaintenance %s drains %s%s\n", m.Name, meant(m), o.only())
	if err != nil || o.Wait || o.dryRun.Mode != dryRunNone {
		return err
	}
	_, err = fmt.Fprintf(to, "See how far it is with\n  %s\n", o.comeBack(m.Name))
	return err
}
