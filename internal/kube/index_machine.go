package kube

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// NodeProvider extracts NodeProviderField.
func NodeProvider(object client.Object) []string {
	return by(object, func(node *corev1.Node) string { return node.Spec.ProviderID })
}

// AttachmentNode extracts AttachmentNodeField.
func AttachmentNode(object client.Object) []string {
	return by(object, func(attachment *storagev1.VolumeAttachment) string { return attachment.Spec.NodeName })
}

// VolumeHandles extracts VolumeHandleField.
func VolumeHandles(object client.Object) []string {
	return by(object, func(volume *corev1.PersistentVolume) string {
		if volume.Spec.CSI == nil {
			return ""
		}
		return VolumeHandle(volume.Spec.CSI.Driver, volume.Spec.CSI.VolumeHandle)
	})
}

// VolumeHandle identifies a CSI volume like the names of attached volumes.
func VolumeHandle(driver, handle string) string { return driver + "^" + handle }

func machineCluster(object client.Object) []string {
	return by(object, func(machine *v1alpha1.Machine) string { return machine.Spec.ClusterName })
}

func machineProvider(object client.Object) []string {
	return by(object, func(machine *v1alpha1.Machine) string { return machine.Spec.ProviderID })
}

func machineNode(object client.Object) []string {
	return by(object, func(machine *v1alpha1.Machine) string {
		if machine.Status.NodeRef == nil {
			return ""
		}
		return machine.Status.NodeRef.Name
	})
}

// MachineRefs extracts MachineRefField.
func MachineRefs(object client.Object) []string {
	machine, ok := object.(*v1alpha1.Machine)
	if !ok {
		return nil
	}
	keys := []string{refKey(machine.Spec.InfrastructureRef)}
	if config := machine.Spec.Bootstrap.ConfigRef; config != nil {
		keys = append(keys, refKey(*config))
	}
	return keys
}

// ClusterRef extracts ClusterRefField.
func ClusterRef(object client.Object) []string {
	return by(object, func(cluster *v1alpha1.Cluster) string {
		if cluster.Spec.ControlPlane.Ref == nil {
			return ""
		}
		return refKey(*cluster.Spec.ControlPlane.Ref)
	})
}

func refKey(ref v1alpha1.ObjectReference) string {
	return RefKey(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), ref.Name)
}

// RefKey identifies an object of a namespace in any version.
func RefKey(kind schema.GroupKind, name string) string { return kind.String() + "/" + name }
