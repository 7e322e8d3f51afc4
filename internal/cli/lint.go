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
)

type lintOptions struct {
	genericiooptions.IOStreams
	connection
	output
	// AllNamespaces is there because people type it; it is so anyway.
	AllNamespaces bool
}

func newLint(streams genericiooptions.IOStreams) *cobra.Command {
	o := &lintOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "lint",
		Short: "Find what will trouble the next drain, whichever node it is of",
		Long: `Find what will trouble the next drain, whichever node it is of.

  Error    holds a drain up until somebody does something: budgets that never
           allow a disruption, pods under several budgets
  Warning  takes an application down or leaves something behind: single replicas
           that are not replaced first, pods that nobody owns, DaemonSets that
           tolerate everything
  Note     is worth knowing: data in volumes of a node

It looks at all namespaces unless --namespace names one, works without Ebbtide
in the cluster, and writes nothing. You need the verb list on what it reads;
what you may not read is said and left out. It ends with 2 if there is an Error.`,
		Example: `  # What would hold up a drain in this cluster?
  kubectl ebbtide lint

  # All of one application's namespace, with what helps
  kubectl ebbtide lint -n shop -o wide`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	cmd.Flags().BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "look at all namespaces, which is what it does unless --namespace names one")
	o.addFlag(cmd, "Print the model, names, or more of each", formatJSON, formatYAML, formatWide, formatName)
	o.addFlags(cmd)
	return cmd
}

// Run prints what it finds.
func (o *lintOptions) Run(ctx context.Context) error {
	reached, clock, _, err := o.reach()
	if err != nil {
		return err
	}
	snapshot, err := o.look(ctx, &survey{reached: reached})
	if err != nil {
		return err
	}
	snapshot.Now = timeOf(clock)
	report := lint.Of(snapshot)
	if !o.forPrograms() {
		for _, line := range report.Unread {
			fmt.Fprintln(o.ErrOut, line)
		}
	}
	var names []string
	for i := range report.Findings {
		names = append(names, nameOf(report.Findings[i].Object))
	}
	err = o.print(o.Out, report, strings.Join(names, "\n"), func(to io.Writer) error {
		return printLint(to, &report, o.wide())
	})
	if err == nil && report.Count.Errors > 0 {
		return NotDone{}
	}
	return err
}

// look reads what is looked at. Kinds that may not be read are noted, and the rest goes on;
// without pods there is nothing to say.
func (o *lintOptions) look(ctx context.Context, s *survey) (found lint.Snapshot, err error) {
	in := client.InNamespace(o.overrides.Context.Namespace)
	if o.AllNamespaces {
		in = ""
	}
	err = s.read(ctx,
		of(s, &found.Pods, &corev1.PodList{}, slimPod, in),
		of(s, &found.Budgets, &policyv1.PodDisruptionBudgetList{}, whole, in),
		of(s, &found.Deployments, &appsv1.DeploymentList{}, slimDeployment, in),
		of(s, &found.ReplicaSets, &appsv1.ReplicaSetList{}, slimReplicaSet, in),
		of(s, &found.StatefulSets, &appsv1.StatefulSetList{}, slimStatefulSet, in),
		of(s, &found.DaemonSets, &appsv1.DaemonSetList{}, slimDaemonSet, in),
		of(s, &found.Claims, &corev1.PersistentVolumeClaimList{}, slimClaim, in),
		of(s, &found.Volumes, &corev1.PersistentVolumeList{}, slimVolume),
	)
	if err == nil && s.failed["Pod"] != nil {
		err = fmt.Errorf("list pods: %w", s.failed["Pod"])
	}
	for _, u := range s.unread {
		found.Unread = append(found.Unread, notKnown("list "+u.Kind, u.Why))
	}
	return found, err
}

// nameOf is an object as kubectl's -o name has it.
func nameOf(o v1alpha1.BlockerObject) string {
	kind := strings.ToLower(o.Kind)
	if group, _, found := strings.Cut(o.APIVersion, "/"); found {
		kind += "." + group
	}
	return kind + "/" + o.Name
}

// shownFindings is how many findings fit a screen.
const shownFindings = 20

// printLint prints a table of objects, and of each what will happen and what helps.
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
		p.line("and %d more: -o wide shows all", more)
	}
	return p.err
}

func lintVerdict(c lint.Count) string {
	if c == (lint.Count{}) {
		return "Nothing will trouble a drain, as far as this cluster shows now."
	}
	return fmt.Sprintf("%s, %s, %s.", phrase.Count(c.Errors, "error"), phrase.Count(c.Warnings, "warning"), phrase.Count(c.Notes, "note"))
}
