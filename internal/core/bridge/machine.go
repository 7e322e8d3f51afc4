package bridge

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Kinds that are bridged.
var (
	ClusterAPIMachine = schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Machine"}
	ClusterAPICluster = schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"}
	ClusterAPIRule    = schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "MachineDrainRule"}
	OpenShiftMachine  = schema.GroupVersionKind{Group: "machine.openshift.io", Version: "v1beta1", Kind: "Machine"}
	OpenShiftSet      = schema.GroupVersionKind{Group: "machine.openshift.io", Version: "v1beta1", Kind: "MachineSet"}
)

// Keys of Cluster API and OpenShift.
const (
	pausedAnnotation = "cluster.x-k8s.io/paused"
	// These Cluster API writes on Nodes; OpenShift has one.
	nodeMachineAnnotation   = "cluster.x-k8s.io/machine"
	nodeClusterAnnotation   = "cluster.x-k8s.io/cluster-name"
	nodeNamespaceAnnotation = "cluster.x-k8s.io/cluster-namespace"
	nodeOpenShiftAnnotation = "machine.openshift.io/machine"
	openShiftExclude        = "machine.openshift.io/exclude-node-draining"
	openShiftOwnerKind      = "MachineSet"
)

// Hook is one of another client.
type Hook struct{ Name, Owner string }

// Machine holds the fields that are read of a Machine of another controller.
type Machine struct {
	Ref corev1.ObjectReference
	// Bridge names the project that owns it.
	Bridge Name
	// Around is the name of its Cluster, or of its MachineSet; empty if it has none.
	Around string
	// Opt is its own DrainOptLabel, Labels are all of its labels.
	Opt      string
	Labels   map[string]string
	Deleting bool
	// Node is the name of its node, ProviderID what its infrastructure calls it.
	Node, ProviderID string
	Hooked           bool
	Others           []Hook
	// Taken is true if another client uses the name of our hook.
	Taken bool
	// Excluded is the annotation by which somebody wants it not to be drained; else empty.
	Excluded string
	// Waits is true while the controller waits for pre-drain hooks, LaterStep its step after them.
	Waits     bool
	LaterStep string
	// WaitsSince is the time since which it waits; zero if it does not say.
	WaitsSince time.Time
	// DrainStart is the time at which its drain began; zero if it has not, and for OpenShift.
	DrainStart time.Time
	// DrainTimeout limits its drain; 0 is forever.
	DrainTimeout time.Duration
	Paused       bool
	// Drained is our condition; nil if it has none.
	Drained *metav1.Condition
	// Infrastructure names the object that stands for its instance, of Cluster API.
	Infrastructure Infrastructure
}

// Infrastructure names the object that stands for the instance of a Machine.
type Infrastructure struct {
	Group, Kind, Name string
	// Gone is true if the Machine's controller says that there is none any more.
	Gone bool
}

// Around is the Cluster of a Machine of Cluster API, or the MachineSet of one of OpenShift.
type Around struct {
	Opt              string
	Labels           map[string]string
	UID              types.UID
	Deleting, Paused bool
}

// ReadAround reads what Machines are in.
func ReadAround(object *unstructured.Unstructured) Around {
	paused, _, _ := unstructured.NestedBool(object.Object, "spec", "paused")
	_, annotated := object.GetAnnotations()[pausedAnnotation]
	return Around{
		Opt: object.GetLabels()[v1alpha1.DrainOptLabel], Labels: object.GetLabels(), UID: object.GetUID(),
		Deleting: object.GetDeletionTimestamp() != nil, Paused: paused || annotated,
	}
}

// Read reads a Machine of either controller. Fields of a wrong type count as missing.
func Read(object *unstructured.Unstructured) Machine {
	m := Machine{
		Ref: corev1.ObjectReference{
			APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		},
		Opt: object.GetLabels()[v1alpha1.DrainOptLabel], Labels: object.GetLabels(), Deleting: object.GetDeletionTimestamp() != nil,
		Node: text(object, "status", "nodeRef", "name"), ProviderID: text(object, "spec", "providerID"),
	}
	if object.GroupVersionKind().Group == OpenShiftMachine.Group {
		m.readOpenShift(object)
	} else {
		m.readClusterAPI(object)
	}
	slices.SortFunc(m.Others, func(a, b Hook) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Owner, b.Owner)) })
	return m
}

func text(object *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(object.Object, path...)
	return value
}

const waitsReason = "WaitingForPreDrainHook"

// goneReasons are reasons of InfrastructureReady for a missing infrastructure object.
var goneReasons = []string{"Deleted", "DoesNotExist"}

// InfrastructureGroup is the group of infrastructure kinds in the contract of Cluster API.
const InfrastructureGroup = "infrastructure.cluster.x-k8s.io"

var beforeHooks = []string{"", waitsReason, "Deleting", "NotDeleting", "InternalError"}

