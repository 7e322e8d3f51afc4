package kube

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// keptAnnotations are prefixes of the annotations that decisions read.
var keptAnnotations = []string{
	"evacuation.coordination.k8s.io/",
	"ebbtide.dev/",
	corev1.MirrorPodAnnotationKey,
	corev1.PodDeletionCost,
	// By these a node says of which Machine of another controller it is.
	"cluster.x-k8s.io/machine",
	"cluster.x-k8s.io/cluster-name",
	"machine.openshift.io/machine",
	v1alpha1.KarpenterDoNotDisruptAnnotation,
	v1alpha1.ScaleDownDisabledAnnotation,
}

// keptNodeConditions are the node conditions that decisions read.
var keptNodeConditions = []corev1.NodeConditionType{
	corev1.NodeReady,
	v1alpha1.NodeMaintenancePlanned,
	v1alpha1.NodeDrainInProgress,
	v1alpha1.NodeDrained,
	v1alpha1.NodeMaintenanceInProgress,
}

// StripPod returns what decisions read of a pod: who it is, whose it is, where
// it runs, how important it is, what it tolerates, what holds it back from its
// node, which volumes may be attached for it, and whether it is ready, done or on
// its way out, and who responds to its eviction; of one that asks to stay also when its
// containers were started. The result shares maps and slices with the argument.
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

// StripNode returns what decisions read of a node: its identity and labels, by
// what its provider knows it, its cordon with the ledger, its taints, which
// volumes are attached, which boot it is and what it runs, and whether it is ready or announces a
// maintenance. The result shares maps and slices with the argument.
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

// usualTolerations are those that the API server gives to every pod that says
// nothing else.
var usualTolerations = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
}

// tolerations are those of a pod. Pods with the usual ones share them: they would
// be a tenth of what a pod takes in the cache.
func tolerations(own []corev1.Toleration) []corev1.Toleration {
	if equality.Semantic.DeepEqual(own, usualTolerations) {
		return usualTolerations
	}
	return own
}

// affinityOfGated keeps what names the node of a DaemonSet pod only while the pod
// is held back from it.
func affinityOfGated(pod *corev1.Pod) *corev1.Affinity {
	if len(pod.Spec.SchedulingGates) == 0 || pod.Spec.Affinity == nil {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: pod.Spec.Affinity.NodeAffinity}
}

// maxScheduling is how much of the words of a scheduler is kept.
const maxScheduling = 512

// conditions are whether a pod is ready, and of one that is on no node why.
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

// startsOfStaying tells the containers that run in a pod from those before them. Only
// of pods that ask to stay does anybody read that.
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

func nodeConditions(conditions []corev1.NodeCondition) []corev1.NodeCondition {
	var kept []corev1.NodeCondition
	for i := range conditions {
		if slices.Contains(keptNodeConditions, conditions[i].Type) {
			kept = append(kept, conditions[i])
		}
	}
	return kept
}
