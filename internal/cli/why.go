package cli

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/view"
)

// maxHolders bounds the maintenances that are read: who may write a Node names them.
const maxHolders = 8

type whyOptions struct {
	genericiooptions.IOStreams
	connection
	key     client.ObjectKey
	reached client.Client
}

func newWhy(streams genericiooptions.IOStreams) *cobra.Command {
	o := &whyOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "why pod/NAME",
		Short: "Say why a pod does not leave its node, or is away from it",
		Long: `Say why a pod does not leave its node, or is away from it.

It tells who asks the pod to leave, who refuses and what helps; of a static pod,
also of one that is away, what the agent of its node says. Nothing is written.

You need the verb get on pods, nodes, evacuations, nodemaintenances and
nodeagents; for a static pod that is away, list on nodeagents. What you may not
read is said, and the rest is told.`,
		Example: `  # What keeps a pod on its node?
  kubectl ebbtide why pod/db-0 -n shop

  # Where has a static pod gone?
  kubectl ebbtide why pod/kube-proxy-node-7 -n kube-system`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.key.Name, err = onePod.name(args); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.addFlags(cmd)
	return cmd
}

var onePod = subject{
	is:  func(word string) bool { return slices.Contains([]string{"pod", "pods", "po"}, strings.ToLower(word)) },
	one: "pod", short: "pod", kind: "pod", other: "is no pod, and of nothing else is known why",
}

// Run prints what is known of the pod.
func (o *whyOptions) Run(ctx context.Context) (err error) {
	if o.reached, _, o.key.Namespace, err = o.reach(); err != nil {
		return err
	}
	facts := view.PodFacts{Namespace: o.key.Namespace, Name: o.key.Name}
	pod := &corev1.Pod{}
	switch err := o.reached.Get(ctx, o.key, pod); {
	case apierrors.IsNotFound(err):
		if err := o.findAway(ctx, &facts); err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("get pod %s: %w", o.key, err)
	default:
		facts.Pod, facts.Node = pod, pod.Spec.NodeName
		o.evacuation(ctx, &facts)
		o.static(ctx, &facts)
	}
	o.maintenances(ctx, &facts)
	for _, line := range facts.Why() {
		if _, err := fmt.Fprintln(o.Out, line); err != nil {
			return err
		}
	}
	return nil
}

// findAway looks among all agents for a static pod that has no mirror pod.
func (o *whyOptions) findAway(ctx context.Context, facts *view.PodFacts) error {
	var list v1alpha1.NodeAgentList
	err := page(ctx, o.reached, &list, func() {
		for i := range list.Items {
			if said := saidOf(&list.Items[i], o.key); said != nil {
				facts.Node, facts.Static = list.Items[i].Name, said
			}
		}
	})
	switch {
	case facts.Static != nil:
		return nil
	case err != nil && !meta.IsNoMatchError(err):
		return fmt.Errorf("there is no pod %s, and whether an agent keeps a static pod of this name away is unknown: list nodeagents: %w", o.key, err)
	}
	return fmt.Errorf("there is no pod %s, and no agent of a node knows a static pod of this name; choose another namespace with -n", o.key)
}

func saidOf(agent *v1alpha1.NodeAgent, key client.ObjectKey) *v1alpha1.StaticPod {
	for i := range agent.Status.StaticPods {
		if one := &agent.Status.StaticPods[i]; one.Name == key.Name && one.Namespace == key.Namespace {
			return one.DeepCopy()
		}
	}
	return nil
}

func (o *whyOptions) evacuation(ctx context.Context, facts *view.PodFacts) {
	found := &v1alpha1.Evacuation{}
	if o.read(ctx, facts, found, client.ObjectKey{Namespace: o.key.Namespace, Name: evacuation.Name(facts.Pod)}) {
		facts.Evacuation = found
	}
}

// static asks the agent of the node about a static pod.
func (o *whyOptions) static(ctx context.Context, facts *view.PodFacts) {
	agent := &v1alpha1.NodeAgent{}
	if _, mirror := facts.Pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror && o.read(ctx, facts, agent, client.ObjectKey{Name: facts.Node}) {
		facts.Static = saidOf(agent, o.key)
	}
}

// maintenances are those that hold the node of the pod.
func (o *whyOptions) maintenances(ctx context.Context, facts *view.PodFacts) {
	node := &corev1.Node{}
	if facts.Node == "" || !o.read(ctx, facts, node, client.ObjectKey{Name: facts.Node}) {
		return
	}
	holders := maintenance.Holders(node)
	for _, name := range holders[:min(len(holders), maxHolders)] {
		m := &v1alpha1.NodeMaintenance{}
		if o.read(ctx, facts, m, client.ObjectKey{Name: name}) {
			facts.Maintenances = append(facts.Maintenances, m)
		}
	}
}

// read returns true if an object was read. That it cannot be is said; that it is not there
// is no fault, nor is a cluster that has no such kind.
func (o *whyOptions) read(ctx context.Context, facts *view.PodFacts, object client.Object, key client.ObjectKey) bool {
	kind := strings.ToLower(reflect.TypeOf(object).Elem().Name())
	err := o.reached.Get(ctx, key, object)
	if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		facts.Unknown = true
		fmt.Fprintf(o.ErrOut, "Not all is known: get %s %s: %v\n", kind, strings.TrimPrefix(key.String(), "/"), err)
	}
	return err == nil
}
