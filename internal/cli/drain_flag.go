package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// drainFlag is a flag of kubectl drain that has a different meaning here, or none. Flags with the
// same meaning are defined by the verb.
type drainFlag struct {
	name, usage string
	// standard is the default, which also determines the type.
	standard string
	// becomes describes the meaning here; refused instead is the error, with an alternative.
	becomes, refused string
}

// drainFlags are the flags of kubectl drain. They are refused where ignoring them could do harm.
var drainFlags = []drainFlag{
	{
		name: "ignore-daemonsets", usage: "as in kubectl drain: same as --depth=Default", standard: "false",
		becomes: "sets spec.drainDepth to Default: pods of DaemonSets and static pods stay on the nodes",
	},
	{
		name: "delete-emptydir-data", usage: "no effect: emptyDir volumes are always deleted with their pods", standard: "false",
		becomes: "has no effect: emptyDir volumes are always deleted with their pods",
	},
	{
		name: "force", usage: "no effect: pods without a controller are always evicted", standard: "false",
		becomes: "has no effect: pods without a controller are always evicted, within their PodDisruptionBudgets, and not recreated",
	},
	{
		name: "skip-wait-for-delete-timeout", usage: "no effect: the drain waits for every pod", standard: "0",
		becomes: "has no effect: the drain waits for every pod, and shows those that do not terminate as blockers",
	},
	{
		name: "chunk-size", usage: "no effect: lists are always read in pages", standard: "500",
		becomes: "has no effect: lists are always read in pages",
	},
	{
		name: "grace-period", usage: "rejected: pods keep their own grace period", standard: "-1",
		refused: "is not supported: each pod has the terminationGracePeriodSeconds of its spec. To finish by a given time, use --deadline",
	},
	{
		name: "disable-eviction", usage: "rejected: use --deadline", standard: "false",
		refused: "is not supported, as it bypasses PodDisruptionBudgets. To delete the remaining pods at a given time, " +
			"use --deadline with --on-deadline=Delete, which requires the verb bypass-budgets on nodemaintenances",
	},
	{
		name: "pod-selector", usage: "rejected: a drain covers all pods", standard: "",
		refused: "is not supported, as the node would count as drained with pods left. To keep pods, label them " +
			v1alpha1.DrainLabel + "=skip or skip them by a MachineDrainRule; to order them, use spec.drainPlan",
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

// translate returns the meaning of each flag of kubectl drain that was given.
//
// Errors: all flags that are refused.
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
