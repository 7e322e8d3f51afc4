package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/lint"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/kube"
)

type lintOptions struct {
	genericiooptions.IOStreams
	connection
	output
	// AllNamespaces is the default; it only overrides --namespace.
	AllNamespaces bool
}

func newLint(streams genericiooptions.IOStreams) *cobra.Command {
	o := &lintOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "lint",
		Short: "Find problems that would block or disrupt a drain",
		Long: `Find problems that would block or disrupt the drain of any node.

  Error    blocks a drain: budgets that never allow a disruption, pods under
           several budgets
  Warning  takes an application down or leaves pods behind: single replicas
           without a surge, pods without a controller, DaemonSets that tolerate
           everything
  Note     is worth knowing: data in volumes of a node

The command checks all namespaces unless --namespace is set, works without
Ebbtide and writes nothing. The exit code is 2 if there are errors. Requires the
verb list; kinds that cannot be read are named and skipped.`,
		Example: `  # Check the cluster
  kubectl ebbtide lint

  # Check one namespace and show all findings
  kubectl ebbtide lint -n shop -o wide`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	cmd.Flags().BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "check all namespaces, the default without --namespace")
	o.addFlag(cmd, formatJSON, formatYAML, formatWide, formatName)
	o.addFlags(cmd)
	return cmd
}

// Run prints the findings.
func (o *lintOptions) Run(ctx context.Context) error {
	reached, clock, _, err := o.reach(io.Discard)
	if err != nil {
		return err
	}
	snapshot, err := o.snapshot(ctx, &survey{reached: reached})
	if err != nil {
		return err
	}
	snapshot.Now = timeOf(clock)
	report := lint.Of(snapshot)
	if !o.isForPrograms() {
		for _, line := range report.Unread {
			fmt.Fprintln(o.ErrOut, line)
		}
	}
	var names []string
	for i := range report.Findings {
		names = append(names, nameOf(report.Findings[i].Object))
	}
	err = o.print(o.Out, report, strings.Join(names, "\n"), func(to io.Writer) error {
		return printLint(to, &report, o.isWide())
	})
	if err == nil && report.Count.Errors > 0 {
		return ended{code: codeNotDone}
	}
	return err
}

// snapshot reads the checked objects. Kinds that cannot be read are noted, except pods.
func (o *lintOptions) snapshot(ctx context.Context, s *survey) (found lint.Snapshot, err error) {
	in := client.InNamespace(o.overrides.Context.Namespace)
	if o.AllNamespaces {
		in = ""
	}
	err = s.read(ctx,
		of(s, &found.Pods, &corev1.PodList{}, kube.SlimPod, in),
		of(s, &found.Budgets, &policyv1.PodDisruptionBudgetList{}, whole, in),
		of(s, &found.Deployments, &appsv1.DeploymentList{}, whole, in),
		of(s, &found.ReplicaSets, &appsv1.ReplicaSetList{}, slimReplicaSet, in),
		of(s, &found.StatefulSets, &appsv1.StatefulSetList{}, whole, in),
		of(s, &found.DaemonSets, &appsv1.DaemonSetList{}, whole, in),
		of(s, &found.Claims, &corev1.PersistentVolumeClaimList{}, whole, in),
		of(s, &found.Volumes, &corev1.PersistentVolumeList{}, whole),
	)
	if err == nil && s.failed["Pod"] != nil {
		err = fmt.Errorf("list pods: %w", s.failed["Pod"])
	}
	for _, u := range s.unread {
		found.Unread = append(found.Unread, incomplete("list "+u.Kind, u.Why))
	}
	return found, err
}

// nameOf returns the name of an object for -o name.
func nameOf(o v1alpha1.BlockerObject) string {
	kind := strings.ToLower(o.Kind)
	if group, _, found := strings.Cut(o.APIVersion, "/"); found {
		kind += "." + group
	}
	return kind + "/" + o.Name
}

// shownFindings bounds the findings on a screen.
const shownFindings = 20

// printLint prints each finding with its message and suggestion.
func printLint(to io.Writer, report *lint.Report, wide bool) error {
	p := &printer{to: to}
	p.line("%s", lintVerdict(report.Count))
	shown := report.Findings
	if !wide {
		shown = shown[:min(len(shown), shownFindings)]
	}
	for i := range shown {
		f := &shown[i]
		p.line("%-8s %s (%s, %s)", f.Severity, excerpt.Line(blocker.ObjectText(f.Object), maxSaid), f.Check, phrase.Count(f.PodCount, "pod"))
		for _, line := range []string{f.Message, f.Suggestion} {
			p.line("         %s", excerpt.Line(line, maxSaid))
		}
	}
	if more := len(report.Findings) - len(shown); more > 0 {
		p.line("and %d more%s", more, wideHint)
	}
	return p.err
}

func lintVerdict(c lint.Count) string {
	if c == (lint.Count{}) {
		return "No problems found."
	}
	return fmt.Sprintf("%s, %s, %s.", phrase.Count(c.Errors, "error"), phrase.Count(c.Warnings, "warning"), phrase.Count(c.Notes, "note"))
}
