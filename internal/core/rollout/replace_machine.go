package rollout

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// MachineKind names a kind of objects that own the machines of nodes.
type MachineKind string

// Kinds of machines.
const (
	OwnMachine  MachineKind = "machines"
	ClusterAPI  MachineKind = "cluster-api"
	OpenShift   MachineKind = "openshift"
	Karpenter   MachineKind = "karpenter"
	claimsGroup             = "karpenter.sh"
	claimKind               = "NodeClaim"
)

// MachineKinds are kinds of machines in the order of the constants.
type MachineKinds []MachineKind

// AllMachineKinds returns all kinds.
func AllMachineKinds() MachineKinds {
	return MachineKinds{OwnMachine, ClusterAPI, OpenShift, Karpenter}
}

// ParseMachineKinds reads kinds separated by commas. It fails on an unknown one.
func ParseMachineKinds(text string) (kinds MachineKinds, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for one := range strings.SplitSeq(text, ",") {
		kind := MachineKind(strings.TrimSpace(one))
		if !slices.Contains(AllMachineKinds(), kind) {
			return nil, fmt.Errorf("unknown kind of machines %.40q: use machines, cluster-api, openshift or karpenter", string(kind))
		}
		kinds = append(kinds, kind)
	}
	return slices.DeleteFunc(AllMachineKinds(), func(k MachineKind) bool { return !slices.Contains(kinds, k) }), nil
}

// GVK returns the kind of the objects.
func (k MachineKind) GVK() schema.GroupVersionKind {
	switch k {
	case ClusterAPI:
		return bridge.ClusterAPIMachine
	case OpenShift:
		return bridge.OpenShiftMachine
	case Karpenter:
		return schema.GroupVersionKind{Group: claimsGroup, Version: "v1", Kind: claimKind}
	default:
		return v1alpha1.SchemeGroupVersion.WithKind("Machine")
	}
}

// Resource returns the resource of the objects.
func (k MachineKind) Resource() schema.GroupResource {
	if k == Karpenter {
		return schema.GroupResource{Group: claimsGroup, Resource: "nodeclaims"}
	}
	return schema.GroupResource{Group: k.GVK().Group, Resource: "machines"}
}

func (kinds MachineKinds) words() string {
	var words []string
	for _, kind := range kinds {
		words = append(words, kind.GVK().Kind+" of "+kind.GVK().Group)
	}
	return phrase.Or(words)
}

// Machine refers to an object that owns the machine of a node.
type Machine struct {
	Kind            MachineKind
	Namespace, Name string
}

func (m Machine) String() string {
	name := strings.TrimPrefix(m.Namespace+"/"+m.Name, "/")
	return fmt.Sprintf("%s %.300s of %s", m.Kind.GVK().Kind, name, m.Kind.GVK().Group)
}

// mayOwn returns true if an object of these kinds may own the machine of the node. Nodes do not name
// our own Machines.
func (kinds MachineKinds) mayOwn(node *corev1.Node) bool {
	return slices.Contains(kinds, OwnMachine) || slices.ContainsFunc(namedBy(node), func(m Machine) bool { return slices.Contains(kinds, m.Kind) })
}

// namedBy returns the objects that a node names as owners of its machine. Its kubelet may have written
// that, so it proves nothing.
func namedBy(node *corev1.Node) (named []Machine) {
	if name := node.Annotations["cluster.x-k8s.io/machine"]; name != "" {
		named = append(named, Machine{Kind: ClusterAPI, Namespace: node.Annotations["cluster.x-k8s.io/cluster-namespace"], Name: name})
	}
	if namespace, name, found := strings.Cut(node.Annotations["machine.openshift.io/machine"], "/"); found {
		named = append(named, Machine{Kind: OpenShift, Namespace: namespace, Name: name})
	}
	for _, owner := range node.OwnerReferences {
		if group, _, _ := strings.Cut(owner.APIVersion, "/"); group == claimsGroup && owner.Kind == claimKind {
			named = append(named, Machine{Kind: Karpenter, Name: owner.Name})
		}
	}
	return named
}

const replaceDisabled = "Ebbtide may not delete machines: set the chart value rollouts.replace"

// MachineOf returns the object of these kinds that owns the machine of a node. Own are our Machines
// that name the node. It fails if there is none, or more than one.
func (kinds MachineKinds) MachineOf(node *corev1.Node, own []Machine) (Machine, error) {
	owners := append(slices.Clone(own), namedBy(node)...)
	var words []string
	for _, one := range owners {
		words = append(words, one.String())
	}
	switch {
	case len(kinds) == 0:
		return Machine{}, errors.New(replaceDisabled)
	case len(owners) == 0:
		return Machine{}, fmt.Errorf("the node names no owner of its machine; looked for a %s", kinds.words())
	case len(owners) > 1:
		return Machine{}, fmt.Errorf("the node has several owners of its machine: %s", strings.Join(words, ", "))
	case !slices.Contains(kinds, owners[0].Kind):
		return Machine{}, fmt.Errorf("%s owns the machine of the node, and the chart value rollouts.replace does not have %s", words[0], owners[0].Kind)
	}
	return owners[0], nil
}

// Check returns why an object does not own the machine of a node, by the status that its own
// controller writes; nil if it does.
func (k MachineKind) Check(object *unstructured.Unstructured, node *corev1.Node) error {
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(object.Object, path...)
		return value
	}
	m := bridge.Read(object)
	owns := m.IsNode(node)
	switch k {
	case OwnMachine:
		owns = text("status", "nodeRef", "uid") == string(node.UID) && node.UID != ""
	case Karpenter:
		m.Node = text("status", "nodeName")
		owns = m.Node == node.Name && node.Spec.ProviderID != "" && text("status", "providerID") == node.Spec.ProviderID
	}
	switch {
	case m.Node != node.Name:
		return fmt.Errorf("its status names node %.100q", m.Node)
	case !owns:
		return errors.New("it differs from the node in its provider ID, cluster or UID")
	case (k == ClusterAPI || k == OpenShift) && metav1.GetControllerOf(object) == nil:
		return errors.New("no controller owns it, so that nothing would make another one")
	}
	return nil
}
