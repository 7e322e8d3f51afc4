package lifecycle

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodedrain"
)

const goneForGood = "If the cluster is lost, set annotations " + v1alpha1.ExcludeNodeDrainingAnnotation + " and " +
	v1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation + " to delete the Machine."

const namedNodes = 5

// observedNode is the Node of the Machine. Without one it is missing or there is a problem.
type observedNode struct {
	state
	node *corev1.Node
}

func (s observedNode) missing() bool {
	switch s.reason {
	case v1alpha1.ReasonNotFound, v1alpha1.ReasonNotReady, v1alpha1.ReasonNotOwned:
		return true
	}
	return false
}

// isAbsent reports whether no Node has the providerID of the Machine.
func (p *planner) isAbsent() bool {
	return p.Machine.Spec.ProviderID != "" && p.node.missing() && p.node.reason != v1alpha1.ReasonNotOwned
}

func (s observedNode) problem() string {
	if s.node != nil || s.missing() {
		return ""
	}
	return s.message
}

// advised adds a way out if the cluster of the Machine cannot be read.
func (p *planner) advised(problem string) string {
	c := p.Cluster.Object
	if p.NodesProblem == "" || c == nil || c.Spec.KubeconfigSecretRef == nil || problem != p.node.problem() {
		return problem
	}
	return problem + "\nRestore the cluster or correct its kubeconfig. " + goneForGood
}

// findNode finds the Node by providerID. status.nodeRef only tells which one it was.
func (p *planner) findNode() observedNode {
	ref, id := p.Machine.Status.NodeRef, p.Machine.Spec.ProviderID
	switch {
	case id == "" && p.deleting() && p.Infrastructure.Problem != "":
		return withoutNode(v1alpha1.ReasonUnknown, "Cannot determine the Node because the Machine has no providerID and %s could not be read: %s",
			p.infrastructureName(), p.Infrastructure.Problem)
	case id == "" && ref != nil:
		return withoutNode(v1alpha1.ReasonUnknown, "Cannot determine whether Node %s belongs to the Machine, which has no providerID. "+
			"If it does, set spec.providerID to that of the Node.", ref.Name)
	case id == "":
		return withoutNode(v1alpha1.ReasonNotReady, "The Machine has no providerID, so it has no Node.")
	case p.Cluster.missing():
		return withoutNode(v1alpha1.ReasonUnknown, "Cannot determine the Node because %s does not exist. Create the Cluster. %s", p.cluster(), goneForGood)
	case ref != nil && p.NodesUnneeded:
		return withoutNode(v1alpha1.ReasonReady, "Node %s.", ref.Name)
	case p.NodesProblem != "":
		return withoutNode(v1alpha1.ReasonUnknown, "Nodes could not be read: %s", p.NodesProblem)
	default:
		return p.findByProviderID(id)
	}
}

func withoutNode(reason, format string, args ...any) observedNode {
	return observedNode{state: state{reason, fmt.Sprintf(format, args...)}}
}

func withNode(node *corev1.Node) observedNode {
	return observedNode{state{v1alpha1.ReasonReady, fmt.Sprintf("Node %s.", node.Name)}, node}
}

// findByProviderID prefers the earlier Node of the Machine if several have the providerID.
func (p *planner) findByProviderID(id string) observedNode {
	nodes := Own(p.Machine, p.Nodes)
	if ref := p.Machine.Status.NodeRef; ref != nil && ref.UID != "" {
		for _, same := range []func(*corev1.Node) bool{
			func(node *corev1.Node) bool { return node.UID == ref.UID },
			func(node *corev1.Node) bool { return node.Name == ref.Name },
		} {
			if n := slices.IndexFunc(nodes, same); n >= 0 {
				return withNode(nodes[n])
			}
		}
	}
	switch len(nodes) {
	case 0:
		return p.explainMissing(id)
	case 1:
		return p.unlessClaimed(nodes[0])
	}
	var names []string
	for _, node := range nodes {
		names = append(names, node.Name)
	}
	return withoutNode(v1alpha1.ReasonAmbiguous, "%d Nodes have providerID %s: %s. Delete those that do not belong to the Machine.",
		len(nodes), id, nodedrain.List(names, namedNodes))
}

