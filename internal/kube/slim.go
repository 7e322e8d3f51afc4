package kube

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// maxKept bounds kept annotations of others; no decision reads a longer one.
const maxKept = 256

// Whole keeps an object without managed fields and long annotations.
func Whole[P client.Object](object P) P {
	object.SetManagedFields(nil)
	maps.DeleteFunc(object.GetAnnotations(), func(key, value string) bool {
		return len(value) > maxKept && !strings.Contains(key, v1alpha1.SchemeGroupVersion.Group)
	})
	return object
}

// SlimPod keeps what the scheduler or a drain depends on, without the memory of the page.
func SlimPod(from *corev1.Pod) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: Whole(from).ObjectMeta, Spec: slimSpec(from.Spec)}
	status := &from.Status
	pod.Status = corev1.PodStatus{
		Phase: status.Phase, Reason: status.Reason, Conditions: status.Conditions, StartTime: status.StartTime,
		Resources: status.Resources, AllocatedResources: status.AllocatedResources,
		ContainerStatuses: slimStatuses(status.ContainerStatuses), InitContainerStatuses: slimStatuses(status.InitContainerStatuses),
	}
	for i := range pod.Status.Conditions {
		pod.Status.Conditions[i].Message = ""
	}
	return pod
}

// slimStatuses keeps the resources that a kubelet has granted.
func slimStatuses(from []corev1.ContainerStatus) (kept []corev1.ContainerStatus) {
	for i := range from {
		if from[i].Resources != nil || from[i].AllocatedResources != nil {
			kept = append(kept, corev1.ContainerStatus{Name: from[i].Name, Resources: from[i].Resources, AllocatedResources: from[i].AllocatedResources})
		}
	}
	return kept
}

func slimSpec(spec corev1.PodSpec) corev1.PodSpec {
	spec.Containers, spec.InitContainers = slimContainers(spec.Containers), slimContainers(spec.InitContainers)
	spec.EphemeralContainers, spec.ImagePullSecrets, spec.HostAliases, spec.SecurityContext, spec.DNSConfig = nil, nil, nil, nil, nil
	var volumes []corev1.Volume
	for i := range spec.Volumes {
		// Other volumes can be recreated on any node.
		if v := &spec.Volumes[i]; v.EmptyDir != nil || v.HostPath != nil || v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.CSI != nil {
			volumes = append(volumes, *v)
		}
	}
	spec.Volumes = volumes
	return spec
}

func slimContainers(from []corev1.Container) []corev1.Container {
	if len(from) == 0 {
		return nil
	}
	kept := make([]corev1.Container, len(from))
	for i := range from {
		kept[i] = corev1.Container{
			Name: from[i].Name, Resources: from[i].Resources, Ports: from[i].Ports, RestartPolicy: from[i].RestartPolicy,
		}
	}
	return kept
}

// SlimNode keeps what the scheduler depends on, without the memory of the page.
func SlimNode(from *corev1.Node) *corev1.Node {
	node := &corev1.Node{ObjectMeta: Whole(from).ObjectMeta, Spec: from.Spec}
	node.Status.Allocatable, node.Status.Conditions = from.Status.Allocatable, from.Status.Conditions
	node.Status.NodeInfo = corev1.NodeSystemInfo{BootID: from.Status.NodeInfo.BootID}
	return node
}
