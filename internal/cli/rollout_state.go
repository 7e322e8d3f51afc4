package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// rolloutState sets the state of a rollout.
type rolloutState struct {
	rolloutOptions
	dryRun

	name   string
	change *stateChange
}

// stateChange is a verb that sets the state of a rollout.
type stateChange struct {
	use, short, long, example string
	similar                   []string
	// state is the new state; empty approves.
	state v1alpha1.RolloutState
	// words follow the name of the rollout in the result.
	words string
}

var stateChanges = []stateChange{
	{
		use: "pause", short: "Start no more nodes of a rollout", state: v1alpha1.RolloutPaused, similar: []string{"stop", "suspend", "hold"},
		long: `Start no more nodes of a rollout.

Nodes under maintenance continue: a half drained node serves nobody. "resume"
continues the rollout.

Requires the verbs get and patch on noderollouts.`,
		example: `  # Start no more nodes of a rollout
  kubectl ebbtide rollout pause kernel-update`,
		words: "is paused: no more nodes start, and nodes under maintenance continue",
	},
	{
		use: "resume", short: "Continue a paused rollout", state: v1alpha1.RolloutRunning, similar: []string{"continue", "unpause"},
		long: `Continue a paused rollout.

Requires the verbs get and patch on noderollouts, and delete on the nodes.`,
		example: `  # Continue a paused rollout
  kubectl ebbtide rollout resume kernel-update`,
		words: "continues",
	},
	{
		use: "abort", short: "End a rollout, and give back nodes that are not drained", state: v1alpha1.RolloutAborted, similar: []string{"cancel", "undo", "end"},
		long: `End a rollout, and give back nodes that are not drained.

This is final. Nodes that are drained stay so, as you may work on them. Complete
them with "complete noderollout/NAME".

Requires the verbs get and patch on noderollouts.`,
		example: `  # End a rollout, and give back nodes that are not drained
  kubectl ebbtide rollout abort kernel-update`,
		words: "is aborted: nodes that are not drained are given back, and drained ones stay so",
	},
	{
		use: "approve", short: "Continue a rollout after its canary nodes", similar: []string{"confirm", "promote", "accept"},
		long: `Continue a rollout after its canary nodes.

A rollout started with --canary-approval starts no other nodes before that.

Requires the verbs get, patch and approve on noderollouts, and delete on the
nodes.`,
		example: `  # Continue a rollout after its canary nodes
  kubectl ebbtide rollout approve kernel-update`,
		words: "is approved: other nodes start when the canary nodes are done",
	},
}

func newRolloutStates(streams genericiooptions.IOStreams) (verbs []*cobra.Command) {
	for i := range stateChanges {
		o := &rolloutState{rolloutOptions: rolloutOptions{IOStreams: streams}, change: &stateChanges[i]}
		cmd := &cobra.Command{
			Use: o.change.use + " NAME", SuggestFor: o.change.similar, Short: o.change.short, Long: o.change.long,
			Example: o.change.example, RunE: runs(o),
		}
		o.dryRun.addFlag(cmd)
		o.rolloutOptions.addFlags(cmd, formatJSON, formatYAML, formatName)
		cmd.ValidArgsFunction = o.suggest(suggestRollouts)
		verbs = append(verbs, cmd)
	}
	return verbs
}

// Complete reads the arguments.
func (o *rolloutState) Complete(args []string) (err error) {
	o.name, err = oneRollout(args)
	return err
}

// Validate rejects invalid flags.
func (o *rolloutState) Validate() error {
	if err := o.dryRun.check(); err != nil {
		return err
	}
	return o.output.check()
}

// Run sets the state.
func (o *rolloutState) Run(ctx context.Context) error {
	if err := o.open(); err != nil {
		return err
	}
	r, err := o.rolloutOf(ctx, o.reached, o.name)
	if err != nil {
		return err
	}
	if err := o.write(ctx, r); err != nil {
		return err
	}
	return o.showRollout(o.Out, r, func(to io.Writer) error {
		words := fmt.Sprintf("NodeRollout %s %s%s\n", r.Name, o.change.words, o.suffix())
		if o.change.state == v1alpha1.RolloutAborted {
			words += "Return drained nodes to service with\n  " + o.command("complete noderollout/%s", r.Name) + "\n"
		}
		_, err := io.WriteString(to, words)
		return err
	})
}

// write sets the state, or approves.
//
// Errors: a rollout needs no approval, or was aborted.
func (o *rolloutState) write(ctx context.Context, r *v1alpha1.NodeRollout) error {
	needsNone := r.Spec.Canary == nil || r.Spec.Canary.Approved == nil
	switch {
	case o.change.state != "" && r.Spec.State == o.change.state:
		o.warn(fmt.Sprintf("NodeRollout %s is already in state %s", r.Name, r.Spec.State))
		return nil
	case o.change.state != "":
		return setRolloutState(ctx, o.reached, r, o.change.state, &o.dryRun)
	case needsNone:
		return fmt.Errorf("NodeRollout %s needs no approval. See its progress with\n  %s", r.Name, o.command("rollout status %s", r.Name))
	case *r.Spec.Canary.Approved:
		o.warn(fmt.Sprintf("NodeRollout %s is already approved", r.Name))
		return nil
	}
	r.Spec.Canary.Approved = new(true)
	return patchRollout(ctx, o.reached, r, map[string]any{"canary": map[string]any{"approved": true}}, &o.dryRun)
}

// setRolloutState patches the state without a resource version, as no other field depends on it.
func setRolloutState(ctx context.Context, reached client.Client, r *v1alpha1.NodeRollout, state v1alpha1.RolloutState, dry *dryRun) error {
	r.Spec.State = state
	return patchRollout(ctx, reached, r, map[string]any{"state": state}, dry)
}

// patchRollout patches the spec of a rollout that has been changed alike.
func patchRollout(ctx context.Context, reached client.Client, r *v1alpha1.NodeRollout, spec map[string]any, dry *dryRun) error {
	if dry.Mode == dryRunClient {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": r.UID}, "spec": spec})
	if err != nil {
		return err
	}
	settled, stop := settle(ctx)
	defer stop()
	err = reached.Patch(settled, r, client.RawPatch(types.MergePatchType, patch), &client.PatchOptions{DryRun: dry.options(), FieldManager: fieldManager})
	r.SetGroupVersionKind(rolloutKind)
	if isUncertain(err) {
		return final(fmt.Errorf("unknown whether NodeRollout %s was changed: %w", r.Name, cause(err)))
	}
	return err
}
