package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// rolloutNodes changes what a rollout does with single nodes.
type rolloutNodes struct {
	rolloutOptions
	dryRun

	// name is the rollout that was given, or empty; the first of names may be one.
	name  string
	names []string
	// isRetry tries nodes again; otherwise they are skipped.
	isRetry bool
}

func newRolloutRetry(streams genericiooptions.IOStreams) *cobra.Command {
	o := &rolloutNodes{rolloutOptions: rolloutOptions{IOStreams: streams}, isRetry: true}
	return o.verb(&cobra.Command{
		Use:        "retry [NAME] NODE...",
		SuggestFor: []string{"repeat", "again", "rerun"},
		Short:      "Try nodes again that failed in a rollout, or were skipped",
		Long: `Try nodes again that failed in a rollout, or were skipped.

Their failures no longer count, so that a rollout that stopped goes on. NAME is
the NodeRollout; without it, the only one in progress that selects the nodes.

Requires the verbs list, get and patch on noderollouts, list on nodes and
nodemaintenances, and delete on the nodes.`,
		Example: `  # Try a node again
  kubectl ebbtide rollout retry kernel-update node-7`,
	})
}

func newRolloutSkip(streams genericiooptions.IOStreams) *cobra.Command {
	o := &rolloutNodes{rolloutOptions: rolloutOptions{IOStreams: streams}}
	return o.verb(&cobra.Command{
		Use:        "skip [NAME] NODE...",
		SuggestFor: []string{"exclude", "ignore", "omit"},
		Short:      "Leave nodes out of a rollout",
		Long: `Leave nodes out of a rollout.

A node that failed no longer counts as a failure. A maintenance that has started
continues. "retry" takes a node in again. NAME is the NodeRollout; without it,
the only one in progress that selects the nodes.

Requires the verbs list, get and patch on noderollouts, list on nodes, and
delete on the nodes.`,
		Example: `  # Leave a node out
  kubectl ebbtide rollout skip kernel-update node-7`,
	})
}

func (o *rolloutNodes) verb(cmd *cobra.Command) *cobra.Command {
	cmd.RunE = runs(o)
	o.dryRun.addFlag(cmd)
	o.rolloutOptions.addFlags(cmd, formatJSON, formatYAML, formatName)
	ofRollouts, ofNodes := o.suggest(suggestRollouts), o.suggest(suggestNodes)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, written string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return ofRollouts(cmd, args, written)
		}
		return ofNodes(cmd, args, written)
	}
	return cmd
}

// Complete reads the arguments.
func (o *rolloutNodes) Complete(args []string) error {
	subjects, err := subjectsOf(args, kindAny, kindNode, kindRollout)
	if err != nil {
		return err
	}
	for i, s := range subjects {
		switch {
		case s.kind == kindRollout && i > 0:
			return errors.New("specify one NodeRollout before the nodes")
		case s.kind == kindRollout:
			o.name = s.name
		case !slices.Contains(o.names, s.name):
			o.names = append(o.names, s.name)
		}
	}
	if len(o.names) == 0 {
		return errors.New("specify a NodeRollout and nodes")
	}
	return nil
}

// Validate rejects invalid flags.
func (o *rolloutNodes) Validate() error {
	if err := o.dryRun.check(); err != nil {
		return err
	}
	return o.output.check()
}

// Run changes the nodes.
func (o *rolloutNodes) Run(ctx context.Context) error {
	if err := o.open(); err != nil {
		return err
	}
	r, err := o.rollout(ctx)
	if err != nil {
		return err
	}
	attempts := map[string]int32{}
	if o.isRetry {
		if attempts, err = o.attempts(ctx, r); err != nil {
			return err
		}
	}
	if err := o.write(ctx, r, attempts); err != nil {
		return err
	}
	return o.showRollout(o.Out, r, func(to io.Writer) error {
		words := "skips"
		if o.isRetry {
			words = "retries"
		}
		_, err := fmt.Fprintf(to, "NodeRollout %s %s %s%s\n", r.Name, words, someOf(o.names), o.suffix())
		return err
	})
}

// rollout returns the given rollout, or the only one that selects the nodes and can be changed. The
// first of several names is a rollout if there is one.
func (o *rolloutNodes) rollout(ctx context.Context) (*v1alpha1.NodeRollout, error) {
	all, err := rollouts(ctx, o.reached)
	if err != nil {
		return nil, err
	}
	if first := o.names[0]; o.name == "" && len(o.names) > 1 && slices.Contains(namesOf(all), first) {
		o.name, o.names = first, o.names[1:]
	}
	cluster, err := nodes(ctx, o.reached)
	if err != nil {
		return nil, err
	}
	picked, err := named(o.names, cluster)
	if err != nil {
		return nil, err
	}
	if o.name != "" {
		r, err := o.rolloutOf(ctx, o.reached, o.name)
		switch {
		case err == nil && r.Spec.State == v1alpha1.RolloutAborted:
			return nil, fmt.Errorf("NodeRollout %s was aborted, which is final. Start another one with\n  %s", r.Name, o.command("rollout start NODE..."))
		case err == nil && !selectsAll(r, picked):
			return nil, fmt.Errorf("NodeRollout %s does not select all of %s", r.Name, someOf(o.names))
		}
		return r, err
	}
	found := slices.DeleteFunc(all, func(r *v1alpha1.NodeRollout) bool { return !isChangeable(r) || !selectsAll(r, picked) })
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("no NodeRollout in progress selects %s. List all with\n  %s", someOf(o.names), o.command("rollout list"))
	case 1:
		found[0].SetGroupVersionKind(rolloutKind)
		return found[0], nil
	}
	return nil, fmt.Errorf("several NodeRollouts select %s: %s. Name one of them before the nodes", someOf(o.names), someOf(namesOf(found)))
}

