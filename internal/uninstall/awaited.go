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

// unfinished returns the maintenances that managers still have to end. It leaves out those that only
// wait for an autoscaler to remove their nodes, which can take forever: their nodes are released like all
// other traces, and the autoscaler's taint keeps pods away.
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
	var removals trace.Removals
	err = s.each(ctx, nodes, func(object client.Object) {
		if node, ok := object.(*corev1.Node); ok {
			removals.See(node)
		}
	})
	left := all[:0]
	for _, m := range all {
		if notes := removals.Awaited(m.Name); len(notes) > 0 && maintenance.Stage(m) == v1alpha1.StageComplete {
			h.leave(m, notes, told)
			continue
		}
		left = append(left, m)
	}
	return left, err
}

// leave prints once that a maintenance is not waited for.
func (h Hook) leave(m *v1alpha1.NodeMaintenance, notes []string, told map[string]bool) {
	key := "left" + string(m.UID)
	if told[key] {
		return
	}
	told[key] = true
	text := strings.Join(notes[:min(named, len(notes))], " ")
	if more := len(notes) - named; more > 0 {
		text += fmt.Sprintf(" The same applies to %s more.", phrase.Count(more, "node"))
	}
	fmt.Fprintf(h.Out, "NodeMaintenance %s is complete and only waits for the removal of its nodes; they are released without it. %s\n", m.Name, text)
}

// settling counts the objects that managers still clean, without nodes that another tool removes.
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
