package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

func newRollout(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "rollout",
		SuggestFor: []string{"fleet", "patch", "upgrade", "reboot"},
		Short:      "Maintain many nodes, a few at a time",
		Long: `Maintain many nodes, a few at a time.

A NodeRollout creates one NodeMaintenance for each node, follows it until the
node is back, and stops when too many nodes fail. It continues without this
command.`,
	}
	cmd.AddCommand(newRolloutStart(streams), newRolloutPlan(streams), newRolloutStatus(streams), newRolloutList(streams), newRolloutWatch(streams))
	cmd.AddCommand(newRolloutStates(streams)...)
	cmd.AddCommand(newRolloutRetry(streams), newRolloutSkip(streams))
	return cmd
}

// rolloutOptions are the options that all verbs of rollouts have.
type rolloutOptions struct {
	genericiooptions.IOStreams
	connection
	output

	reached client.WithWatch
	clock   *clock
}

func (o *rolloutOptions) addFlags(cmd *cobra.Command, formats ...string) {
	o.output.addFlag(cmd, formats...)
	o.connection.addFlags(cmd)
	// Nodes have no namespace.
	cmd.Flags().Lookup("namespace").Hidden = true
}

func (o *rolloutOptions) open() (err error) {
	o.reached, o.clock, _, err = o.reach(o.ErrOut)
	return err
}

// warn prints lines to standard error.
func (o *rolloutOptions) warn(lines ...string) {
	for _, line := range lines {
		fmt.Fprintln(o.ErrOut, line)
	}
}

var rolloutKind = v1alpha1.SchemeGroupVersion.WithKind("NodeRollout")

// rolloutOf reads a rollout. If it does not exist, the error suggests similar names.
func (c *connection) rolloutOf(ctx context.Context, reached client.Client, name string) (*v1alpha1.NodeRollout, error) {
	r := &v1alpha1.NodeRollout{}
	err := reached.Get(ctx, client.ObjectKey{Name: name}, r)
	r.SetGroupVersionKind(rolloutKind)
	switch {
	case err == nil:
		return r, nil
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("get noderollout %s: %w", name, err)
	}
	known, err := metadataList(ctx, reached, rolloutKind)
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%w. List them with\n  %s", notFound("NodeRollout", []string{name}, namesOf(known)), c.command("rollout list"))
}

// rollouts lists all rollouts.
func rollouts(ctx context.Context, reached client.Client) ([]*v1alpha1.NodeRollout, error) {
	all, err := pages(ctx, reached, &v1alpha1.NodeRolloutList{}, whole[*v1alpha1.NodeRollout])
	if err != nil {
		return nil, fmt.Errorf("list noderollouts: %w", err)
	}
	return all, nil
}

// oneRollout reads the name of the only rollout of the arguments.
func oneRollout(args []string) (string, error) {
	s, err := oneSubject(args, kindAny, kindRollout)
	return s.name, err
}

// showRollout prints a rollout as -o specifies, otherwise what text prints.
func (o *output) showRollout(to io.Writer, r *v1alpha1.NodeRollout, text func(io.Writer) error) error {
	shown, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r)
	if err != nil {
		return err
	}
	unstructured.RemoveNestedField(shown, "metadata", "managedFields")
	if equality.Semantic.DeepEqual(r.Status, v1alpha1.NodeRolloutStatus{}) {
		delete(shown, "status")
	}
	return o.print(to, shown, rolloutName(r.Name), text)
}

// rolloutName returns the name of a rollout for -o name.
func rolloutName(name string) string {
	return "noderollout." + v1alpha1.SchemeGroupVersion.Group + "/" + name
}
