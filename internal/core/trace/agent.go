package trace

import (
	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// ofAgent deletes the report of an agent, and notes manifests that stay away.
func ofAgent(a *v1alpha1.NodeAgent) Finding {
	f := Finding{Delete: true, Does: []string{"delete it"}}
	if maintenance.AgentOf(a).Holds() {
		f.Notes = append(f.Notes, "its node keeps static pods away. To restore them, run on the node: "+blocker.BringBack(a.Status.ManifestDir))
	}
	return f
}
