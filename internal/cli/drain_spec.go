package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// drainSpec is what a drain is like, as far as flags say it.
type drainSpec struct {
	Depth      string
	InPlace    time.Duration
	Deadline   string
	OnDeadline string

	inPlaceSaid func() bool
}

var (
	depths          = []string{string(v1alpha1.PodTypeDefault), string(v1alpha1.PodTypeDaemonSet), string(v1alpha1.PodTypeStatic)}
	deadlineActions = []string{string(v1alpha1.DeadlineWait), string(v1alpha1.DeadlineDelete)}
)

func (d *drainSpec) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&d.Depth, "depth", "", "the deepest pods that leave: Default, DaemonSet or Static (default Static, which is all)")
	flags.DurationVar(&d.InPlace, "in-place", 0, "the nodes come back within this time with their disks, as after a reboot: pods that ask for it stay, see docs/in-place.md")
	flags.StringVar(&d.Deadline, "deadline", "", "until when the nodes are to be empty: a time such as 2026-03-01T22:00:00Z, or from now, such as 30m")
	flags.StringVar(&d.OnDeadline, "on-deadline", "", "what becomes of pods that are left then: Wait, or Delete past their budgets (default Wait)")
	d.inPlaceSaid = func() bool { return flags.Changed("in-place") }
	for name, words := range map[string][]string{"depth": depths, "on-deadline": deadlineActions} {
		// The flag is not missing.
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
}

// validate refuses what means nothing.
func (d *drainSpec) validate() (err error) {
	if d.Depth, err = oneOf("depth", d.Depth, depths...); err != nil {
		return err
	}
	if d.OnDeadline, err = oneOf("on-deadline", d.OnDeadline, deadlineActions...); err != nil {
		return err
	}
	switch {
	case d.OnDeadline != "" && d.Deadline == "":
		return errors.New("--on-deadline is about a --deadline, and there is none")
	case d.inPlaceSaid() && (d.InPlace < time.Second || d.InPlace > time.Hour || d.InPlace%time.Second != 0):
		return fmt.Errorf("--in-place is how long a node is away, in whole seconds from 1s to 1h, not %s", d.InPlace)
	}
	_, err = d.deadline(time.Time{})
	return err
}

// oneOf finds a word, whatever its case.
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

// deadline is the deadline that is asked for; nil if none is.
func (d *drainSpec) deadline(now time.Time) (*v1alpha1.Deadline, error) {
	if d.Deadline == "" {
		return nil, nil
	}
	deadline := &v1alpha1.Deadline{OnDeadline: v1alpha1.DeadlineAction(d.OnDeadline)}
	if after, err := time.ParseDuration(d.Deadline); err == nil && after > 0 {
		deadline.Time = metav1.NewTime(now.Add(after).UTC().Truncate(time.Second))
		return deadline, nil
	}
	at, err := time.Parse(time.RFC3339, d.Deadline)
	if err != nil {
		return nil, fmt.Errorf("--deadline must be a time such as 2026-03-01T22:00:00Z, or from now, such as 30m, not %q", d.Deadline)
	}
	deadline.Time = metav1.NewTime(at.UTC())
	return deadline, nil
}

// shape has a maintenance drain as the flags say.
func (d *drainSpec) shape(spec *v1alpha1.NodeMaintenanceSpec, now time.Time) (err error) {
	spec.DrainDepth = v1alpha1.PodType(d.Depth)
	if d.InPlace > 0 {
		spec.InPlace = &v1alpha1.InPlace{ExpectedDowntimeSeconds: int32(d.InPlace / time.Second)}
	}
	spec.Deadline, err = d.deadline(now)
	return err
}
