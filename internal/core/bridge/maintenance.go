package bridge

import (
	"crypto/sha256"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
)

const (
	longestName = 253
	// hashLength counts the digits of the hash that ends a shortened name.
	hashLength = 32
)

// MaintenanceName returns "<bridge>.<namespace>.<name>", which is unique as the first two have no
// dots. A long name begins with "<bridge>-long." and ends in a hash.
func MaintenanceName(bridge Name, namespace, name string) string {
	plain := fmt.Sprintf("%s.%s.%s", bridge, namespace, name)
	if len(plain) <= longestName {
		return plain
	}
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(plain)))[:hashLength]
	return fmt.Sprintf("%s-long.%s.%s", bridge, namespace, name)[:longestName-hashLength] + sum
}

// FormerName returns the name in earlier versions, which two Machines could share; see MachineOf.
func FormerName(namespace, name string) string {
	plain := "machine-" + namespace + "-" + name
	if len(plain) <= longestName && !strings.Contains(namespace, "-") {
		return plain
	}
	sum := fmt.Sprintf("-%x", sha256.Sum256([]byte(namespace+"/"+name)))[:11]
	return strings.TrimRight(plain[:min(len(plain), longestName-len(sum))], "-.") + sum
}

// MachineOf returns the Machine for which a NodeMaintenance or a copied rule was made.
func MachineOf(object metav1.Object) (bridge Name, namespace, name string) {
	bridge = Name(object.GetLabels()[v1alpha1.BridgeLabel])
	if bridge == "" {
		return "", "", ""
	}
	namespace, name, ok := strings.Cut(object.GetAnnotations()[v1alpha1.BridgeMachineAnnotation], "/")
	if !ok {
		return "", "", ""
	}
	return bridge, namespace, name
}

// OfMachine reports whether a NodeMaintenance was made for a Machine, which goes with the node.
func OfMachine(maintenance *v1alpha1.NodeMaintenance) bool {
	_, _, machine := MachineOf(maintenance)
	return machine != ""
}

// Paused reports whether a NodeMaintenance for a Machine asks no pod to leave.
func Paused(maintenance *v1alpha1.NodeMaintenance) bool {
	return OfMachine(maintenance) && maintenance.Annotations[v1alpha1.BridgePausedAnnotation] == "true"
}

func paused(maintenance *v1alpha1.NodeMaintenance, wanted bool) *v1alpha1.NodeMaintenance {
	if Paused(maintenance) == wanted {
		return nil
	}
	changed := maintenance.DeepCopy()
	delete(changed.Annotations, v1alpha1.BridgePausedAnnotation)
	if wanted {
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, v1alpha1.BridgePausedAnnotation, "true")
	}
	return changed
}

// Leaves reports whether the node is drained because its Machine is deleted.
func Leaves(node string, maintenance *v1alpha1.NodeMaintenance) bool {
	return OfMachine(maintenance) && NodeUnder(maintenance) == node &&
		maintenance.Spec.Stage == v1alpha1.StageDrain && maintenance.DeletionTimestamp == nil
}

// uidsOf returns the UIDs of the Machine and node of a NodeMaintenance; empty in earlier versions.
func uidsOf(maintenance *v1alpha1.NodeMaintenance) (machine, node types.UID) {
	first, second, _ := strings.Cut(maintenance.Annotations[v1alpha1.BridgeUIDsAnnotation], "/")
	return types.UID(first), types.UID(second)
}

// maintenanceFor returns the NodeMaintenance for a Machine, with all defaults.
func maintenanceFor(m *Machine, node *corev1.Node) *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{
			Name:       MaintenanceName(m.Bridge, m.Ref.Namespace, m.Ref.Name),
			Finalizers: []string{v1alpha1.MaintenanceCompletionFinalizer},
			Labels:     map[string]string{v1alpha1.BridgeLabel: string(m.Bridge)},
			Annotations: map[string]string{
				v1alpha1.BridgeMachineAnnotation: m.Ref.Namespace + "/" + m.Ref.Name,
				v1alpha1.BridgeUIDsAnnotation:    fmt.Sprintf("%s/%s", m.Ref.UID, node.UID),
			},
		},
		Spec: v1alpha1.NodeMaintenanceSpec{
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{m.Node}},
			}}}},
			Stage: v1alpha1.StageDrain, DrainPlan: drainplan.Inject(nil), DrainDepth: v1alpha1.PodTypeDefault,
			Reason: fmt.Sprintf("Machine %s/%s is being deleted", m.Ref.Namespace, m.Ref.Name),
		},
	}
}

// NodeUnder returns the only node that a NodeMaintenance selects by name; empty if it selects
// otherwise.
func NodeUnder(maintenance *v1alpha1.NodeMaintenance) string {
	selector := maintenance.Spec.NodeSelector
	if selector == nil || len(selector.NodeSelectorTerms) != 1 {
		return ""
	}
	term := selector.NodeSelectorTerms[0]
	if len(term.MatchExpressions) > 0 || len(term.MatchFields) != 1 {
		return ""
	}
	field := term.MatchFields[0]
	if field.Key != metav1.ObjectNameField || field.Operator != corev1.NodeSelectorOpIn || len(field.Values) != 1 {
		return ""
	}
	return field.Values[0]
}

// left returns how many pods are to leave, as far as the maintenance has said.
func left(maintenance *v1alpha1.NodeMaintenance) (pods int32, said bool) {
	for i := range maintenance.Status.NodeStatuses {
		status := &maintenance.Status.NodeStatuses[i]
		pods += status.PodsPendingEvacuation + status.PodsEvacuating
		said = true
	}
	return pods, said
}

func drained(maintenance *v1alpha1.NodeMaintenance) bool {
	for i := range maintenance.Status.Conditions {
		c := &maintenance.Status.Conditions[i]
		if c.Type == v1alpha1.ConditionDrained {
			return c.Status == metav1.ConditionTrue && c.Reason == v1alpha1.ReasonDrained && c.ObservedGeneration == maintenance.Generation
		}
	}
	return false
}
