package event

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

var ours = v1alpha1.SchemeGroupVersion.String()

func reference(version, kind string, object metav1.Object) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: version, Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID()}
}

func exact(version, kind string, object metav1.Object) corev1.ObjectReference {
	to := reference(version, kind, object)
	to.ResourceVersion = object.GetResourceVersion()
	return to
}

func (t template) onNode(node *corev1.Node, message string) Event {
	return t.on(reference("v1", "Node", node), message)
}

func (t template) onPod(pod *corev1.Pod, message string) Event {
	return t.on(reference("v1", "Pod", pod), message)
}

func (t template) onSurgingPod(pod *corev1.Pod, message string) Event {
	return t.on(exact("v1", "Pod", pod), message)
}

func (t template) onMaintenance(m *v1alpha1.NodeMaintenance, message string) Event {
	return t.on(reference(ours, "NodeMaintenance", m), message)
}

func (t template) onEvacuation(e *v1alpha1.Evacuation, message string) Event {
	return t.on(exact(ours, "Evacuation", e), message)
}

func (t template) onBudget(b *policyv1.PodDisruptionBudget, message string) Event {
	return t.on(exact("policy/v1", "PodDisruptionBudget", b), message)
}

func (t template) onMachine(m *v1alpha1.Machine, message string) Event {
	t.action = "Create"
	if m.DeletionTimestamp != nil {
		t.action = "Delete"
	}
	return t.on(exact(ours, "Machine", m), message)
}

func (t template) onLease(namespace, name, message string) Event {
	return t.on(corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: namespace, Name: name}, message)
}

// onDrain returns the event on the maintenance of a record and on its node, without the node's UID.
func (t template) onDrain(r *v1alpha1.DrainRecord, message string) []Event {
	node := corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: r.Name, UID: types.UID(r.Name)}
	return []Event{t.on(maintenanceOf(r), message), t.on(node, message)}
}

func maintenanceOf(r *v1alpha1.DrainRecord) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: ours, Kind: "NodeMaintenance", Name: r.Spec.MaintenanceRef.Name, UID: r.Spec.MaintenanceRef.UID}
}

// onAgent returns an event on the agent's own Node, if there is one: it writes none on others.
func (t template) onAgent(node *corev1.Node, message string) []Event {
	if node == nil {
		return nil
	}
	return []Event{t.onNode(node, message)}
}
