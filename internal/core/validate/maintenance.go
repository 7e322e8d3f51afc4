package validate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

const maxNamed = 3

// MaintenanceChange is a request; Old is nil on creation, New on deletion.
type MaintenanceChange struct {
	Old, New *v1alpha1.NodeMaintenance
	Nodes    []*corev1.Node
	// Others are needed only if the change Drains; OthersUnknown is set if they were not read.
	Others        []*v1alpha1.NodeMaintenance
	OthersUnknown error
	Now           time.Time
}

// Affected returns the names of the nodes that the NodeMaintenance selects before or after the
// change, in order, and of those that it names for later. The author must be allowed to delete each.
// The error names the field of an invalid selector.
func (c MaintenanceChange) Affected() ([]string, error) {
	var names []string
	for _, m := range []*v1alpha1.NodeMaintenance{c.Old, c.New} {
		if m == nil {
			continue
		}
		matching, err := maintenance.Matching(&m.Spec, c.Nodes)
		if err != nil {
			return nil, err
		}
		for _, node := range matching {
			names = append(names, node.Name)
		}
	}
	if !c.Ends() {
		for _, term := range c.New.Spec.NodeSelector.NodeSelectorTerms {
			names = append(names, namedBy(term)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// CompletedRefusal returns why a node cannot be given back before the others; empty if each can.
func (c MaintenanceChange) CompletedRefusal() string {
	if c.Old == nil || c.New == nil {
		return ""
	}
	// An invalid selector is refused elsewhere.
	matching, err := maintenance.Matching(&c.Old.Spec, c.Nodes)
	if err != nil {
		return ""
	}
	var strange []string
	for _, completed := range c.New.Spec.CompletedNodes {
		ours := func(node *corev1.Node) bool { return node.Name == completed.Name }
		if !slices.Contains(c.Old.Spec.CompletedNodes, completed) && !slices.ContainsFunc(matching, ours) {
			strange = append(strange, completed.Name)
		}
	}
	if len(strange) == 0 {
		return ""
	}
	return fmt.Sprintf("spec.completedNodes: this NodeMaintenance does not have %s. Only nodes that exist and that spec.nodeSelector matches can be given back", namedNodes(strange))
}

// TakesLaterNodes reports whether a term without a name may select later nodes.
func (c MaintenanceChange) TakesLaterNodes() bool {
	if c.Ends() || c.Old != nil && equality.Semantic.DeepEqual(c.Old.Spec, c.New.Spec) {
		return false
	}
	return c.New.Spec.NodeSelector == nil || slices.ContainsFunc(c.New.Spec.NodeSelector.NodeSelectorTerms,
		func(term corev1.NodeSelectorTerm) bool { return len(namedBy(term)) == 0 })
}

// namedBy returns the only nodes that a term can match by name; none if it selects otherwise.
func namedBy(term corev1.NodeSelectorTerm) []string {
	for _, field := range term.MatchFields {
		if field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn {
			return field.Values
		}
	}
	return nil
}

// Ends returns true if the change selects no node from now on.
func (c MaintenanceChange) Ends() bool {
	return c.New == nil || c.New.DeletionTimestamp != nil || c.New.Spec.Stage == v1alpha1.StageComplete
}

// NodeRights holds the user's rights to delete the nodes of a NodeMaintenance or NodeRollout.
type NodeRights struct {
	User string
	// Kind of the object.
	Kind string
	// Affected and Unknown count nodes and those not reviewed, Refused names those without the
	// right.
	Affected, Unknown int
	Refused           []string
	// Later is true if the object may take nodes that come later, Ends if it ends.
	Later, Ends bool
	// Why is the authorizer's reason about the right to delete every node.
	Why string
}

// Enough returns true if no further review can change the answer or the nodes that it names.
func (r NodeRights) Enough() bool { return r.Later || len(r.Refused) > maxNamed }

// Refusal returns why the user may not create, change or end this maintenance, if so.
func (r NodeRights) Refusal() string {
	const help = `ask for the verb "delete" on `
	why := ""
	if r.Why != "" {
		why = " (" + r.Why + ")"
	}
	switch {
	case r.Later:
		return fmt.Sprintf("user %q may not delete every node%s, and a %s that selects nodes by labels, or all but some, takes nodes that come later: "+
			help+"nodes in the whole cluster, or name each node in a term of its own, with matchFields, metadata.name and In", r.User, why, r.Kind)
	case len(r.Refused) == 0 && r.Unknown == 0:
		return ""
	}
	if r.Ends {
		return fmt.Sprintf("user %q may not delete %s%s, and only who may delete a node may end its maintenance: "+help+"nodes", r.User, r.named(), why)
	}
	return fmt.Sprintf("user %q may not delete %s%s, and only who may delete a node may have it drained: "+
		help+"nodes, or select only nodes that you may delete", r.User, r.named(), why)
}

func (r NodeRights) named() string {
	noun := "node "
	if len(r.Refused) > 1 {
		noun = "nodes "
	}
	if more := len(r.Refused) - maxNamed; more > 0 && r.Unknown > 0 {
		return fmt.Sprintf("%s%s and at least %d more of the %d that are selected", noun, strings.Join(r.Refused[:maxNamed], ", "), more, r.Affected)
	}
	return noun + phrase.Some(r.Refused, maxNamed)
}
