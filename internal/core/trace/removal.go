package trace

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/internal/core/foreigndrain"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

// Removals are nodes that stay cordoned until another controller removes them.
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

// Awaited describes such nodes of a completed maintenance; empty if it holds others or none.
func (r *Removals) Awaited(maintenance string) []string {
	if r.held[maintenance] {
		return nil
	}
	return r.awaited[maintenance]
}
