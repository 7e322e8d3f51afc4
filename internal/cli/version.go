package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/right"
	"ebbtide.dev/ebbtide/internal/core/view"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/version"
)

// versionWithin bounds the wait for a cluster.
const versionWithin = 5 * time.Second

type versionOptions struct {
	genericiooptions.IOStreams
	connection
}

func newVersion(streams genericiooptions.IOStreams) *cobra.Command {
	o := &versionOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the plugin and the manager",
		Long: `Print the versions of the plugin and the manager, and the manager that leads.

Requires the verb list on pods and get on the leader's Lease, in namespace
` + usualNamespace + ` or in --namespace. Without a cluster, the command prints the
version of the plugin.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.Run(cmd.Context()) },
	}
	o.addFlags(cmd)
	return cmd
}

// Run prints a line for the plugin, and one for each version of the manager.
func (o *versionOptions) Run(ctx context.Context) error {
	if _, err := fmt.Fprintln(o.Out, version.Line("kubectl-ebbtide")); err != nil {
		return err
	}
	reached, clock, _, err := o.reach(io.Discard)
	if err != nil {
		return nil // No cluster is configured.
	}
	ctx, cancel := context.WithTimeout(ctx, versionWithin)
	defer cancel()
	lines, err := o.managers(ctx, reached, clock)
	if err != nil {
		fmt.Fprintf(o.ErrOut, "Cannot read the version of the manager: %s\n", excerpt.Line(err.Error(), maxSaid))
		return nil
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(o.Out, line); err != nil {
			return err
		}
	}
	return nil
}

// managers returns the versions of the pods, and the leader.
func (o *versionOptions) managers(ctx context.Context, reached client.Client, clock *clock) (lines []string, err error) {
	pods, lease := &corev1.PodList{}, &coordinationv1.Lease{}
	namespace := o.ebbtide()
	if err := reached.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": "ebbtide"}, client.Limit(100)); err != nil {
		return nil, err
	}
	if err := reached.Get(ctx, client.ObjectKey{Namespace: namespace, Name: kube.LeaderLease}, lease); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	counts := map[string]int{}
	for i := range pods.Items {
		counts[excerpt.Line(pods.Items[i].Labels["app.kubernetes.io/version"], 64)]++
	}
	for _, number := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("manager %s: %s in namespace %s", number, phrase.Count(counts[number], "pod"), namespace))
	}
	if len(lines) == 0 {
		lines = append(lines, "no pods of the manager in namespace "+namespace)
	}
	holder := ""
	if lease.Spec.HolderIdentity != nil {
		holder, _, _ = strings.Cut(*lease.Spec.HolderIdentity, "_")
	}
	if note := view.ManagerNote(lease, timeOf(clock)); note != "" && lease.Name != "" {
		lines = append(lines, note)
	} else if holder != "" {
		lines = append(lines, excerpt.Line(holder, 253)+" leads")
	}
	return lines, nil
}

// managerNotes reports that no manager acts, and which parts of it lack rights. The namespace is
// Ebbtide's. Without the right to read the Lease there are no notes.
func (c *connection) managerNotes(ctx context.Context, reached client.Client, clock *clock, namespace string) (notes []string, away bool) {
	lease := &coordinationv1.Lease{}
	if reached.Get(ctx, client.ObjectKey{Namespace: namespace, Name: kube.LeaderLease}, lease) != nil {
		return nil, false
	}
	if note := view.ManagerNote(lease, timeOf(clock)); note != "" {
		away = true
		notes = append(notes, note+" Check with "+c.kubectl("get pods -n %s -l app.kubernetes.io/name=ebbtide", namespace))
	}
	if missing := right.ParseLabel(lease.Labels[v1alpha1.MissingRightsLabel]); len(missing) > 0 {
		notes = append(notes, fmt.Sprintf("Ebbtide runs without %s because its service account lacks rights. Find them with %s | grep 'lacks rights'",
			strings.Join(right.Names(missing), ", "), c.kubectl("logs -n %s -l app.kubernetes.io/name=ebbtide --tail=-1", namespace)))
	}
	return notes, away
}
