package validate

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/calendar"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// shortWindow is the length below which a window is short. Before the first node is done, a node
// starts only if so much is left of a window, or half of it.
const shortWindow = 30 * time.Minute

// Warnings reports what is likely not intended by the change.
func (c RolloutChange) Warnings() []string {
	if c.Ends() || !c.plansAnew() {
		return nil
	}
	// An invalid selector is refused elsewhere.
	matching, err := maintenance.Matching(&drains(c.New).Spec, c.Nodes)
	if err != nil {
		return nil
	}
	return append(c.ofSelection(matching), c.ofTimes()...)
}

// plansAnew reports whether more changes than the state and decisions about single nodes.
func (c RolloutChange) plansAnew() bool {
	if c.Old == nil {
		return true
	}
	before := c.Old.Spec
	before.State, before.Nodes = c.New.Spec.State, c.New.Spec.Nodes
	return !equality.Semantic.DeepEqual(before, c.New.Spec)
}

func (c RolloutChange) ofSelection(matching []*corev1.Node) (warnings []string) {
	if len(matching) == 0 {
		return []string{"spec.nodeSelector matches no node now; nodes that it matches later join until the rollout is complete"}
	}
	selected := len(matching)
	if excluded := controlPlanes(matching); excluded > 0 && c.excludesControlPlane() {
		selected -= excluded
		warnings = append(warnings, fmt.Sprintf("spec.nodeSelector matches %s, left out by spec.controlPlane Exclude: "+
			"choose First or Last to include them, one at a time", phrase.Count(excluded, "control plane node")))
	}
	if most := c.New.Spec.MaxUnavailable; most != nil && selected > 1 && atOnce(most, selected) >= selected {
		warnings = append(warnings, fmt.Sprintf("spec.maxUnavailable is %s, and the rollout has %d nodes: all of them may be drained at the same time; "+
			"choose less", most.String(), selected))
	}
	return warnings
}

func (c RolloutChange) excludesControlPlane() bool {
	order := c.New.Spec.ControlPlane
	return order == "" || order == v1alpha1.ControlPlaneExclude
}

// atOnce returns how many of these nodes may be unavailable.
func atOnce(most *intstr.IntOrString, nodes int) int {
	// An invalid value is refused by the CRD.
	count, err := intstr.GetScaledValueFromIntOrPercent(most, nodes, false)
	if err != nil {
		return 0
	}
	return max(1, count)
}

func (c RolloutChange) ofTimes() (warnings []string) {
	for i, window := range c.New.Spec.Windows {
		if length, err := calendar.LengthOf(window); err == nil && length < shortWindow {
			warnings = append(warnings, fmt.Sprintf("spec.windows[%d] has %d minutes: a node starts in the first half of it, and is given back "+
				"if it is not drained at its end; choose at least %d minutes", i, int(length.Minutes()), int(shortWindow.Minutes())))
		}
	}
	for i, blackout := range c.New.Spec.Blackouts {
		if end := blackout.EndTime.Time; !end.After(c.Now) {
			warnings = append(warnings, fmt.Sprintf("spec.blackouts[%d] ended at %s (it is %s): remove it", i, phrase.Time(end), phrase.Time(c.Now)))
		}
	}
	return warnings
}
