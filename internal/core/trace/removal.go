package trace

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/internal/core/foreigndrain"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

// Removals are nodes that NodeMaintenances hold, and whether managers leave them cordoned
// because somebody else removes them: a maintenance is not over before that is. Its zero
// value knows of none.
type Removals struct {
	// awaited are, by maintenance, what is to be known of nodes that are removed; held are
	// the maintenances that hold a node that is not.
	awaited map[string][]string
	held    map[string]bool
}

// See notes a node. Each is to be seen once.
func (r *Removals) See(node *corev1.Node) {
	for _, name := range cordon.Holders(node) {
		switch {
		case !foreigndrain.Removing(node):
			if r.held == nil {
				r.held = map[string]bool{}
			}
			r.held[name] = true
		default:
			if r.awaited == nil {
				r.awaited = map[string][]string{}
			}
			r.awaited[name] = append(r.awaited[name], strings.Join(foreigndrain.Notes(node), " "))
		}
	}
}

// Awaited is, for each of its nodes, for whom a maintenance that is complete waits and what
// helps; empty if it holds others, too, or none: then managers are not through with it.
func (r *Removals) Awaited(maintenance string) []string {
	if r.held[maintenance] {
		return nil
	}
	return r.awaited[maintenance]
}