// isChangeable reports whether a change of nodes has an effect: on a rollout in progress, or one that
// ended with failures or without skipped nodes.
func isChangeable(r *v1alpha1.NodeRollout) bool {
	return r.DeletionTimestamp == nil && r.Spec.State != v1alpha1.RolloutAborted && (!isComplete(r) || r.Status.FailedCount+r.Status.SkippedCount > 0)
}

// selectsAll reports whether a rollout selects all of the nodes.
func selectsAll(r *v1alpha1.NodeRollout, picked []*metav1.PartialObjectMetadata) bool {
	all := make([]*corev1.Node, len(picked))
	for i := range picked {
		all[i] = &corev1.Node{ObjectMeta: picked[i].ObjectMeta}
	}
	// An invalid selector selects none.
	matching, _ := maintenance.Matching(&v1alpha1.NodeMaintenanceSpec{NodeSelector: r.Spec.NodeSelector}, all)
	return len(matching) == len(picked)
}

// attempts returns how many attempts the nodes have had.
//
// Errors: a node has neither failed nor was it skipped.
func (o *rolloutNodes) attempts(ctx context.Context, r *v1alpha1.NodeRollout) (map[string]int32, error) {
	attempts := map[string]int32{}
	for i := range r.Status.Failed {
		attempts[r.Status.Failed[i].Name] = r.Status.Failed[i].AttemptCount
	}
	if int(r.Status.FailedCount) > len(r.Status.Failed) {
		if err := o.recordedAttempts(ctx, r, attempts); err != nil {
			return nil, err
		}
	}
	var wrong []string
	for _, name := range o.names {
		at := decisionOn(r, name)
		if skipped := at >= 0 && r.Spec.Nodes[at].Skip; attempts[name] == 0 && !skipped {
			wrong = append(wrong, name)
		}
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("%s has neither failed nor was it skipped in NodeRollout %s. See its progress with\n  %s",
			someOf(wrong), r.Name, o.command("rollout status %s", r.Name))
	}
	return attempts, nil
}

// recordedAttempts reads the attempts of failed nodes that the status does not list.
func (o *rolloutNodes) recordedAttempts(ctx context.Context, r *v1alpha1.NodeRollout, attempts map[string]int32) error {
	all, err := pages(ctx, o.reached, &v1alpha1.NodeMaintenanceList{}, whole[*v1alpha1.NodeMaintenance], client.MatchingLabels{v1alpha1.RolloutLabel: r.Name})
	if err != nil {
		return fmt.Errorf("list nodemaintenances of NodeRollout %s: %w", r.Name, err)
	}
	for _, m := range all {
		record := struct {
			Attempt int32 `json:"attempt"`
		}{}
		if json.Unmarshal([]byte(m.Annotations[v1alpha1.RolloutAttemptAnnotation]), &record) != nil {
			continue
		}
		for _, name := range maintenance.NamedNodes(m.Spec.NodeSelector) {
			attempts[name] = max(attempts[name], record.Attempt)
		}
	}
	return nil
}

// decisionOn returns the index of a node in spec.nodes, or -1.
func decisionOn(r *v1alpha1.NodeRollout, node string) int {
	return slices.IndexFunc(r.Spec.Nodes, func(n v1alpha1.RolloutNodeSpec) bool { return n.Name == node })
}

// write changes spec.nodes. After a conflict it tries again.
func (o *rolloutNodes) write(ctx context.Context, r *v1alpha1.NodeRollout, attempts map[string]int32) error {
	settled, stop := settle(ctx)
	defer stop()
	read := true
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if !read {
			now := &v1alpha1.NodeRollout{}
			if err := o.reached.Get(settled, client.ObjectKeyFromObject(r), now); err != nil {
				return err
			}
			*r = *now
		}
		before := r.DeepCopy()
		o.decide(r, attempts)
		if read = false; o.dryRun.Mode == dryRunClient {
			return nil
		}
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		return o.reached.Patch(settled, r, patch, &client.PatchOptions{DryRun: o.dryRun.options(), FieldManager: fieldManager})
	})
	r.SetGroupVersionKind(rolloutKind)
	if isUncertain(err) {
		return final(fmt.Errorf("unknown whether NodeRollout %s was changed: %w. Check with\n  %s", r.Name, cause(err), o.command("rollout status %s", r.Name)))
	}
	return err
}

// decide writes the decisions about the nodes into the spec.
func (o *rolloutNodes) decide(r *v1alpha1.NodeRollout, attempts map[string]int32) {
	for _, name := range o.names {
		at := decisionOn(r, name)
		if at < 0 {
			r.Spec.Nodes = append(r.Spec.Nodes, v1alpha1.RolloutNodeSpec{Name: name})
			at = len(r.Spec.Nodes) - 1
		}
		one := &r.Spec.Nodes[at]
		if one.Skip = !o.isRetry; o.isRetry {
			one.ForgivenAttemptCount = max(one.ForgivenAttemptCount, attempts[name])
		}
	}
}
