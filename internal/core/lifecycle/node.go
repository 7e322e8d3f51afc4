package lifecycle

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodedrain"
)

// goneForGood is the way out for whoever has lost a cluster.
const goneForGood = "If it is gone for good, the annotations " + v1alpha1.ExcludeNodeDrainingAnnotation + " and " +
	v1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation + " let the Machine be deleted."

// namedNodes is how many Nodes a message names.
const namedNodes = 5

// sight is what is known of the Machine's Node. Without a node, either it is
// missing, or there is a problem.
type sight struct {
	state
	node *corev1.Node
}

// missing tells whether there is known to be no Node.
func (s sight) missing() bool {
	switch s.reason {
	case v1alpha1.ReasonNotFound, v1alpha1.ReasonNotReady, v1alpha1.ReasonNotOwned:
		return true
	}
	return false
}

// absent tells whether there is known to be no Node of the Machine's providerID.
func (p *pass) absent() bool {
	return p.Machine.Spec.ProviderID != "" && p.sight.missing() && p.sight.reason != v1alpha1.ReasonNotOwned
}

// problem is why nobody knows; empty if somebody does.
func (s sight) problem() string {
	if s.node != nil || s.missing() {
		return ""
	}
	return s.message
}

// advised adds the way out to what holds a step of a Machine in another cluster,
// if that cannot be read.
func (p *pass) advised(problem string) string {
	c := p.Cluster.Object
	if p.NodesProblem == "" || c == nil || c.Spec.KubeconfigSecretRef == nil || problem != p.sight.problem() {
		return problem
	}
	return problem + "\nGet the cluster back, or correct its kubeconfig. " + goneForGood
}

// look finds the Machine's Node: the one that has its providerID. What is in
// status.nodeRef only says which one that was.
func (p *pass) look() sight {
	ref, id := p.Machine.Status.NodeRef, p.Machine.Spec.ProviderID
	switch {
	case id == "" && p.deleting() && p.Infrastructure.Problem != "":
		return unseen(v1alpha1.ReasonUnknown, "The Machine has no providerID yet, and %s could not be read, so nobody knows whether there is a Node: %s",
			p.infrastructureName(), p.Infrastructure.Problem)
	case id == "" && ref != nil:
		return unseen(v1alpha1.ReasonUnknown, "Nobody knows whether Node %s is the Machine's, because the Machine has no providerID. "+
			"Set spec.providerID to what the Node has, if it is.", ref.Name)
	case id == "":
		return unseen(v1alpha1.ReasonNotReady, "The Machine has no providerID, so it has no Node.")
	case p.Cluster.missing():
		return unseen(v1alpha1.ReasonUnknown, "%s does not exist, so nobody knows whether there is a Node. Create the Cluster. %s", p.cluster(), goneForGood)
	case ref != nil && p.NodesUnneeded:
		return unseen(v1alpha1.ReasonReady, "Node %s.", ref.Name)
	case p.NodesProblem != "":
		return unseen(v1alpha1.ReasonUnknown, "Nodes could not be read: %s", p.NodesProblem)
	default:
		return p.lookByProviderID(id)
	}
}

func unseen(reason, format string, args ...any) sight {
	return sight{state: state{reason, fmt.Sprintf(format, args...)}}
}

func seen(node *corev1.Node) sight {
	return sight{state{v1alpha1.ReasonReady, fmt.Sprintf("Node %s.", node.Name)}, node}
}

// lookByProviderID finds the Node. Of several that have the providerID it is the
// one that the Machine had. A Node of that name has another UID if the same host
// has registered again.
func (p *pass) lookByProviderID(id string) sight {
	nodes := Own(p.Machine, p.Nodes)
	if ref := p.Machine.Status.NodeRef; ref != nil && ref.UID != "" {
		for _, same := range []func(*corev1.Node) bool{
			func(node *corev1.Node) bool { return node.UID == ref.UID },
			func(node *corev1.Node) bool { return node.Name == ref.Name },
		} {
			if n := slices.IndexFunc(nodes, same); n >= 0 {
				return seen(nodes[n])
			}
		}
	}
	switch len(nodes) {
	case 0:
		return p.lookInVain(id)
	case 1:
		return p.lookUnclaimed(nodes[0])
	}
	var names []string
	for _, node := range nodes {
		names = append(names, node.Name)
	}
	return unseen(v1alpha1.ReasonAmbiguous, "%d Nodes have the providerID %s: %s. Delete those that are not the Machine's.",
		len(nodes), id, nodedrain.List(names, namedNodes))
}

