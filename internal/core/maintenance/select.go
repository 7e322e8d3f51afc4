package maintenance

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance/announcement"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

// SelectNode returns the selector of the only node with this name.
func SelectNode(name string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
	}}}}
}

// NamedNodes returns the names that a selector selects nodes by.
func NamedNodes(selector *corev1.NodeSelector) (names []string) {
	if selector == nil {
		return nil
	}
	for _, term := range selector.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			names = append(names, field.Values...)
		}
	}
	return names
}

// NodeSelector matches the nodes of a maintenance but those that it has given back.
type NodeSelector struct {
	compiled  *nodeaffinity.NodeSelector
	completed map[string]bool
}

// compileSelector returns an error that names the field at fault.
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

// Matching returns the selected nodes in order. The error names the field at fault.
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

// Selector returns the selector of a maintenance; nil if it is finished or its selector invalid.
func Selector(m *v1alpha1.NodeMaintenance) *NodeSelector {
	if Finished(m) {
		return nil
	}
	compiled, err := compileSelector(&m.Spec)
	if err != nil {
		return nil
	}
	return compiled
}

// ReadsPods returns true if a decision about a node that the maintenance selects
// or holds depends on the pods of the node: while it drains, and afterwards until
// their evacuations are withdrawn.
func ReadsPods(m *v1alpha1.NodeMaintenance) bool {
	switch Stage(m) {
	case v1alpha1.StageIdle, v1alpha1.StageCordon:
		return false
	case v1alpha1.StageComplete:
		return !Finished(m) && hasStarted(m, v1alpha1.StageDrain)
	default:
		return true
	}
}

// Marked reports whether a maintenance has left an annotation, label, taint or condition on the
// node.
func Marked(node *corev1.Node) bool {
	return cordon.Marked(node) || len(announcement.Types(node)) > 0
}

// Plans returns true if the status of the maintenance shows what it would do.
func Plans(m *v1alpha1.NodeMaintenance) bool {
	return Stage(m) == v1alpha1.StageIdle && m.DeletionTimestamp == nil
}
