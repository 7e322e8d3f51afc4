package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type whyOptions struct {
	genericiooptions.IOStreams
	connection
	about subject
}

func newWhy(streams genericiooptions.IOStreams) *cobra.Command {
	o := &whyOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:        "why POD|NODE|pdb/NAME|machine/NAME|nodemaintenance/NAME|noderollout/NAME",
		SuggestFor: []string{"explain", "events", "logs"},
		Short:      "Explain why a pod, node or maintenance makes no progress",
		Long: `Explain why a pod, node or maintenance makes no progress.

  pod/NAME               who wants it to leave, what refuses, or why it stays
  node/NAME              maintenances that hold it, rollouts, pods and blockers
  pdb/NAME               allowed disruptions, its lock, and who waits for it
  machine/NAME           the step of its deletion and what that waits for
  nodemaintenance/NAME   its blockers
  noderollout/NAME       why its nodes wait or failed, and what helps

A name without a kind is that of a pod, otherwise of a node. The command writes
nothing and works without Ebbtide; it then shows what a drain would meet.

Requires the verb get on the object. For details it also reads nodes, pods,
PodDisruptionBudgets, volumes, evacuations, nodemaintenances, noderollouts and
nodeagents, and names those that it cannot read.`,
		Example: `  # Explain what keeps a pod on its node
  kubectl ebbtide why db-0 -n shop

  # Find a static pod that was taken down
  kubectl ebbtide why pod/kube-proxy-node-7 -n kube-system

  # Explain why a budget allows no disruption
  kubectl ebbtide why pdb/web -n shop`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.about, err = oneSubject(args, kindAny, kindPod, kindNode, kindBudget, kindMachine, kindMaintenance, kindRollout); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.addFlags(cmd)
	cmd.ValidArgsFunction = o.suggest(suggestPods, suggestNodes.under("node/"), suggestBudgets, suggestMaintenances.under("nodemaintenance/"), suggestRollouts.under("noderollout/"))
	return cmd
}

// Run prints the explanation.
func (o *whyOptions) Run(ctx context.Context) error {
	reached, clock, namespace, err := o.reach(io.Discard)
	if err != nil {
		return err
	}
	a := &asker{reached: reached, clock: clock}
	lines, err := a.ask(ctx, o.about, namespace)
	if err == nil {
		notes, _ := o.managerNotes(ctx, reached, clock, o.about.ebbtide(&o.connection))
		a.notes = append(a.notes, notes...)
	}
	for _, note := range a.notes {
		fmt.Fprintln(o.ErrOut, note)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(o.Out, line); err != nil {
			return err
		}
	}
	return err
}

// ebbtide returns Ebbtide's namespace. --namespace is that of a namespaced subject.
func (s subject) ebbtide(c *connection) string {
	if s.kind == kindNode || s.kind == kindMaintenance || s.kind == kindRollout {
		return c.ebbtide()
	}
	return usualNamespace
}

// ask explains a subject in lines. The namespace is that of a subject that names none.
func (a *asker) ask(ctx context.Context, q subject, namespace string) ([]string, error) {
	if q.namespace != "" {
		namespace = q.namespace
	}
	key := client.ObjectKey{Namespace: namespace, Name: q.name}
	switch q.kind {
	case kindPod:
		return a.pod(ctx, key)
	case kindNode:
		return a.node(ctx, q.name)
	case kindBudget:
		return a.budget(ctx, key)
	case kindMachine:
		return a.machine(ctx, key)
	case kindMaintenance:
		return a.maintenance(ctx, q.name)
	case kindRollout:
		return a.rollout(ctx, q.name)
	}
	lines, err := a.pod(ctx, key)
	var absent noPod
	if !errors.As(err, &absent) {
		return lines, err
	}
	lines, nodeErr := a.node(ctx, q.name)
	if apierrors.IsNotFound(nodeErr) {
		return nil, fmt.Errorf("neither pod %q nor node %q found; use -n to choose another namespace", key, q.name)
	}
	return lines, nodeErr
}