// lookInVain tells a Node that is gone from one that never was, and from one that
// only has its name.
func (p *pass) lookInVain(id string) sight {
	ref := p.Machine.Status.NodeRef
	switch {
	case ref == nil && !p.deleting():
		return unseen(v1alpha1.ReasonNotReady, "No Node has the providerID %s yet.", id)
	case ref == nil:
		return unseen(v1alpha1.ReasonNotReady, "No Node has the providerID %s, and the Machine never had one.", id)
	}
	for _, node := range p.Nodes {
		switch {
		case node.Name != ref.Name:
		case node.Spec.ProviderID == "":
			return unseen(v1alpha1.ReasonUnknown, "Node %s has no providerID, so nobody knows whether it is still the Machine's. Delete it if it is not.", ref.Name)
		default:
			return unseen(v1alpha1.ReasonNotFound, "Node %s of UID %s is gone; the Node of that name that is there now has UID %s and providerID %q, not %q, and is not the Machine's.",
				ref.Name, cmp.Or(string(ref.UID), "unknown"), node.UID, node.Spec.ProviderID, id)
		}
	}
	return unseen(v1alpha1.ReasonNotFound, "Node %s, which the Machine had, does not exist any more.", ref.Name)
}

// Own returns those Nodes that have the Machine's providerID.
func Own(m *v1alpha1.Machine, nodes []*corev1.Node) []*corev1.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(node *corev1.Node) bool {
		return m.Spec.ProviderID == "" || node.Spec.ProviderID != m.Spec.ProviderID
	})
}

// lookUnclaimed leaves a Node alone that another Machine has.
func (p *pass) lookUnclaimed(node *corev1.Node) sight {
	for _, sibling := range p.Siblings {
		if ref := sibling.Status.NodeRef; ref != nil && ref.UID == node.UID {
			return unseen(v1alpha1.ReasonNotOwned, "Node %s has the providerID %s, but is the Node of Machine %s, so it is neither drained nor deleted.",
				node.Name, node.Spec.ProviderID, sibling.Name)
		}
	}
	return seen(node)
}

// recordNode remembers the Node before anything relies on it.
func (p *pass) recordNode() {
	node, ref := p.sight.node, p.Machine.Status.NodeRef
	if node == nil || ref != nil && ref.UID == node.UID {
		return
	}
	p.decision.Status.NodeRef = &v1alpha1.MachineNodeReference{Name: node.Name, UID: node.UID}
	p.decision.Record = true
}

// touch says why the Node is neither drained nor deleted, or why nobody knows.
func (p *pass) touch() (untouchable, unclear string) {
	cluster := p.Cluster.Object
	switch {
	case p.sight.missing() && p.Machine.Status.NodeRef == nil:
		return p.sight.message, ""
	case cluster == nil: // That is why nothing is known of the Node, either.
		return "", ""
	case cluster.DeletionTimestamp != nil:
		return p.cluster() + " is being deleted.", ""
	case p.ControlPlane != nil && p.ControlPlane.Object != nil && p.ControlPlane.Object.Deleting:
		return fmt.Sprintf("The control plane %s %s is being deleted.", p.ControlPlane.Object.Kind, p.ControlPlane.Object.Name), ""
	case !cluster.Spec.ControlPlane.ExternallyManaged && p.controlPlaneLost():
		return fmt.Sprintf("No other control-plane Machine of %s is left.", p.cluster()), ""
	case p.ControlPlane != nil && p.ControlPlane.Problem != "":
		return "", fmt.Sprintf("Nobody knows whether the control plane of %s is being deleted: %s", p.cluster(), p.ControlPlane.Problem)
	default:
		return "", ""
	}
}

// controlPlaneLost tells whether the Cluster had control-plane Machines and none
// is left but this one. One that is being deleted does not count.
func (p *pass) controlPlaneLost() bool {
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

// InControlPlane tells whether a Machine is labelled as one of its Cluster's control plane.
func InControlPlane(m *v1alpha1.Machine) bool {
	_, labelled := m.Labels[v1alpha1.ControlPlaneLabel]
	return labelled
}
