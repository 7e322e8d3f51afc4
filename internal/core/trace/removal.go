package trace

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/internal/core/foreigndrain"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

// Removals are nodes that managers leave cordoned because another controller removes them. Their
// maintenances are not complete before that. Its zero value is empty.
type Removals struct {
	// awaited describes such nodes by maintenance, held are the maintenances of other nodes.
	awaited map[string][]string
	held    map[string]bool
}

// See adds a node. Each node must be added once.
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

// Awaited describes the awaited nodes of a completed maintenance. It is empty if the maintenance
// holds other nodes or none.
func (r *Removals) Awaited(maintenance string) []string {
	if r.held[maintenance] {
		return nil
	}
	return r.awaited[maintenance]
}
