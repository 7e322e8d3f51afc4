package trace

import (
	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// ofAgent removes what an agent has said. What it keeps away stays where it is, on the
// disk of its node; nothing but the note leads there any more.
func ofAgent(a *v1alpha1.NodeAgent) Finding {
	f := Finding{Delete: true, Does: []string{"delete it"}}
	if maintenance.AgentOf(a).Holds() {
		f.Notes = append(f.Notes, "its node keeps static pods away, and no API brings them back. On the node: "+blocker.BringBack(a.Status.ManifestDir))
	}
	return f
}
