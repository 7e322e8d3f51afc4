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
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// rolloutStart are the options of rollout start.
type rolloutStart struct {
	rolloutRequest
	rolloutSpec
	choice

	Wait    bool
	Timeout time.Duration
}

func newRolloutStart(streams genericiooptions.IOStreams) *cobra.Command {
	o := &rolloutStart{rolloutRequest: rolloutRequest{rolloutOptions: rolloutOptions{IOStreams: streams}, prefix: "rollout"}}
	cmd := &cobra.Command{
		Use:        "start NODE... | -l LABELS",
		SuggestFor: []string{"create", "run", "begin", "apply"},
		Short:      "Start a rollout and follow it",
		Long: `Start a rollout and follow it.

The command creates a NodeRollout, and follows it until every node is done.
Ctrl-C leaves it running in the cluster. The same command again continues the
same rollout.

--until says what a node must report to be done; nodes that report the versions
already are left alone. Without it, you complete the maintenance of each node.
Ebbtide drains the nodes and returns them to service; your tools patch or reboot
them when they have the label ` + v1alpha1.HandedOverLabel + `. With --job, a Job
made from a CronJob runs on each of them. With --reboot, the agents of the nodes
reboot them. With --replace, their machines are deleted and replaced by others.

The exit code is 0 when all nodes are done, and 2 if nodes have failed or are
not done within --timeout. Requires the verbs list on nodes, create, get, list
and watch on noderollouts, and delete on the nodes; --job also create on jobs in
its namespace.`,
		Example: `  # Reboot a pool into a new kernel at night, two nodes at a time
  kubectl ebbtide rollout start -l pool=a --max 2 --until kernel=6.12.9 \
    --window "mon-fri 22:00-04:00 Europe/Berlin"

  # Upgrade kubelets, two canary nodes first, then one zone at a time
  kubectl ebbtide rollout start -l pool=a --until kubelet=1.37.1 --max 3 \
    --canary 2 --canary-soak 1h --zone-by topology.kubernetes.io/zone

  # Run a Job on each node, and reboot it
  kubectl ebbtide rollout start -l pool=a --job ops/patch --reboot

  # Reboot nodes whenever they require it, one at a time
  kubectl ebbtide rollout start -l pool=a --when reboot-required --reboot --continuous

  # Show what would be created
  kubectl ebbtide rollout start -l pool=a --until reboot --dry-run=server -o yaml`,
		RunE: runs(o),
	}
	flags := cmd.Flags()
	o.choice.addFlags(cmd, false, &o.connection)
	o.rolloutSpec.addFlags(cmd)
	flags.StringVar(&o.Name, "name", "", "name of the NodeRollout (default derived from the nodes and --until)")
	flags.BoolVar(&o.Wait, "wait", true, "wait until the rollout is complete")
	flags.DurationVar(&o.Timeout, "timeout", 0, "time to wait, after which the rollout continues in the background; 0 waits forever")
	o.dryRun.addFlag(cmd)
	o.rolloutOptions.addFlags(cmd, formatJSON, formatYAML, formatName)
	cmd.ValidArgsFunction = o.suggest(suggestNodes)
	return cmd
}

// Complete reads the arguments.
func (o *rolloutStart) Complete(args []string) error {
	subjects, err := subjectsOf(args, kindAny, kindNode)
	if err != nil {
		return err
	}
	return o.choice.complete(subjects)
}

// Validate rejects invalid flags.
func (o *rolloutStart) Validate() error {
	if err := errors.Join(o.rolloutRequest.validate(), checkWait(o.Wait, o.Timeout)); err != nil {
		return err
	}
	if len(o.Names) > maxTerms {
		return fmt.Errorf("a NodeRollout can name at most %d nodes, not %d; use -l instead", maxTerms, len(o.Names))
	}
	o.Wait = o.Wait && !o.Continuous
	_, err := o.spec()
	return err
}

// checkWait rejects flags that contradict each other.
func checkWait(wait bool, timeout time.Duration) error {
	switch {
	case timeout < 0:
		return fmt.Errorf("--timeout must not be negative: %s", timeout)
	case timeout > 0 && !wait:
		return errors.New("--timeout and --wait=false contradict each other")
	}
	return nil
}

