package surge

import (
	"encoding/json"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// detachedHash is the pod-template-hash of detached pods. Its dash matches no ReplicaSet.
const detachedHash = "detached-by-ebbtide"

// Reference names one incarnation of an object in the namespace of the pod.
type Reference struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// Record is v1alpha1.SurgeAnnotation. It stays until the pod is gone or back in a ReplicaSet.
type Record struct {
	// Pod identifies the owner of the record: a copy of the pod has the annotation too.
	Pod        types.UID   `json:"pod"`
	Deployment Reference   `json:"deployment"`
	ReplicaSet Reference   `json:"replicaSet"`
	Hash       string      `json:"hash"`
	Since      metav1.Time `json:"since"`
	// Need counts the other pods that have to be available before it may leave.
	Need int32 `json:"need"`
}

// replacement is v1alpha1.SurgeReplacementAnnotation, with the earlier deletion cost.
type replacement struct {
	Deployment Reference `json:"deployment"`
	For        types.UID `json:"for"`
	Cost       *string   `json:"cost,omitempty"`
}

// DeploymentOf returns the Deployment that our annotation on the pod names.
func DeploymentOf(pod *corev1.Pod) (Reference, bool) {
	if record, ok := recordOf(pod); ok {
		return record.Deployment, true
	}
	mark, ok := markOf(pod)
	return mark.Deployment, ok
}

// Detached reports whether a pod carries the record of its detachment.
func Detached(pod *corev1.Pod) bool {
	_, detached := recordOf(pod)
	return detached
}

// Lost reports whether a detached pod has no readable record.
func Lost(pod *corev1.Pod) bool {
	return pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == detachedHash && !Detached(pod)
}

// Home returns the ReplicaSet that a detached pod was taken from.
func Home(pod *corev1.Pod) (Reference, bool) {
	record, detached := recordOf(pod)
	return record.ReplicaSet, detached
}

func recordOf(pod *corev1.Pod) (record Record, ok bool) {
	text, annotated := pod.Annotations[v1alpha1.SurgeAnnotation]
	if !annotated || json.Unmarshal([]byte(text), &record) != nil {
		return Record{}, false
	}
	return record, record.Pod == pod.UID && record.Deployment.UID != "" && record.Hash != ""
}

func markOf(pod *corev1.Pod) (mark replacement, ok bool) {
	text, annotated := pod.Annotations[v1alpha1.SurgeReplacementAnnotation]
	if !annotated || json.Unmarshal([]byte(text), &mark) != nil {
		return replacement{}, false
	}
	return mark, mark.Deployment.UID != "" && mark.For != ""
}

// detach returns the pod with its record and a label that no ReplicaSet selects.
func detach(pod *corev1.Pod, record Record) *corev1.Pod {
	changed := changedCopy(pod)
	changed.Annotations[v1alpha1.SurgeAnnotation] = encode(record)
	changed.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = detachedHash
	return changed
}

// giveBackLabel restores the label. The record stays until the ReplicaSet has taken the pod back.
func giveBackLabel(pod *corev1.Pod, record Record) *corev1.Pod {
	changed := changedCopy(pod)
	changed.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = record.Hash
	return changed
}

func dropRecord(pod *corev1.Pod) *corev1.Pod {
	changed := changedCopy(pod)
	delete(changed.Annotations, v1alpha1.SurgeAnnotation)
	return changed
}

// mark returns the pod with a deletion cost by which its ReplicaSet removes it first.
func mark(pod *corev1.Pod, record replacement, cost int32) *corev1.Pod {
	changed := changedCopy(pod)
	if before, priced := pod.Annotations[corev1.PodDeletionCost]; priced {
		record.Cost = &before
	}
	changed.Annotations[v1alpha1.SurgeReplacementAnnotation] = encode(record)
	changed.Annotations[corev1.PodDeletionCost] = strconv.FormatInt(int64(cost), 10)
	return changed
}

func unmark(pod *corev1.Pod, record replacement) *corev1.Pod {
	changed := changedCopy(pod)
	delete(changed.Annotations, v1alpha1.SurgeReplacementAnnotation)
	delete(changed.Annotations, corev1.PodDeletionCost)
	if record.Cost != nil {
		changed.Annotations[corev1.PodDeletionCost] = *record.Cost
	}
	return changed
}

// deletionCost returns what a ReplicaSet reads; 0 if it says nothing.
func deletionCost(pod *corev1.Pod) int32 {
	cost, err := strconv.ParseInt(pod.Annotations[corev1.PodDeletionCost], 10, 32)
	if err != nil {
		return 0
	}
	return int32(cost)
}

func changedCopy(pod *corev1.Pod) *corev1.Pod {
	changed := *pod
	changed.Labels, changed.Annotations = maps.Clone(pod.Labels), maps.Clone(pod.Annotations)
	if changed.Labels == nil {
		changed.Labels = map[string]string{}
	}
	if changed.Annotations == nil {
		changed.Annotations = map[string]string{}
	}
	return &changed
}

// encode cannot fail: records are made of strings and numbers.
func encode(record any) string {
	text, err := json.Marshal(record)
	if err != nil {
		return ""
	}
	return string(text)
}
