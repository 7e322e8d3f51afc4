package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/placement"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/core/preflight"
	"ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/internal/kube"
)

type planOptions struct {
	genericiooptions.IOStreams
	connection
	choice
	output
	drainSpec
}

func newPlan(streams genericiooptions.IOStreams) *cobra.Command {
	o := &planOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "plan NODE... | -l LABELS",
		Short: "Preview a drain without changing anything",
		Long: `Preview a drain without changing anything.

For each pod the preview shows its wave, the action and where its replacement
would run; then the pods that would not leave and why, the PodDisruptionBudgets,
lost data and replacements that fit nowhere. For many nodes it shows only
problems, and all details with -o wide. Replacements are an estimate; -o wide
lists what it ignores.

The command works without Ebbtide. The exit code is 0 if everything leaves, and
2 if something would not, might not or is unknown, or a node would wait.

Requires the verb list on nodes. The preview names what it cannot read. Use
--namespace if Ebbtide is not in ` + usualNamespace + `.`,
		Example: `  # Preview the drain of a node
  kubectl ebbtide plan node-7

  # Preview the reboot of a pool, where pods can opt in to stay
  kubectl ebbtide plan -l pool=a --in-place 5m -o wide`,
		RunE: runs(o),
	}
	o.choice.addFlags(cmd, false, &o.connection)
	o.drainSpec.addFlags(cmd)
	o.output.addFlag(cmd, formatJSON, formatYAML, formatWide, formatName)
	o.connection.addFlags(cmd)
	cmd.ValidArgsFunction = o.suggest(suggestNodes)
	return cmd
}

// Complete reads the arguments.
func (o *planOptions) Complete(args []string) error {
	subjects, err := subjectsOf(args, kindAny, kindNode)
	if err != nil {
		return err
	}
	return o.choice.complete(subjects)
}

// Validate rejects invalid flags.
func (o *planOptions) Validate() error {
	if err := o.drainSpec.validate(); err != nil {
		return err
	}
	return o.output.check()
}

// Run prints the forecast.
func (o *planOptions) Run(ctx context.Context) error {
	reached, clock, _, err := o.reach(io.Discard)
	if err != nil {
		return err
	}
	s := &survey{reached: reached, ebbtide: o.ebbtide()}
	if s.nodes, err = pages(ctx, reached, &corev1.NodeList{}, kube.SlimNode); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	picked, err := pick(&o.choice, s.nodes)
	if err != nil {
		return err
	}
	if err := s.read(ctx, s.everything()...); err != nil {
		return err
	}
	snapshot := s.snapshot(timeOf(clock))
	if snapshot.Maintenance, err = o.maintenance(picked, snapshot.World.Now); err != nil {
		return err
	}
	snapshot.Waits = rollout.Waiting(rollout.Snapshot{
		Now: snapshot.World.Now, Nodes: s.nodes, Maintenances: s.maintenances, Budgets: s.nodeBudgets,
	}, snapshot.Maintenance)
	forecast := preflight.Of(snapshot)
	err = o.print(o.Out, forecast, podNames(&forecast), func(to io.Writer) error {
		return printForecast(to, &forecast, textStyle{wide: o.isWide(), terminal: terminalOf(o.Out)})
	})
	leaves := forecast.Outcome == preflight.OutcomeLeaves || forecast.Outcome == preflight.OutcomeCompletes
	if err != nil || leaves && len(snapshot.Waits) == 0 {
		return err
	}
	return ended{code: codeNotDone}
}

// maintenance returns the one that a drain would create.
func (o *planOptions) maintenance(picked []*corev1.Node, now time.Time) (m *v1alpha1.NodeMaintenance, err error) {
	m = &v1alpha1.NodeMaintenance{Spec: v1alpha1.NodeMaintenanceSpec{Stage: v1alpha1.StageDrain, NodeSelector: nodesNamed(namesOf(picked))}}
	return m, o.apply(&m.Spec, now)
}

