package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

type whyOptions struct {
	genericiooptions.IOStreams
	connection
	about question
}

func newWhy(streams genericiooptions.IOStreams) *cobra.Command {
	o := &whyOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "why POD|NODE|pdb/NAME|machine/NAME|nodemaintenance/NAME",
		Short: "Say why something does not leave or go on, and what helps",
		Long: `Say why something does not leave, or does not go on, and what helps.

  pod/NAME               who asks it to leave, who refuses, or why it stays
  node/NAME              who holds it, what is left on it, and who blocks
  pdb/NAME               what it allows now, who has locked it, who waits for it
  machine/NAME           the step of its deletion, and what that waits for
  nodemaintenance/NAME   what is in its way

A name alone is that of a pod, or else of a node. Nothing is written, and a
cluster without Ebbtide can be asked, too: what a drain would meet is told then.

You need the verb get on what you ask about, and to know more get on nodes,
evacuations, nodemaintenances, nodeagents and volumes with their claims and list
on nodes, pods, budgets, evacuations and nodeagents. What you may not read is
said, and the rest is told.`,
		Example: `  # What keeps a pod on its node?
  kubectl ebbtide why db-0 -n shop

  # Where has a static pod gone?
  kubectl ebbtide why pod/kube-proxy-node-7 -n kube-system

  # Why does a budget allow nothing?
  kubectl ebbtide why pdb/web -n shop`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.about, err = questionOf(args); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.addFlags(cmd)
	cmd.ValidArgsFunction = o.suggest(suggestPods, suggestNodes.under("node/"), suggestBudgets, suggestMaintenances.under("nodemaintenance/"))
	return cmd
}

// Run prints what is known.
func (o *whyOptions) Run(ctx context.Context) error {
	reached, clock, namespace, err := o.reach()
	if err != nil {
		return err
	}
	a := &asker{reached: reached, clock: clock}
	lines, err := a.ask(ctx, o.about, namespace)
	if err == nil {
		notes, _ := o.ofManager(ctx, reached, clock, o.about.ebbtide(&o.connection))
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

// question is what is asked about; a kind that is empty is a pod or a node.
type question struct{ kind, namespace, name string }

// ebbtide is Ebbtide's namespace. Where the question is about a namespace, that is not it.
func (q question) ebbtide(c *connection) string {
	if q.kind == kindNode || q.kind == kindMaintenance {
		return c.ebbtide()
	}
	return usualNamespace
}

// Kinds that can be asked about.
const (
	kindPod, kindNode, kindBudget         = "pod", "node", "pdb"
	kindMachine, kindMaintenance, kindAny = "machine", "nodemaintenance", ""
)

// kindOf is the kind that a word means.
func kindOf(word string) (kind string, known bool) {
	lower := strings.ToLower(word)
	switch {
	case slices.Contains([]string{"pod", "pods", "po"}, lower):
		return kindPod, true
	case isNodeKind(lower):
		return kindNode, true
	case isBudgetKind(lower):
		return kindBudget, true
	case slices.Contains([]string{"machine", "machines", "ema", "machine.ebbtide.dev", "machines.ebbtide.dev"}, lower):
		return kindMachine, true
	case isMaintenanceKind(lower):
		return kindMaintenance, true
	}
	return "", false
}

// questionOf takes NAME, KIND/NAME and KIND NAME, and KIND/NAMESPACE/NAME as other verbs
// print it.
func questionOf(args []string) (question, error) {
	if len(args) == 0 {
		return question{}, errors.New("name what you ask about: a pod, a node, pdb/NAME, machine/NAME or nodemaintenance/NAME")
	}
	words := slices.Concat(strings.Split(args[0], "/"), args[1:])
	kind, known := kindOf(words[0])
	switch {
	case !known && len(words) == 1:
		words = []string{kindAny, words[0]}
	case !known && len(args) == 1 && strings.Contains(args[0], "/"):
		return question{}, fmt.Errorf("%q is no kind that can be asked about: say pod/NAME, node/NAME, pdb/NAME, machine/NAME or nodemaintenance/NAME", excerpt.Line(words[0], maxSaid))
	case !known:
		return question{}, fmt.Errorf("one at a time, not also %s", excerpt.Line(strings.Join(args[1:], " "), maxSaid))
	case len(words) == 1 || words[1] == "":
		return question{}, fmt.Errorf("name a %s: %s/NAME", kind, kind)
	}
	q := question{kind: kind, name: words[1]}
	namespaced := kind != kindNode && kind != kindMaintenance
	if len(words) == 3 && namespaced && strings.Count(args[0], "/") == 2 {
		q.namespace, q.name = words[1], words[2]
	} else if len(words) > 2 {
		return question{}, fmt.Errorf("one at a time, not also %s", excerpt.Line(strings.Join(words[2:], " "), maxSaid))
	}
	if wrong := validation.IsDNS1123Subdomain(q.name); len(wrong) > 0 {
		return question{}, fmt.Errorf("%q is no name of a %s: %s", excerpt.Line(q.name, maxSaid), orPod(kind), wrong[0])
	}
	return q, nil
}

func orPod(kind string) string {
	if kind == kindAny {
		return "pod or node"
	}
	return kind
}

// ask answers in lines, given the namespace that is meant if none is named.
func (a *asker) ask(ctx context.Context, q question, namespace string) ([]string, error) {
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
	}
	lines, err := a.pod(ctx, key)
	var absent noPod
	if !errors.As(err, &absent) {
		return lines, err
	}
	lines, nodeErr := a.node(ctx, q.name)
	if apierrors.IsNotFound(nodeErr) {
		return nil, fmt.Errorf("there is neither a pod %s nor a node %s; choose another namespace with -n", key, q.name)
	}
	return lines, nodeErr
}
