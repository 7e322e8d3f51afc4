package preflight

import (
	"fmt"
	"strings"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// Plan returns the effect of a maintenance in Idle by node; none if it is invalid.
func Plan(s Snapshot) map[string]v1alpha1.NodeMaintenanceNodeStatus {
	owners := newOwners(s.Owners)
	t := forecaster{Snapshot: &s, owners: owners, runs: []*run{simulate(&s, owners, asAsked)}}
	r := t.runs[0]
	planned := make(map[string]v1alpha1.NodeMaintenanceNodeStatus, len(r.before))
	for i := range r.before {
		v, f := &r.before[i], t.node(i)
		status := v1alpha1.NodeMaintenanceNodeStatus{
			NodeRef: v1alpha1.NodeReference{Name: v.Name}, DrainTargets: v.Targets, State: v1alpha1.NodeStatePlanned, DrainMessage: planText(&f),
			PodsPendingEvacuation: int32(f.Count.Pods - f.Count.Stay), PodsRetained: int32(f.Count.Stay), Retained: v.Retained,
		}
		if i < len(r.after) {
			status.Blockers = withoutTimes(r.after[i].Blockers)
		}
		planned[v.Name] = status
	}
	return planned
}

// withoutTimes removes start times, as nothing blocks yet.
func withoutTimes(blockers []v1alpha1.Blocker) []v1alpha1.Blocker {
	for i := range blockers {
		blockers[i].SinceTime = nil
	}
	return blockers
}

func planText(f *NodeForecast) string {
	c := &f.Count
	if f.Outcome == OutcomeUnknown && c.Unknown == 0 {
		return "Which pods would leave is unknown: those of the node were not read."
	}
	var parts []string
	for _, part := range []struct {
		number int
		words  [2]string
	}{
		{c.Pods - c.Stay - c.Held - c.Complete - c.Unknown, [2]string{"pod would leave", "pods would leave"}},
		{c.Complete, [2]string{"pod would be left to complete", "pods would be left to complete"}},
		{c.Held - c.Wait, [2]string{"pod would not leave", "pods would not leave"}},
		{c.Wait, [2]string{"pod would wait for others", "pods would wait for others"}},
		{c.Unknown, [2]string{"pod may not leave", "pods may not leave"}},
	} {
		if part.number > 0 {
			parts = append(parts, phrase.Count(part.number, part.words[0], part.words[1]))
		}
	}
	if len(parts) == 0 {
		return "No pod would have to leave."
	}
	return fmt.Sprintf("%s.", strings.Join(parts, ", "))
}
