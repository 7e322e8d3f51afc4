package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// drainFlag is a flag of kubectl drain that has another meaning here than there, or none.
// Those that mean the same (--selector, --dry-run, --timeout, and the flags that choose a
// cluster) are flags of their own.
type drainFlag struct {
	name, usage string
	// standard is the value that asks for nothing, by which also its type is known.
	standard string
	// becomes says to somebody who has given it what it is here; refused instead says why
	// nothing is done, and what to use in its place.
	becomes, refused string
}

// drainFlags are the flags of kubectl drain. They are refused where somebody would be harmed
// who relies on what they do there.
var drainFlags = []drainFlag{
	{
		name: "ignore-daemonsets", usage: "of kubectl drain: leave pods of DaemonSets, as --depth=Default", standard: "false",
		becomes: "is spec.drainDepth: Default here: pods of DaemonSets stay on the nodes, and so do static pods",
	},
	{
		name: "delete-emptydir-data", usage: "of kubectl drain: changes nothing, emptyDir volumes go with their pods", standard: "false",
		becomes: "changes nothing: what a pod has in emptyDir volumes always goes with it",
	},
	{
		name: "force", usage: "of kubectl drain: changes nothing, pods that nobody owns leave, too", standard: "false",
		becomes: "changes nothing: pods that nobody owns are evicted in any case, and nobody makes them again. Budgets are respected",
	},
	{
		name: "skip-wait-for-delete-timeout", usage: "of kubectl drain: changes nothing, every pod is waited for", standard: "0",
		becomes: "changes nothing: a node is drained when its pods are gone. Those that do not end are shown as blockers, with what helps",
	},
	{
		name: "chunk-size", usage: "of kubectl drain: changes nothing", standard: "500",
		becomes: "changes nothing: lists are always read in pages",
	},
	{
		name: "grace-period", usage: "of kubectl drain: refused, each pod has its own", standard: "-1",
		refused: "would end pods sooner or later than they say themselves, and is not possible here: each has the terminationGracePeriodSeconds of its spec. " +
			"Leave the flag out. To be through by a given time, use --deadline",
	},
	{
		name: "disable-eviction", usage: "of kubectl drain: refused, see --deadline", standard: "false",
		refused: "would delete pods past their PodDisruptionBudgets and is not possible here: pods are evicted. " +
			"To delete at a given time what is left then, use --deadline with --on-deadline=Delete, for which you need the verb bypass-budgets on nodemaintenances",
	},
	{
		name: "pod-selector", usage: "of kubectl drain: refused, a drain is for all pods", standard: "",
		refused: "would drain some of the pods and call the node drained, and is not possible here: a drain is for all pods. " +
			"Label those that shall stay " + v1alpha1.DrainLabel + "=skip, or have a MachineDrainRule skip them; their order is spec.drainPlan",
	},
}

// addDrainFlags adds the flags of kubectl drain.
func addDrainFlags(flags *pflag.FlagSet) {
	for _, f := range drainFlags {
		number, notNumber := strconv.Atoi(f.standard)
		yes, notBool := strconv.ParseBool(f.standard)
		switch {
		case notNumber == nil:
			flags.Int(f.name, number, f.usage)
		case notBool == nil:
			flags.Bool(f.name, yes, f.usage)
		default:
			flags.String(f.name, f.standard, f.usage)
		}
	}
}

// translate returns a line for each flag of kubectl drain that the user has given, which
// says what it is here.
//
// Errors: flags that are refused, all of them.
func translate(flags *pflag.FlagSet) (lines []string, err error) {
	for _, f := range drainFlags {
		given := flags.Lookup(f.name)
		switch {
		case !given.Changed || given.Value.String() == f.standard:
		case f.refused != "":
			err = errors.Join(err, fmt.Errorf("--%s %s", f.name, f.refused))
		default:
			lines = append(lines, fmt.Sprintf("--%s %s", f.name, f.becomes))
		}
	}
	return lines, err
}