// Run creates the rollout and follows it.
func (o *rolloutStart) Run(ctx context.Context) error {
	if err := o.open(); err != nil {
		return err
	}
	r, picked, err := o.planned(ctx)
	if err != nil {
		return err
	}
	if err := o.create(ctx, r, picked); err != nil {
		return err
	}
	err = o.showRollout(o.Out, r, func(to io.Writer) error { return o.printStarted(to, r, picked) })
	if err != nil || !o.Wait || o.dryRun.Mode != dryRunNone {
		return err
	}
	return o.follow(ctx, r.Name, o.Timeout)
}

// planned returns the rollout that the flags describe, and its nodes.
func (o *rolloutStart) planned(ctx context.Context) (*v1alpha1.NodeRollout, []*metav1.PartialObjectMetadata, error) {
	spec, err := o.spec()
	if err != nil {
		return nil, nil, err
	}
	cluster, err := nodes(ctx, o.reached)
	if err != nil {
		return nil, nil, err
	}
	// The order of the arguments does not matter: the rollout has one of its own.
	slices.Sort(o.Names)
	// One node after the other can be any node, unless they stay drained.
	o.writes = o.StayDrained || o.Replace
	picked, err := pick(&o.choice, cluster)
	if err != nil {
		return nil, nil, err
	}
	if spec.NodeSelector, err = o.selector(); err != nil {
		return nil, nil, err
	}
	if picked, err = o.included(&spec, picked); err != nil {
		return nil, nil, err
	}
	return o.object(spec, o.Selector), picked, nil
}

// included returns the nodes without those of the control plane that the spec leaves out.
func (o *rolloutStart) included(spec *v1alpha1.NodeRolloutSpec, picked []*metav1.PartialObjectMetadata) (kept []*metav1.PartialObjectMetadata, err error) {
	if spec.ControlPlane == v1alpha1.ControlPlaneFirst || spec.ControlPlane == v1alpha1.ControlPlaneLast {
		return picked, nil
	}
	var left []string
	for _, node := range picked {
		if podclass.IsControlPlane(node.Labels) {
			left = append(left, node.Name)
			continue
		}
		kept = append(kept, node)
	}
	switch {
	case len(kept) == 0:
		return nil, fmt.Errorf("only control plane nodes are selected: %s. To include them, add --control-plane=Last or First", someOf(left))
	case len(left) > 0:
		o.warn(fmt.Sprintf("left out as control plane: %s. To include them, add --control-plane=Last or First", someOf(left)))
	}
	return kept, nil
}

// printStarted prints which nodes are maintained.
func (o *rolloutStart) printStarted(to io.Writer, r *v1alpha1.NodeRollout, picked []*metav1.PartialObjectMetadata) error {
	_, err := fmt.Fprintf(to, "NodeRollout %s maintains %s, at most %s at a time: %s%s\n", r.Name, phrase.Count(len(picked), "node"), maxOf(r), someOf(namesOf(picked)), o.suffix())
	if err != nil || o.Wait || o.dryRun.Mode != dryRunNone {
		return err
	}
	_, err = fmt.Fprintf(to, "Watch it with\n  %s\n", o.command("rollout watch %s", r.Name))
	return err
}

// maxOf returns how many nodes of a rollout may be unavailable.
func maxOf(r *v1alpha1.NodeRollout) string {
	if r.Spec.MaxUnavailable == nil {
		return "1"
	}
	return r.Spec.MaxUnavailable.String()
}

// checkRolloutName rejects an invalid name.
func checkRolloutName(name string) error {
	if wrong := validation.IsDNS1123Subdomain(name); name != "" && len(wrong) > 0 {
		return fmt.Errorf("invalid name %q: %s", name, wrong[0])
	}
	if len(name) > validation.LabelValueMaxLength {
		return fmt.Errorf("invalid name %q: at most %d characters, as it labels the NodeMaintenances of the rollout", name, validation.LabelValueMaxLength)
	}
	return nil
}
