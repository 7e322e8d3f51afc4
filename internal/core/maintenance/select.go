package maintenance

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance/announcement"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

// NodeSelector matches the nodes of a maintenance: those that its selector matches and that it
// has not given back.
type NodeSelector struct {
	compiled  *nodeaffinity.NodeSelector
	completed map[string]bool
}

// compileSelector returns an error that names the field that cannot be understood.
func compileSelector(spec *v1alpha1.NodeMaintenanceSpec) (*NodeSelector, error) {
	if spec.NodeSelector == nil {
		return nil, errors.New("spec.nodeSelector: is required")
	}
	compiled, err := nodeaffinity.NewNodeSelector(spec.NodeSelector, field.WithPath(field.NewPath("spec", "nodeSelector")))
	if err != nil {
		return nil, err
	}
	s := &NodeSelector{compiled: compiled, completed: make(map[string]bool, len(spec.CompletedNodes))}
	for _, node := range spec.CompletedNodes {
		s.completed[node.Name] = true
	}
	return s, nil
}

// Match returns true if the node is one of the maintenance.
func (s *NodeSelector) Match(node *corev1.Node) bool {
	return !s.completed[node.Name] && s.compiled.Match(node)
}

// Matching returns those of the nodes that are the nodes of a NodeMaintenance, in their
// order. The error names the field that cannot be understood.
func Matching(spec *v1alpha1.NodeMaintenanceSpec, nodes []*corev1.Node) ([]*corev1.Node, error) {
	compiled, err := compileSelector(spec)
	if err != nil {
		return nil, err
	}
	var matching []*corev1.Node
	for _, node := range nodes {
		if compiled.Match(node) {
			matching = append(matching, node)
		}
	}
	return matching, nil
}

// Selector returns what tells the nodes of a maintenance; nil if it selects none,
// because its work is over or its selector cannot be understood.
func Selector(m *v1alpha1.NodeMaintenance) *NodeSelector {
	if isFinished(m, effectiveStage(m)) {
		return nil
	}
	compiled, err := compileSelector(&m.Spec)
	if err != nil {
		return nil
	}
	return compiled
}

// Finished returns true if nothing is done for the maintenance any more.
func Finished(m *v1alpha1.NodeMaintenance) bool { return isFinished(m, effectiveStage(m)) }

// Stage is the stage that a maintenance is in: a deletion completes it, unless it has not
// begun.
func Stage(m *v1alpha1.NodeMaintenance) v1alpha1.NodeMaintenanceStage { return effectiveStage(m) }

// ReadsPods returns true if a decision about a node that the maintenance selects
// or holds depends on the pods of the node: while it drains, and afterwards until
// their evacuations are withdrawn.
func ReadsPods(m *v1alpha1.NodeMaintenance) bool {
	switch stage := effectiveStage(m); stage {
	case v1alpha1.StageIdle, v1alpha1.StageCordon:
		return false
	case v1alpha1.StageComplete:
		return !isFinished(m, stage) && hasStarted(m, v1alpha1.StageDrain)
	default:
		return true
	}
}

// Marked returns true if a maintenance has left something on the node: its ledger,
// what keeps DaemonSet pods away, that it is handed over, or a condition that announces it.
func Marked(node *corev1.Node) bool {
	return cordon.Marked(node) || len(announcement.Types(node)) > 0
}

// Plans returns true if the maintenance is in Idle and may still do something: its status
// says what that would be.
func Plans(m *v1alpha1.NodeMaintenance) bool {
	return effectiveStage(m) == v1alpha1.StageIdle && m.DeletionTimestamp == nil
}
