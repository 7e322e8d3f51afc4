package surge

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
)

// Snapshot holds the input about one Deployment. Decide does not change it.
type Snapshot struct {
	Now         time.Time
	ClockSkewed bool
	// Mode says whether anything may be detached.
	Mode Mode
	Name string
	// Deployment is nil if it is gone.
	Deployment *appsv1.Deployment
	// ReplicaSets are the Deployment's, and those that its detached pods came from.
	ReplicaSets []*appsv1.ReplicaSet
	// Pods holds those of its ReplicaSets, and those that our annotation assigns to it.
	Pods        []*corev1.Pod
	Evacuations []*v1alpha1.Evacuation
	// Endpoints are the Services that lead to each of the pods, by its UID.
	Endpoints map[types.UID][]Endpoint
	// Claims are the volumes that the pods share.
	Claims []*corev1.PersistentVolumeClaim
	// Unread says which claims could not be read; nothing is detached then.
	Unread string
}

// Result names the end of the evacuation of one pod.
type Result string

const (
	// Completed means that the pod has been replaced.
	Completed Result = "completed"
	// GaveUp means that no replacement became available in time.
	GaveUp Result = "gaveup"
	// Cancelled means that the pod went back, because nobody requests it any more.
	Cancelled Result = "cancelled"
	// Refused means that the pod cannot be surged at all.
	Refused Result = "ineligible"
)

// Decision holds the next writes for the pods of a Deployment.
type Decision struct {
	Moves        []Move
	RequeueAfter time.Duration
}

// Move holds ordered writes for one pod. A failure leaves the rest to the next decision.
type Move []Write

// Write changes or deletes a pod, or writes an Evacuation's status, under its resource version.
type Write struct {
	// Pod is the pod as it was read; nil if the write is not about one.
	Pod *corev1.Pod
	// Changed is the pod as it is to be; nil deletes it.
	Changed *corev1.Pod
	// Evacuation is the object as it was read; nil if the write is not about one.
	Evacuation *v1alpha1.Evacuation
	Status     *v1alpha1.EvacuationStatus
	Message    string
	// Result is counted with the write; empty if it ends nothing.
	Result Result
	Events []event.Event
}
