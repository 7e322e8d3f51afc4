package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// isRollout reports whether nodes are drained one after the other: several are named, or labels select
// them.
func (o *drainOptions) isRollout() bool {
	return !o.existing && !o.AllAtOnce && (o.Selector != "" || len(o.Names) > 1)
}

// checkRollout rejects flags that several nodes do not have.
func (o *drainOptions) checkRollout() error {
	if o.flags.Changed("max") && o.AllAtOnce {
		return errors.New("--max and --all-at-once contradict each other")
	}
	if _, err := amount("max", o.Max); err != nil {
		return err
	}
	if !o.isRollout() {
		return nil
	}
	if o.Deadline != "" {
		return errors.New("--deadline with several nodes requires --all-at-once, as the last nodes would have no time left")
	}
	return checkRolloutName(o.Name)
}

// drainRollout creates a rollout that drains the nodes a few at a time, and follows it.
func (o *drainOptions) drainRollout(ctx context.Context) error {
	request := &rolloutRequest{
		rolloutOptions: rolloutOptions{IOStreams: o.IOStreams, connection: o.connection, output: o.output, reached: o.reached, clock: o.clock},
		dryRun:         o.dryRun, Name: o.Name, prefix: "drain",
	}
	// The order of the arguments does not matter: the rollout has one of its own.
	slices.Sort(o.Names)
	cluster, err := nodes(ctx, o.reached)
	if err != nil {
		return err
	}
	picked, err := pick(&o.choice, cluster)
	if err != nil {
		return err
	}
	spec, err := o.rolloutSpec()
	if err != nil {
		return err
	}
	if err := o.warnLoss(ctx, picked); err != nil {
		return err
	}
	r := request.object(spec, o.Selector)
	if err := request.create(ctx, r, picked); err != nil {
		return err
	}
	o.warnWaits(picked, r.Name)
	err = request.showRollout(o.Out, r, func(to io.Writer) error { return o.printDrains(to, r, picked) })
	if err != nil || !o.Wait || o.dryRun.Mode != dryRunNone {
		return err
	}
	return request.follow(ctx, r.Name, o.Timeout)
}

// rolloutSpec returns the spec of a rollout that drains nodes as kubectl drain does: those of the control
// plane too, without a time limit, and they stay drained.
func (o *drainOptions) rolloutSpec() (spec v1alpha1.NodeRolloutSpec, err error) {
	if spec.NodeSelector, err = o.selector(); err != nil {
		return spec, err
	}
	if spec.MaxUnavailable, err = amount("max", o.Max); err != nil {
		return spec, err
	}
	of := v1alpha1.NodeMaintenanceSpec{}
	if err := o.apply(&of, timeOf(o.clock)); err != nil {
		return spec, err
	}
	spec.After, spec.ControlPlane = v1alpha1.AfterStayDrained, v1alpha1.ControlPlaneLast
	spec.Failure.DrainTimeoutSeconds = new(int32)
	spec.Maintenance = v1alpha1.RolloutMaintenance{Reason: o.Reason, DrainDepth: of.DrainDepth, InPlace: of.InPlace}
	return spec, nil
}

// warnWaits warns of nodes that wait for other maintenances, and of those that may join.
func (o *drainOptions) warnWaits(picked []*metav1.PartialObjectMetadata, rollout string) {
	var held []string
	for _, node := range picked {
		// The names of its own begin with that of the rollout.
		if slices.ContainsFunc(holdersOf(node), func(holder string) bool { return !strings.HasPrefix(holder, rollout+"-") }) {
			held = append(held, node.Name)
		}
	}
	if len(held) > 0 {
		o.warn(fmt.Sprintf("held by other NodeMaintenances, and drained when these are complete: %s. See which with\n  %s", someOf(held), o.command("rollout status %s", rollout)))
	}
	if len(o.Names) == 0 {
		o.warn(fmt.Sprintf("nodes that get the labels %s later join until all are drained", o.labels))
	}
}

// printDrains prints which nodes are drained, and how to watch that.
func (o *drainOptions) printDrains(to io.Writer, r *v1alpha1.NodeRollout, picked []*metav1.PartialObjectMetadata) error {
	_, err := fmt.Fprintf(to, "NodeRollout %s drains %s, at most %s at a time: %s%s\n", r.Name, phrase.Count(len(picked), "node"), maxOf(r), someOf(namesOf(picked)), o.suffix())
	if err != nil || o.Wait || o.dryRun.Mode != dryRunNone {
		return err
	}
	_, err = fmt.Fprintf(to, "Watch it with\n  %s\nReturn the nodes to service with\n  %s\n", o.command("rollout watch %s", r.Name), o.command("complete noderollout/%s", r.Name))
	return err
}
