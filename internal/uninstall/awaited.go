package uninstall

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/foreigndrain"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/trace"
)

// unfinished are the maintenances that managers still have to end. One that only waits until
// an autoscaler has removed its nodes is none of them: that can take for ever, and nobody
// would wait when the managers are gone. Its nodes are given back like everything that is
// left; the taint of the autoscaler keeps pods away from them.
func (h Hook) unfinished(ctx context.Context, s *surveyor, told map[string]bool) ([]*v1alpha1.NodeMaintenance, error) {
	var all []*v1alpha1.NodeMaintenance
	complete := 0
	err := s.each(ctx, maintenances, func(object client.Object) {
		m, ok := object.(*v1alpha1.NodeMaintenance)
		if !ok || maintenance.Finished(m) {
			return
		}
		all = append(all, m)
		if maintenance.Stage(m) == v1alpha1.StageComplete {
			complete++
		}
	})
	if err != nil || complete == 0 {
		return all, err
	}
	var removed trace.Removals
	err = s.each(ctx, nodes, func(object client.Object) {
		if node, ok := object.(*corev1.Node); ok {
			removed.See(node)
		}
	})
	left := all[:0]
	for _, m := range all {
		if notes := removed.Awaited(m.Name); len(notes) > 0 && maintenance.Stage(m) == v1alpha1.StageComplete {
			h.leave(m, notes, told)
			continue
		}
		left = append(left, m)
	}
	return left, err
}

// leave tells once of a maintenance that is not waited for.
func (h Hook) leave(m *v1alpha1.NodeMaintenance, notes []string, told map[string]bool) {
	key := "left" + string(m.UID)
	if told[key] {
		return
	}
	told[key] = true
	text := strings.Join(notes[:min(named, len(notes))], " ")
	if more := len(notes) - named; more > 0 {
		text += fmt.Sprintf(" And so for %s more.", phrase.Count(more, "node"))
	}
	fmt.Fprintf(h.Out, "NodeMaintenance %s is complete and waits for whoever removes its nodes; they are given back without that. %s\n", m.Name, text)
}

// settling returns what managers are still about to take back: not nodes that they keep
// because somebody else removes them.
func settling(groups []group) (objects int) {
	for _, g := range groups {
		for _, finding := range g.findings {
			if node, ok := finding.Object.(*corev1.Node); !ok || !foreigndrain.Removing(node) {
				objects++
			}
		}
	}
	return objects
}
