package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodedrain"
	"ebbtide.dev/ebbtide/internal/core/volume"
)

// Reading is an object, or the reason why it could not be read. With neither it does not exist.
type Reading[T any] struct {
	Object *T
	// Problem says why nothing could be read. Nothing is concluded from it.
	Problem string
}

func (r Reading[T]) missing() bool { return r.Object == nil && r.Problem == "" }

// External is a foreign object that follows the contract of Cluster API.
type External struct {
	Kind, Name string
	UID        types.UID
	Controller *metav1.OwnerReference
	Owned      bool
	Deleting   bool
	// Ready is true if the infrastructure is provisioned, or the bootstrap data created.
	Ready          bool
	ProviderID     string
	DataSecretName string
	// Failure is the reported reason why it will never be ready.
	Failure string
	// Fault is the first violation of the contract; the field counts as absent.
	Fault string
}

// isForeign reports whether another owner controls it, so that it is neither adopted nor deleted.
func (e *External) isForeign() bool { return e.Controller != nil && !e.Owned }

// Snapshot is everything that a decision reads. Decide does not change it.
type Snapshot struct {
	Now         time.Time
	ClockSkewed bool
	Machine     *v1alpha1.Machine
	Cluster     Reading[v1alpha1.Cluster]
	// Siblings are other Machines of the Cluster: those of the control plane if the Machine is
	// being deleted, and those with its providerID.
	Siblings       []*v1alpha1.Machine
	ControlPlane   *Reading[External]
	Infrastructure Reading[External]
	Bootstrap      *Reading[External]
	// Nodes holds those with the providerID and the one named in status.nodeRef; only that one if
	// it has the providerID.
	Nodes        []*corev1.Node
	NodesProblem string
	// NodesUnneeded is true if Nodes were not read because the Machine already has one.
	NodesUnneeded bool
	// Failure is the failed action of the previous decision.
	Failure string
	// Drain lacks Node, and is only set while a Machine with a Node is being deleted. Its time
	// defaults to Now.
	Drain        nodedrain.Snapshot
	DrainProblem string
	// Volumes lacks Node and Ignored.
	Volumes        volume.Snapshot
	VolumesProblem string
}
