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
	// Maintenance is the one that is asked about. It is taken to be in stage Drain,
	// whatever its stage is; one of World with its name makes room for it.
	Maintenance *v1alpha1.NodeMaintenance
	// Unscheduled are the pods of the cluster that are on no node yet, in any order.
	Unscheduled []*corev1.Pod
	// Owners holds the objects that recreate pods.
	Owners Owners
	// Surge says which Deployments surge; empty is surge.Annotated.
	Surge surge.Mode
	// Place makes a Placer of the cluster as it is, a new one each time. If it is nil, every
	// pod is thought to find a node, and the forecast says that nobody has looked.
	Place func() Placer
	// Ignores lists the limits of the Placer, one per line.
	Ignores []string
	// Unread are the kinds of objects that could not be read.
	Unread []Unread
}

// Owners are the objects that make pods, and what these are made of, of all namespaces,
// in any order. Deployments and ReplicaSets tell who surges, StatefulSets and Jobs when they make
// other pods, and Claims and Volumes who cannot surge and what data stays behind. The specs
// are read, and how often Jobs have failed.
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

// Placer estimates where the scheduler would put pods. It knows the pods and nodes of a
// cluster and learns of every change.
type Placer interface {
	// Place puts a copy of a pod on the node that the scheduler would take, and
	// remembers it there; without one it says why none fits, in one line.
	Place(pod *corev1.Pod) (node, why string)
	// Remove forgets a pod, by its UID, or by the pod that Place was given.
	Remove(pod *corev1.Pod)
	Cordon(node string)
}
