package kube

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

var keptAnnotations = []string{
	"evacuation.coordination.k8s.io/",
	"ebbtide.dev/",
	corev1.MirrorPodAnnotationKey,
	corev1.PodDeletionCost,
	// These relate a node to a Machine of another controller.
	"cluster.x-k8s.io/machine",
	"cluster.x-k8s.io/cluster-name",
	"machine.openshift.io/machine",
	v1alpha1.KarpenterDoNotDisruptAnnotation,
	v1alpha1.ScaleDownDisabledAnnotation,
}

var keptNodeConditions = []corev1.NodeConditionType{
	corev1.NodeReady,
	v1alpha1.NodeMaintenancePlanned,
	v1alpha1.NodeDrainInProgress,
	v1alpha1.NodeDrained,
	v1alpha1.NodeMaintenanceInProgress,
}

// StripPod returns the parts of a pod that decisions read. Start times of containers are only kept
// for pods that ask to stay. The result shares maps and slices with the argument.
func StripPod(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: stripMeta(&pod.ObjectMeta),
		Spec: corev1.PodSpec{
			Volumes:                       attachable(pod.Spec.Volumes),
			NodeName:                      pod.Spec.NodeName,
			Priority:                      pod.Spec.Priority,
			TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds,
			Tolerations:                   tolerations(pod.Spec.Tolerations),
			SchedulingGates:               pod.Spec.SchedulingGates,
			Affinity:                      affinityOfGated(pod),
			EvictionResponders:            pod.Spec.EvictionResponders,
			SchedulingGroup:               pod.Spec.SchedulingGroup,
		},
		Status: corev1.PodStatus{
			Phase:                 pod.Status.Phase,
			Conditions:            conditions(pod),
			InitContainerStatuses: startsOfStaying(pod, pod.Status.InitContainerStatuses),
			ContainerStatuses:     startsOfStaying(pod, pod.Status.ContainerStatuses),
		},
	}
}

// StripNode returns the parts of a node that decisions read. The result shares maps and slices with
// the argument.
func StripNode(node *corev1.Node) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: stripMeta(&node.ObjectMeta),
		Spec: corev1.NodeSpec{
			ProviderID:    node.Spec.ProviderID,
			Unschedulable: node.Spec.Unschedulable,
			Taints:        node.Spec.Taints,
		},
		Status: corev1.NodeStatus{
			Conditions:      nodeConditions(node.Status.Conditions),
			VolumesAttached: node.Status.VolumesAttached,
			NodeInfo:        nodeInfo(&node.Status.NodeInfo),
		},
	}
}

func nodeInfo(info *corev1.NodeSystemInfo) corev1.NodeSystemInfo {
	return corev1.NodeSystemInfo{
		BootID: info.BootID, KubeletVersion: info.KubeletVersion, KernelVersion: info.KernelVersion,
		OSImage: info.OSImage, ContainerRuntimeVersion: info.ContainerRuntimeVersion,
	}
}

func stripMeta(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:                       meta.Name,
		Namespace:                  meta.Namespace,
		UID:                        meta.UID,
		ResourceVersion:            meta.ResourceVersion,
		Generation:                 meta.Generation,
		CreationTimestamp:          meta.CreationTimestamp,
		DeletionTimestamp:          meta.DeletionTimestamp,
		DeletionGracePeriodSeconds: meta.DeletionGracePeriodSeconds,
		Labels:                     meta.Labels,
		Annotations:                stripAnnotations(meta.Annotations),
		OwnerReferences:            meta.OwnerReferences,
		Finalizers:                 meta.Finalizers,
	}
}

func stripAnnotations(annotations map[string]string) map[string]string {
	var kept map[string]string
	for key, value := range annotations {
		if !keepAnnotation(key) {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[key] = value
	}
	return kept
}

func keepAnnotation(key string) bool {
	return slices.ContainsFunc(keptAnnotations, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// usualTolerations are the defaults of the API server.
var usualTolerations = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
}

// tolerations shares the usual ones, which would be a tenth of a pod in the cache.
func tolerations(own []corev1.Toleration) []corev1.Toleration {
	if equality.Semantic.DeepEqual(own, usualTolerations) {
		return usualTolerations
	}
	return own
}

// affinityOfGated keeps the affinity of a DaemonSet pod only while a gate holds it back.
func affinityOfGated(pod *corev1.Pod) *corev1.Affinity {
	if len(pod.Spec.SchedulingGates) == 0 || pod.Spec.Affinity == nil {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: pod.Spec.Affinity.NodeAffinity}
}

const maxScheduling = 512

func conditions(pod *corev1.Pod) []corev1.PodCondition {
	kept := readyCondition(pod.Status.Conditions)
	if pod.Spec.NodeName != "" {
		return kept
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			kept = append(kept, corev1.PodCondition{
				Type: c.Type, Status: c.Status, Reason: c.Reason, Message: strings.ToValidUTF8(c.Message[:min(len(c.Message), maxScheduling)], ""), LastTransitionTime: c.LastTransitionTime,
			})
		}
	}
	return kept
}

func readyCondition(conditions []corev1.PodCondition) []corev1.PodCondition {
	for i := range conditions {
		if ready := &conditions[i]; ready.Type == corev1.PodReady {
			return []corev1.PodCondition{{
				Type:               corev1.PodReady,
				Status:             ready.Status,
				Reason:             ready.Reason,
				LastTransitionTime: ready.LastTransitionTime,
			}}
		}
	}
	return nil
}

// startsOfStaying keeps the start times of containers only for pods that ask to stay.
func startsOfStaying(pod *corev1.Pod, statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	if _, labelled := pod.Labels[v1alpha1.OnUpgradeLabel]; !labelled {
		return nil
	}
	kept := make([]corev1.ContainerStatus, 0, len(statuses))
	for i := range statuses {
		kept = append(kept, corev1.ContainerStatus{
			Name: statuses[i].Name, ContainerID: statuses[i].ContainerID, State: corev1.ContainerState{Running: statuses[i].State.Running},
		})
	}
	return kept
}

// maxTrueConditions bounds the conditions of others that a kubelet can have us keep for its node.
const maxTrueConditions = 64

// nodeConditions keeps conditions of others without their texts while they are True: a NodeRollout
// can ask for any.
func nodeConditions(conditions []corev1.NodeCondition) []corev1.NodeCondition {
	var kept []corev1.NodeCondition
	others := 0
	for i := range conditions {
		switch c := &conditions[i]; {
		case slices.Contains(keptNodeConditions, c.Type):
			kept = append(kept, *c)
		case c.Status == corev1.ConditionTrue && others < maxTrueConditions:
			kept = append(kept, corev1.NodeCondition{
				Type: c.Type, Status: c.Status, LastHeartbeatTime: c.LastHeartbeatTime, LastTransitionTime: c.LastTransitionTime,
			})
			others++
		}
	}
	return kept
}