// explainMissing distinguishes a Node that is gone, never existed or only shares the name.
func (p *planner) explainMissing(id string) observedNode {
	ref := p.Machine.Status.NodeRef
	switch {
	case ref == nil && !p.deleting():
		return withoutNode(v1alpha1.ReasonNotReady, "No Node has providerID %s yet.", id)
	case ref == nil:
		return withoutNode(v1alpha1.ReasonNotReady, "No Node has providerID %s, and the Machine never had one.", id)
	}
	for _, node := range p.Nodes {
		switch {
		case node.Name != ref.Name:
		case node.Spec.ProviderID == "":
			return withoutNode(v1alpha1.ReasonUnknown, "Cannot determine whether Node %s, which has no providerID, still belongs to the Machine. If it does not, delete it.", ref.Name)
		default:
			return withoutNode(v1alpha1.ReasonNotFound, "Node %s with UID %s no longer exists. The Node that now has its name, with UID %s and providerID %q instead of %q, does not belong to the Machine.",
				ref.Name, cmp.Or(string(ref.UID), "unknown"), node.UID, node.Spec.ProviderID, id)
		}
	}
	return withoutNode(v1alpha1.ReasonNotFound, "Node %s of the Machine no longer exists.", ref.Name)
}

// Own returns the Nodes with the providerID of the Machine.
func Own(m *v1alpha1.Machine, nodes []*corev1.Node) []*corev1.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(node *corev1.Node) bool {
		return m.Spec.ProviderID == "" || node.Spec.ProviderID != m.Spec.ProviderID
	})
}

func (p *planner) unlessClaimed(node *corev1.Node) observedNode {
	for _, sibling := range p.Siblings {
		if ref := sibling.Status.NodeRef; ref != nil && ref.UID == node.UID {
			return withoutNode(v1alpha1.ReasonNotOwned, "Node %s has providerID %s but belongs to Machine %s, so it is neither drained nor deleted.",
				node.Name, node.Spec.ProviderID, sibling.Name)
		}
	}
	return withNode(node)
}

func (p *planner) recordNode() {
	node, ref := p.node.node, p.Machine.Status.NodeRef
	if node == nil || ref != nil && ref.UID == node.UID {
		return
	}
	p.decision.Status.NodeRef = &v1alpha1.MachineNodeReference{Name: node.Name, UID: node.UID}
	p.decision.Record = true
}

func (p *planner) whyUntouchable() (untouchable, unclear string) {
	cluster := p.Cluster.Object
	switch {
	case p.node.missing() && p.Machine.Status.NodeRef == nil:
		return p.node.message, ""
	case cluster == nil: // That is why nothing is known of the Node, either.
		return "", ""
	case cluster.DeletionTimestamp != nil:
		return p.cluster() + " is being deleted.", ""
	case p.ControlPlane != nil && p.ControlPlane.Object != nil && p.ControlPlane.Object.Deleting:
		return fmt.Sprintf("The control plane %s %s is being deleted.", p.ControlPlane.Object.Kind, p.ControlPlane.Object.Name), ""
	case !cluster.Spec.ControlPlane.ExternallyManaged && p.controlPlaneLost():
		return fmt.Sprintf("No other control-plane Machine of %s is left.", p.cluster()), ""
	case p.ControlPlane != nil && p.ControlPlane.Problem != "":
		return "", fmt.Sprintf("Cannot determine whether the control plane of %s is being deleted: %s", p.cluster(), p.ControlPlane.Problem)
	default:
		return "", ""
	}
}

// controlPlaneLost reports whether no other control-plane Machine is left.
func (p *planner) controlPlaneLost() bool {
	had := p.Cluster.Object.Status.ControlPlaneMachinesSeen || InControlPlane(p.Machine)
	for _, sibling := range p.Siblings {
		if !InControlPlane(sibling) {
			continue
		}
		had = true
		if sibling.DeletionTimestamp == nil {
			return false
		}
	}
	return had
}

// InControlPlane reports whether a Machine is labelled as part of the control plane.
func InControlPlane(m *v1alpha1.Machine) bool {
	_, labelled := m.Labels[v1alpha1.ControlPlaneLabel]
	return labelled
}
