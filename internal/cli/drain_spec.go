package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// drainSpec are the flags that set fields of a drain.
type drainSpec struct {
	Depth      string
	InPlace    time.Duration
	Deadline   string
	OnDeadline string

	isInPlaceSet func() bool
}

var (
	depths          = []string{string(v1alpha1.PodTypeDefault), string(v1alpha1.PodTypeDaemonSet), string(v1alpha1.PodTypeStatic)}
	deadlineActions = []string{string(v1alpha1.DeadlineWait), string(v1alpha1.DeadlineDelete), string(v1alpha1.DeadlineGiveBack)}
)

func (d *drainSpec) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&d.Depth, "depth", "", "deepest type of pods to drain: Default, DaemonSet or Static (default Static, which is all)")
	flags.DurationVar(&d.InPlace, "in-place", 0, "expected downtime of nodes that return with their disks, for example after a reboot; pods can opt in to stay (see docs/in-place.md)")
	flags.StringVar(&d.Deadline, "deadline", "", "time by which the nodes must be drained (e.g. 2026-03-01T22:00:00Z), or duration from now (e.g. 30m)")
	flags.StringVar(&d.OnDeadline, "on-deadline", "", "action at the deadline: Wait, Delete the remaining pods regardless of PodDisruptionBudgets, or GiveBack the nodes that are not drained (default Wait)")
	d.isInPlaceSet = func() bool { return flags.Changed("in-place") }
	fixedValues(cmd, "depth", depths...)
	fixedValues(cmd, "on-deadline", deadlineActions...)
}

// validate rejects invalid flags.
func (d *drainSpec) validate() (err error) {
	if d.Depth, err = oneOf("depth", d.Depth, depths...); err != nil {
		return err
	}
	if d.OnDeadline, err = oneOf("on-deadline", d.OnDeadline, deadlineActions...); err != nil {
		return err
	}
	switch {
	case d.OnDeadline != "" && d.Deadline == "":
		return errors.New("--on-deadline requires --deadline")
	case d.isInPlaceSet() && (d.InPlace < time.Second || d.InPlace > time.Hour || d.InPlace%time.Second != 0):
		return fmt.Errorf("--in-place must be whole seconds from 1s to 1h, not %s", d.InPlace)
	}
	_, err = d.deadline(time.Time{})
	return err
}

// oneOf returns the value that equals a word regardless of its case.
func oneOf(flag, word string, words ...string) (string, error) {
	if word == "" {
		return "", nil
	}
	for _, known := range words {
		if strings.EqualFold(known, word) {
			return known, nil
		}
	}
	return "", fmt.Errorf("--%s must be %s, not %q", flag, phrase.Or(words), word)
}

// ahead returns the duration of a deadline that counts from now; 0 if it does not.
func (d *drainSpec) ahead() time.Duration {
	ahead, err := time.ParseDuration(d.Deadline)
	if err != nil {
		return 0
	}
	return max(ahead, 0)
}

// deadline returns the requested deadline; nil if there is none.
func (d *drainSpec) deadline(now time.Time) (*v1alpha1.Deadline, error) {
	if d.Deadline == "" {
		return nil, nil
	}
	deadline := &v1alpha1.Deadline{OnDeadline: v1alpha1.DeadlineAction(d.OnDeadline)}
	if ahead := d.ahead(); ahead > 0 {
		deadline.Time = metav1.NewTime(now.Add(ahead).UTC().Truncate(time.Second))
		return deadline, nil
	}
	at, err := time.Parse(time.RFC3339, d.Deadline)
	if err != nil {
		return nil, fmt.Errorf("--deadline must be a time such as 2026-03-01T22:00:00Z or a duration such as 30m, not %q", d.Deadline)
	}
	deadline.Time = metav1.NewTime(at.UTC())
	return deadline, nil
}

// apply sets the fields of a maintenance.
func (d *drainSpec) apply(spec *v1alpha1.NodeMaintenanceSpec, now time.Time) (err error) {
	spec.DrainDepth = v1alpha1.PodType(d.Depth)
	if d.InPlace > 0 {
		spec.InPlace = &v1alpha1.InPlace{ExpectedDowntimeSeconds: int32(d.InPlace / time.Second)}
	}
	spec.Deadline, err = d.deadline(now)
	return err
}

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