// snapshot returns the input of a forecast.
func (s *survey) snapshot(now time.Time) preflight.Snapshot {
	world := maintenance.Snapshot{
		Now: now, Maintenances: s.maintenances, Nodes: s.nodes,
		Pods: map[string][]maintenance.Pod{}, Budgets: map[string][]*policyv1.PodDisruptionBudget{}, DrainRecords: map[string]*v1alpha1.DrainRecord{},
		Runners: maintenance.Runners{DaemonSets: true, Agents: s.agentsAt(now)},
	}
	var unscheduled []*corev1.Pod
	if s.whyUnread("Pod") == "" {
		world.Pods, unscheduled = s.podsByNode()
	}
	for _, b := range s.budgets {
		world.Budgets[b.Namespace] = append(world.Budgets[b.Namespace], b)
	}
	for _, r := range s.records {
		world.DrainRecords[r.Name] = r
	}
	world.Rules, world.Facts = s.drainRules()
	return preflight.Snapshot{
		World: world, Unscheduled: unscheduled, Ignores: placement.Ignores, Unread: s.unread,
		Owners: preflight.Owners{
			Deployments: s.deployments, ReplicaSets: s.replicaSets, StatefulSets: s.statefulSets, Jobs: s.jobs, Claims: s.claims, Volumes: s.volumes,
		},
		Place: func() preflight.Placer { return placement.New(s.placement()) },
	}
}

func (s *survey) placement() placement.World {
	return placement.World{
		Nodes: s.nodes, Pods: s.pods, Claims: s.claims, Volumes: s.volumes, Classes: s.classes, Namespaces: s.namespaces,
		Unread: placement.Unread{
			Claims: s.whyUnread("PersistentVolumeClaim"), Volumes: s.whyUnread("PersistentVolume"),
			Classes: s.whyUnread("StorageClass"), Namespaces: s.whyUnread("Namespace"),
		},
	}
}

func (s *survey) podsByNode() (pods map[string][]maintenance.Pod, unscheduled []*corev1.Pod) {
	asked := make(map[types.UID]*v1alpha1.Evacuation, len(s.evacuations))
	for _, e := range s.evacuations {
		asked[e.Spec.PodRef.UID] = e
	}
	pods = make(map[string][]maintenance.Pod, len(s.nodes))
	for _, node := range s.nodes {
		pods[node.Name] = []maintenance.Pod{}
	}
	for _, pod := range s.pods {
		if pod.Spec.NodeName == "" {
			unscheduled = append(unscheduled, pod)
			continue
		}
		pods[pod.Spec.NodeName] = append(pods[pod.Spec.NodeName], maintenance.Pod{Object: pod, Evacuation: asked[pod.UID]})
	}
	return pods, unscheduled
}

// drainRules returns the rules and the facts that they select on.
func (s *survey) drainRules() (drainrule.Set, drainrule.Facts) {
	if why := s.whyUnread("MachineDrainRule"); why != "" {
		return drainrule.Unread(s.ebbtide, why), drainrule.Facts{}
	}
	facts := drainrule.Facts{Namespaces: map[string]map[string]string{}, NamespaceErrors: map[string]string{}}
	for _, namespace := range s.namespaces {
		facts.Namespaces[namespace.Name] = namespace.Labels
	}
	if why := s.whyUnread("Namespace"); why != "" {
		for _, pod := range s.pods {
			facts.NamespaceErrors[pod.Namespace] = why
		}
	}
	return drainrule.Compile(s.rules), facts
}

// agentsAt returns the agents; one without a current heartbeat is silent.
func (s *survey) agentsAt(now time.Time) map[string]maintenance.Agent {
	running := map[types.NamespacedName]bool{}
	for _, pod := range s.pods {
		if podclass.Ready(pod) && pod.DeletionTimestamp == nil {
			running[client.ObjectKeyFromObject(pod)] = true
		}
	}
	renewed := map[string]bool{}
	for _, lease := range s.leases {
		node := strings.TrimPrefix(lease.Name, maintenance.AgentLease(""))
		renewed[node], _ = maintenance.AgentRuns(lease, node, now)
	}
	all := make(map[string]maintenance.Agent, len(s.agents))
	for _, object := range s.agents {
		agent := maintenance.AgentOf(object)
		pod := maintenance.AgentPod(object, s.ebbtide)
		if unit := pod.Name == ""; unit && !renewed[object.Name] || !unit && !running[pod] {
			agent.SilentSince = now
		}
		all[object.Name] = agent
	}
	return all
}
