package preflight

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/surge"
)

// Snapshot is everything that a forecast reads. It is never changed by Of.
type Snapshot struct {
	// World holds the input of the NodeMaintenance controller: all Maintenances, at least the Nodes
	// that they select, and at least the Pods of these nodes. A cluster without Ebbtide has no
	// Maintenances.
	World maintenance.Snapshot
	// Maintenance is forecast as if in stage Drain. It replaces one of that name in World.
	Maintenance *v1alpha1.NodeMaintenance
	// Unscheduled are the pods of the cluster that are on no node yet, in any order.
	Unscheduled []*corev1.Pod
	// Owners holds the objects that recreate pods.
	Owners Owners
	// Surge says which Deployments surge; empty is surge.Annotated.
	Surge surge.Mode
	// Place returns a new Placer of the cluster. If it is nil, every pod finds a node, which is
	// reported.
	Place func() Placer
	// Ignores lists the limits of the Placer, one per line.
	Ignores []string
	// Waits has the nodes that would wait for a NodeBudget, with its state.
	Waits map[string]string
	// Unread are the kinds of objects that could not be read.
	Unread []Unread
}

// Owners lists the objects of all namespaces that create pods, or that decide about surges and lost
// data, in any order.
type Owners struct {
	Deployments  []*appsv1.Deployment
	ReplicaSets  []*appsv1.ReplicaSet
	StatefulSets []*appsv1.StatefulSet
	Jobs         []*batchv1.Job
	Claims       []*corev1.PersistentVolumeClaim
	Volumes      []*corev1.PersistentVolume
}

// Unread is a kind of objects that could not be read.
type Unread struct {
	// Kind is such as PodDisruptionBudget.
	Kind string `json:"kind"`
	// Namespace is the only one that could not be read; empty is all of them.
	Namespace string `json:"namespace,omitempty"`
	// Why is such as the API server's answer.
	Why string `json:"why"`
	// Consequence says what is unknown as a result. Of fills it in.
	Consequence string `json:"consequence,omitempty"`
}

// Placer estimates the scheduler's choices and learns of every change.
type Placer interface {
	// Place puts a copy of a pod on a node, or says why none fits.
	Place(pod *corev1.Pod) (node, why string)
	// Remove forgets a pod, by its UID, or by the pod that Place was given.
	Remove(pod *corev1.Pod)
	Cordon(node string)
}
