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

// maxMaintenance bounds the name of a maintenance in the status of an agent, in bytes.
const maxMaintenance = 100

// heldStaticPods describes the nodes whose static pods are down until their agents restore them, and the
// maintenances to complete first. It is empty if there are none.
func (s *surveyor) heldStaticPods(ctx context.Context) (string, error) {
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
	todo := "complete " + phrase.Some(holders, shown) + " first"
	if len(holders) == 0 {
		todo = "let their agents restore them first"
	}
	return fmt.Sprintf("static pods are down on %s (%s): %s. If an agent does not answer, run ebbtide-agent restore on the node and delete its NodeAgent",
		phrase.Count(len(on), "node"), phrase.Some(on, shown), todo), nil
}
