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

// Reading is an object, or why it could not be read. Neither means that it is
// known not to exist.
type Reading[T any] struct {
	// Object is what was read.
	Object *T
	// Problem is why nothing could be read. Nothing is concluded from it.
	Problem string
}

// missing tells that the object is known not to exist.
func (r Reading[T]) missing() bool { return r.Object == nil && r.Problem == "" }

// External is an object of somebody else's kind that follows Cluster API's
// contract, as far as a Machine is concerned. See ReadInfrastructure,
// ReadBootstrap and ReadControlPlane.
type External struct {
	// Kind, Name and UID identify it; its namespace is that of the Machine.
	Kind, Name string
	UID        types.UID
	// Controller is the owner that controls it; nil if nobody does.
	Controller *metav1.OwnerReference
	// Owned is true if that is the Machine.
	Owned bool
	// Deleting is true if it is being deleted.
	Deleting bool
	// Ready is true if the infrastructure is provisioned, or the bootstrap data made.
	Ready bool
	// ProviderID is the infrastructure's; empty until there is one.
	ProviderID string
	// DataSecretName is the Secret with the bootstrap data; empty until there is one.
	DataSecretName string
	// Failure is why it will never be ready, in its own words.
	Failure string
	// Fault is what in it is against the contract; what it spoils counts as absent.
	Fault string
}

// foreign tells that somebody else than the Machine controls it: it is neither
// adopted nor deleted.
func (e *External) foreign() bool { return e.Controller != nil && !e.Owned }

// Snapshot is everything that a decision reads. It is never changed by Decide.
type Snapshot struct {
	// Now is the time of the decision.
	Now time.Time
	// ClockSkewed is true while that is not trusted; see package skew.
	ClockSkewed bool
	// Machine is the object.
	Machine *v1alpha1.Machine
	// Cluster is the one that the Machine names.
	Cluster Reading[v1alpha1.Cluster]
	// Siblings are other Machines of the Cluster: all of the control plane if the
	// Machine is being deleted, and all of its providerID.
	Siblings []*v1alpha1.Machine
	// ControlPlane manages the Cluster's control plane; nil if the Cluster names none.
	ControlPlane *Reading[External]
	// Infrastructure is what infrastructureRef names.
	Infrastructure Reading[External]
	// Bootstrap is what bootstrap.configRef names; nil if the Machine names none.
	Bootstrap *Reading[External]
	// Nodes are those of spec.providerID and the one of the name in status.nodeRef.
	// Only that one if it has the providerID.
	Nodes []*corev1.Node
	// NodesProblem is why nodes could not be read.
	NodesProblem string
	// NodesUnneeded is true if nobody has looked at nodes, because the Machine has
	// its Node: it is taken for being there.
	NodesUnneeded bool
	// Failure is what could not be done after the decision before, and why.
	Failure string
	// Drain has what a drain reads, except Node; only of a Machine that is being deleted
	// and has a Node. Without a time it has that of the decision.
	Drain nodedrain.Snapshot
	// DrainProblem is why pods or rules could not be read.
	DrainProblem string
	// Volumes has what the wait for volumes reads, except Node and Ignored.
	Volumes volume.Snapshot
	// VolumesProblem is why attachments could not be read.
	VolumesProblem string
}
