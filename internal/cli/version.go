package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/view"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/version"
)

// versionPatience is how long the verb version waits for a cluster.
const versionPatience = 5 * time.Second

type versionOptions struct {
	genericiooptions.IOStreams
	connection
}

// newVersion is the verb version, as people are used to from kubectl.
func newVersion(streams genericiooptions.IOStreams) *cobra.Command {
	o := &versionOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which versions the plugin and the manager are",
		Long: `Say which versions the plugin and the manager are, and which manager leads.

You need the verb list on pods and get on the Lease of the leader, in namespace
` + usualNamespace + ` or the one in --namespace. Without a cluster it says the
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
	reached, clock, _, err := o.reach()
	if err != nil {
		return nil // Nobody has named a cluster.
	}
	ctx, cancel := context.WithTimeout(ctx, versionPatience)
	defer cancel()
	lines, err := o.managers(ctx, reached, clock)
	if err != nil {
		fmt.Fprintf(o.ErrOut, "The version of the manager is unknown: %s\n", excerpt.Line(err.Error(), maxSaid))
		return nil
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(o.Out, line); err != nil {
			return err
		}
	}
	return nil
}

// managers are the versions of the pods, and who leads.
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
