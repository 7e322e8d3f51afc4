package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/view"
)

// usualNamespace is the namespace in which the README installs Ebbtide.
const usualNamespace = "ebbtide-system"

type agentsOptions struct {
	genericiooptions.IOStreams
	connection
	Nodes []string
}

func newAgents(streams genericiooptions.IOStreams) *cobra.Command {
	o := &agentsOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "agents [NODE...]",
		Short: "List node agents and the static pods that they manage",
		Long: `List node agents and the static pods that they manage.

Each line is the agent of a node. RUNNING static pods can be taken down, HELD
ones are away or leaving, and LEFT ones stay. Name a node to see its pods.

An agent answers if its pod is ready or, if it is a unit of the host, if it
renews its Lease. Use --namespace if Ebbtide is not in ` + usualNamespace + `.
Requires the verb list on nodeagents, and on pods and Leases in that namespace.`,
		Example: `  # List the agents
  kubectl ebbtide agents

  # Show the static pods of a node
  kubectl ebbtide agents node-7`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Nodes = args
			return o.Run(cmd.Context())
		},
	}
	o.addFlags(cmd)
	cmd.ValidArgsFunction = o.suggest(suggestNodes)
	return cmd
}

// Run prints the agents, and the static pods of named ones.
func (o *agentsOptions) Run(ctx context.Context) error {
	reached, clock, _, err := o.reach(io.Discard)
	if err != nil {
		return err
	}
	agents, err := o.agents(ctx, reached)
	if err != nil {
		return err
	}
	if len(agents) == 0 {
		fmt.Fprintln(o.ErrOut, "No node has an agent. Install them with the chart value agent.enabled=true; see docs/static-pods.md")
		return nil
	}
	now := timeOf(clock)
	signs := o.signs(ctx, reached, agents)
	signs.Now = now
	o.reportUnread("pods", signs.PodNamespace, signs.PodsUnread)
	o.reportUnread("leases", signs.Namespace, signs.LeasesUnread)
	shown := make([]view.Agent, len(agents))
	for i := range agents {
		shown[i] = view.AgentOf(agents[i], signs)
	}
	if err := printAgents(o.Out, shown, now); err != nil || len(o.Nodes) == 0 {
		return err
	}
	return printStaticPods(o.Out, shown, now)
}

// agents lists the named agents, or all.
func (o *agentsOptions) agents(ctx context.Context, reached client.Client) ([]*v1alpha1.NodeAgent, error) {
	all, err := pages(ctx, reached, &v1alpha1.NodeAgentList{}, whole[*v1alpha1.NodeAgent])
	if err != nil {
		return nil, fmt.Errorf("list nodeagents: %w", err)
	}
	if len(o.Nodes) == 0 {
		return all, nil
	}
	named := slices.DeleteFunc(all, func(a *v1alpha1.NodeAgent) bool { return !slices.Contains(o.Nodes, a.Name) })
	for _, node := range o.Nodes {
		if !slices.ContainsFunc(named, func(a *v1alpha1.NodeAgent) bool { return a.Name == node }) {
			return nil, fmt.Errorf("node %q has no agent. List the agents with\n  %s", node, o.command("agents"))
		}
	}
	return named, nil
}

func (o *agentsOptions) reportUnread(kind, namespace string, err error) {
	if err != nil {
		fmt.Fprintf(o.ErrOut, "Cannot determine whether the agents answer: list %s in namespace %s: %v\n", kind, namespace, err)
	}
}

// signs reads the heartbeats that these agents give.
func (o *agentsOptions) signs(ctx context.Context, reached client.Client, agents []*v1alpha1.NodeAgent) view.AgentSigns {
	signs := view.AgentSigns{Namespace: o.ebbtide()}
	unit := func(a *v1alpha1.NodeAgent) bool { return a.Status.PodName == "" }
	if slices.ContainsFunc(agents, unit) {
		signs.Leases, signs.LeasesUnread = byName[*coordinationv1.Lease](ctx, reached, &coordinationv1.LeaseList{}, signs.Namespace)
	}
	if signs.PodNamespace = podNamespace(agents, signs.Namespace); signs.PodNamespace != "" {
		signs.Pods, signs.PodsUnread = byName[*corev1.Pod](ctx, reached, &corev1.PodList{}, signs.PodNamespace)
	}
	return signs
}

// podNamespace returns the namespace in which most agents have their pods, so that one node
// cannot redirect the reads; empty if none has one.
func podNamespace(agents []*v1alpha1.NodeAgent, own string) string {
	most, counts := "", map[string]int{}
	for _, agent := range agents {
		namespace := maintenance.AgentPod(agent, own).Namespace
		if namespace == "" {
			continue
		}
		if counts[namespace]++; counts[namespace] > counts[most] {
			most = namespace
		}
	}
	return most
}

// byName reads the objects of a namespace.
func byName[P listable](ctx context.Context, reached client.Client, list client.ObjectList, namespace string) (map[string]P, error) {
	all, err := pages(ctx, reached, list, whole[P], client.InNamespace(namespace))
	named := make(map[string]P, len(all))
	for _, one := range all {
		named[one.GetName()] = one
	}
	return named, err
}

func printAgents(to io.Writer, agents []view.Agent, now time.Time) error {
	p := &printer{to: to}
	var rows [][]string
	var notes []string
	for _, a := range agents {
		rows = append(rows, []string{
			a.Node, a.Answers, fmt.Sprint(a.Held), fmt.Sprint(a.Running), fmt.Sprint(a.Left), a.Shutdown, a.Mode, duration.HumanDuration(now.Sub(a.Since)),
		})
		notes = append(notes, a.Notes...)
	}
	p.table("NODE\tANSWERS\tHELD\tRUNNING\tLEFT\tSHUTDOWN\tMODE\tAGE", rows)
	for _, note := range notes {
		p.line("%s", note)
	}
	return p.err
}

func printStaticPods(to io.Writer, agents []view.Agent, now time.Time) error {
	p := &printer{to: to}
	p.line("")
	var rows [][]string
	for _, a := range agents {
		for _, pod := range a.Pods {
			since := "-"
			if !pod.Since.IsZero() {
				since = duration.HumanDuration(now.Sub(pod.Since))
			}
			rows = append(rows, []string{pod.Name, pod.State, since, dash(pod.Maintenance), dash(pod.Message)})
		}
	}
	p.table("STATIC POD\tSTATE\tSINCE\tMAINTENANCE\tMESSAGE", rows)
	return p.err
}
