package uninstall

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// maxMaintenance is how many bytes of the name of a maintenance, as an agent gives it, are shown.
const maxMaintenance = 100

// keptAway says which nodes keep static pods away, which only their agents bring back, and
// what has to end first. It is empty if there is none.
//
// Errors: not all NodeAgents could be read.
func (s *surveyor) keptAway(ctx context.Context) (string, error) {
	var on, holders []string
	err := s.each(ctx, agents, func(object client.Object) {
		agent, ok := object.(*v1alpha1.NodeAgent)
		if !ok || !maintenance.AgentOf(agent).Holds() {
			return
		}
		on = append(on, agent.Name)
		for _, pod := range agent.Status.StaticPods {
			if pod.MaintenanceName != "" {
				holders = append(holders, excerpt.Line(pod.MaintenanceName, maxMaintenance))
			}
		}
	})
	if err != nil || len(on) == 0 {
		return "", err
	}
	slices.Sort(holders)
	holders = slices.Compact(holders)
	what := "complete " + phrase.Some(holders, shown) + " first"
	if len(holders) == 0 {
		what = "have their agents bring them back first"
	}
	keep := "nodes keep"
	if len(on) == 1 {
		keep = "node keeps"
	}
	return fmt.Sprintf("%d %s static pods away (%s): %s. Where no agent answers, run ebbtide-agent restore on the node and delete its NodeAgent",
		len(on), keep, phrase.Some(on, shown), what), nil
}