func (m *Machine) readClusterAPI(object *unstructured.Unstructured) {
	m.Bridge, m.Around = ClusterAPI, text(object, "spec", "clusterName")
	for key, owner := range object.GetAnnotations() {
		name, isHook := strings.CutPrefix(key, v1alpha1.PreDrainHookAnnotationPrefix)
		switch {
		case key == v1alpha1.BridgeHookAnnotation && owner == v1alpha1.BridgeOwner:
			m.Hooked = true
		case isHook:
			m.Taken = m.Taken || key == v1alpha1.BridgeHookAnnotation
			m.Others = append(m.Others, Hook{strings.TrimPrefix(name, "/"), owner})
		case key == v1alpha1.ExcludeNodeDrainingAnnotation:
			m.Excluded = key
		case key == pausedAnnotation:
			m.Paused = true
		case key == v1alpha1.BridgeDrainStartAnnotation:
			m.DrainStart = timeOf(owner)
		}
	}
	seconds, _, _ := unstructured.NestedInt64(object.Object, "spec", "deletion", "nodeDrainTimeoutSeconds")
	m.DrainTimeout = time.Duration(max(seconds, 0)) * time.Second
	m.Infrastructure = Infrastructure{
		Group: text(object, "spec", "infrastructureRef", "apiGroup"), Kind: text(object, "spec", "infrastructureRef", "kind"),
		Name: text(object, "spec", "infrastructureRef", "name"), Gone: slices.Contains(goneReasons, reasonOf(object, "InfrastructureReady", "False")),
	}
	// What Cluster API does with a Machine that is being deleted.
	reason := reasonOf(object, "Deleting", "True")
	m.Drained = condition(object, v1alpha1.ConditionBridgeDrained)
	m.Waits = reason == waitsReason
	if !slices.Contains(beforeHooks, reason) {
		m.LaterStep = reason
	}
	m.WaitsSince = timeOf(text(object, "status", "deletion", "waitForPreDrainHookStartTime"))
}

func timeOf(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at
}

func reasonOf(object *unstructured.Unstructured, kind, status string) string {
	one := conditionOf(object, kind)
	if one["status"] != status {
		return ""
	}
	reason, _ := one["reason"].(string)
	return reason
}

func condition(object *unstructured.Unstructured, kind string) *metav1.Condition {
	c := &metav1.Condition{}
	fields := conditionOf(object, kind)
	if fields == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(fields, c) != nil {
		return nil
	}
	return c
}

// conditionOf returns the fields of a condition, which must not be changed; nil if there is none.
func conditionOf(object *unstructured.Unstructured, kind string) map[string]any {
	field, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "conditions")
	conditions, _ := field.([]any)
	for _, one := range conditions {
		if fields, _ := one.(map[string]any); fields["type"] == kind {
			return fields
		}
	}
	return nil
}

func (m *Machine) readOpenShift(object *unstructured.Unstructured) {
	m.Bridge = OpenShift
	for _, owner := range object.GetOwnerReferences() {
		if owner.Kind == openShiftOwnerKind && owner.Controller != nil && *owner.Controller {
			m.Around = owner.Name
		}
	}
	hooks, _, _ := unstructured.NestedSlice(object.Object, "spec", "lifecycleHooks", "preDrain")
	for _, hook := range hooks {
		one, _ := hook.(map[string]any)
		name, _ := one["name"].(string)
		owner, _ := one["owner"].(string)
		if name == v1alpha1.BridgeHookName && owner == v1alpha1.BridgeOwner {
			m.Hooked = true
		} else {
			m.Others = append(m.Others, Hook{name, owner})
		}
	}
	if _, excluded := object.GetAnnotations()[openShiftExclude]; excluded {
		m.Excluded = openShiftExclude
	}
	// It asks hooks in this phase and in no other.
	m.Waits = text(object, "status", "phase") == "Deleting"
	if since := object.GetDeletionTimestamp(); since != nil {
		m.WaitsSince = since.Time
	}
}

// IsNode reports whether a node of this cluster belongs to the Machine. Users choose names, and
// Machines may be of another cluster, so only the annotations that the Machine's controller sets on
// the node count.
func (m *Machine) IsNode(node *corev1.Node) bool {
	if node == nil || m.Node == "" || node.Name != m.Node || m.ProviderID == "" || node.Spec.ProviderID != m.ProviderID {
		return false
	}
	if m.Bridge == OpenShift {
		return node.Annotations[nodeOpenShiftAnnotation] == m.Ref.Namespace+"/"+m.Ref.Name
	}
	return node.Annotations[nodeMachineAnnotation] == m.Ref.Name && node.Annotations[nodeClusterAnnotation] == m.Around &&
		node.Annotations[nodeNamespaceAnnotation] == m.Ref.Namespace
}

// NodeOf returns the Machine that a node of this cluster says it is of.
func NodeOf(node *corev1.Node) (bridge Name, namespace, name string) {
	if name = node.Annotations[nodeMachineAnnotation]; name != "" {
		return ClusterAPI, node.Annotations[nodeNamespaceAnnotation], name
	}
	if namespace, name, ok := strings.Cut(node.Annotations[nodeOpenShiftAnnotation], "/"); ok {
		return OpenShift, namespace, name
	}
	return "", "", ""
}
