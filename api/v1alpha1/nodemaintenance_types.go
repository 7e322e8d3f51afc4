package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeMaintenanceStage is what is asked of the selected nodes (KEP-4212).
// Stages only move forward, in the order Idle, Cordon, Drain, Complete; any of
// them may be skipped.
//
// +kubebuilder:validation:Enum=Idle;Cordon;Drain;Complete
// +kubebuilder:validation:MaxLength=8
type NodeMaintenanceStage string

const (
	// StageIdle announces a maintenance and touches nothing.
	StageIdle NodeMaintenanceStage = "Idle"
	// StageCordon makes the selected nodes unschedulable and keeps them so.
	StageCordon NodeMaintenanceStage = "Cordon"
	// StageDrain cordons the selected nodes and evacuates their pods by the drain plan.
	StageDrain NodeMaintenanceStage = "Drain"
	// StageComplete withdraws the evacuations and gives the nodes back. It is final.
	StageComplete NodeMaintenanceStage = "Complete"
)

// PodType divides the pods of a node into the three groups that a drain
// removes one after the other (KEP-4212).
//
// +kubebuilder:validation:Enum=Default;DaemonSet;Static
// +kubebuilder:validation:MaxLength=9
type PodType string

const (
	// PodTypeDefault is every pod that is neither a DaemonSet nor a static pod.
	PodTypeDefault PodType = "Default"
	// PodTypeDaemonSet is a pod whose controller is an apps DaemonSet.
	PodTypeDaemonSet PodType = "DaemonSet"
	// PodTypeStatic is the mirror of a pod that a kubelet runs from a file.
	PodTypeStatic PodType = "Static"
)

// NodeMaintenance asks for a set of nodes to be emptied of pods and, once it is
// complete, to be given back (KEP-4212).
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=nm
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.spec.stage`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodeCount`
// +kubebuilder:printcolumn:name="Drained",type=string,JSONPath=`.status.conditions[?(@.type=="Drained")].status`
// +kubebuilder:printcolumn:name="Summary",type=string,JSONPath=`.status.summary`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeMaintenance struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is asked for.
	// +required
	Spec NodeMaintenanceSpec `json:"spec"`
	// status is how far it has come.
	// +optional
	Status NodeMaintenanceStatus `json:"status,omitempty"`
}

// NodeMaintenanceList is a list of NodeMaintenances.
//
// +kubebuilder:object:root=true
type NodeMaintenanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeMaintenance `json:"items"`
}

// NodeMaintenanceSpec is what is asked of the selected nodes.
//
// +kubebuilder:validation:XValidation:rule="(has(self.drainPlan) && self.drainPlan.size() > 0) == (has(oldSelf.drainPlan) && oldSelf.drainPlan.size() > 0)",fieldPath=".drainPlan",message="drainPlan is immutable; complete or delete this NodeMaintenance and create another one with the new plan"
// +kubebuilder:validation:XValidation:rule="!has(self.completeWhen) || self.nodeSelector.nodeSelectorTerms.size() == 1 && (!has(self.nodeSelector.nodeSelectorTerms[0].matchExpressions) || self.nodeSelector.nodeSelectorTerms[0].matchExpressions.size() == 0) && has(self.nodeSelector.nodeSelectorTerms[0].matchFields) && self.nodeSelector.nodeSelectorTerms[0].matchFields.size() == 1 && self.nodeSelector.nodeSelectorTerms[0].matchFields[0].operator == 'In'",fieldPath=".completeWhen",message="completeWhen works on one node: select it by matchFields metadata.name"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.stage) || oldSelf.stage != 'Complete' || has(self.completeWhen) == has(oldSelf.completeWhen) && (!has(self.completeWhen) || self.completeWhen == oldSelf.completeWhen)",fieldPath=".completeWhen",message="completeWhen cannot change any more: this NodeMaintenance is Complete"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.completedNodes) || has(self.completedNodes) && oldSelf.completedNodes.all(node, self.completedNodes.exists(other, other.name == node.name))",fieldPath=".completedNodes",message="completedNodes only grows: these nodes have been given back; create another NodeMaintenance to drain one of them again"
// +kubebuilder:validation:XValidation:rule="!has(self.completedNodes) || has(oldSelf.completedNodes) && self.completedNodes.size() == oldSelf.completedNodes.size() || has(self.stage) && self.stage in ['Cordon', 'Drain']",fieldPath=".completedNodes",message="completedNodes can be added to in stages Cordon and Drain only: in Idle no node is held yet, and Complete gives back all"
// +kubebuilder:validation:XValidation:rule="!has(self.completeWhen) || !has(self.completedNodes) || self.completedNodes.size() == 0",fieldPath=".completedNodes",message="completeWhen works on one node: to give it back set stage Complete, not completedNodes"
type NodeMaintenanceSpec struct {
	// nodeSelector selects the nodes, by labels or by name. Terms are ORed; each
	// needs at least one expression or field.
	// +required
	NodeSelector *corev1.NodeSelector `json:"nodeSelector"`

	// stage is how far the maintenance may go. It only moves forward along
	// Idle, Cordon, Drain, Complete. Defaults to Idle.
	// +optional
	// +default="Idle"
	// +kubebuilder:validation:XValidation:rule="{'Idle':0,'Cordon':1,'Drain':2,'Complete':3}[self] >= {'Idle':0,'Cordon':1,'Drain':2,'Complete':3}[oldSelf]",messageExpression="'stage cannot go back from ' + oldSelf + ' to ' + self + '; it only moves forward along Idle, Cordon, Drain, Complete: create another NodeMaintenance instead'"
	Stage NodeMaintenanceStage `json:"stage,omitempty"`

	// completedNodes are the nodes that are given back before the others, in the way in
	// which stage Complete gives back all: they are uncordoned, and nothing is drained there
	// any more. Nodes are added in stages Cordon and Drain and are never removed. A node that
	// is created later under the same name is not taken either. At most 256.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	CompletedNodes []NodeReference `json:"completedNodes,omitempty"`

	// drainPlan is the order in which pods leave: entries are worked through
	// from first to last, each when all selected nodes have finished the one
	// before. Entries are ordered by podType (Default, DaemonSet, Static), then
	// by ascending podPriority, then with podSelector before without. Twelve
	// entries that together select every pod are always added. Immutable.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || oldSelf.size() == 0 || self == oldSelf",message="drainPlan is immutable; complete or delete this NodeMaintenance and create another one with the new plan"
	// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || self.map(e, (e.podType == 'Default' ? 0 : e.podType == 'DaemonSet' ? 1 : 2) * 8589934592 + e.podPriority * 2 + (has(e.podSelector) ? 0 : 1)).isSorted()",messageExpression="!self.map(e, (e.podType == 'Default' ? 0 : e.podType == 'DaemonSet' ? 1 : 2)).isSorted() ? 'order the entries by podType: first Default, then DaemonSet, then Static' : !self.map(e, (e.podType == 'Default' ? 0 : e.podType == 'DaemonSet' ? 1 : 2) * 8589934592 + e.podPriority).isSorted() ? 'order the entries of each podType by podPriority, lowest first' : 'of entries with the same podType and podPriority put those with a podSelector first'",message="order the entries by podType, by podPriority, and those with a podSelector first"
	// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || [self.filter(e, !has(e.podSelector)).map(e, (e.podType == 'Default' ? 0 : e.podType == 'DaemonSet' ? 1 : 2) * 8589934592 + e.podPriority)].all(keys, keys.all(key, keys.exists_one(other, other == key))) && self.filter(e, has(e.podSelector)).all(e, self.exists_one(other, e == other))",message="each entry may occur only once; remove the duplicate"
	DrainPlan []DrainPlanEntry `json:"drainPlan,omitempty"`

	// drainDepth is the last pod type that is removed; deeper ones are
	// retained. Defaults to Static, which removes everything.
	// +optional
	// +default="Static"
	DrainDepth PodType `json:"drainDepth,omitempty"`

	// inPlace says that the nodes come back with everything on their disks, as
	// after a reboot: pods with the label ebbtide.dev/on-upgrade: stay are left on
	// them, under a lock of their disruption budgets. Absent, everything is drained.
	// It may be added, changed and removed at any time; pods that have left by then
	// do not come back.
	// +optional
	InPlace *InPlace `json:"inPlace,omitempty"`

	// completeWhen says in advance when the work on the node is done: stage Complete is
	// set when the node has come back as it says. Absent, an administrator sets it. It is
	// for one node, which nodeSelector names by matchFields metadata.name, and may be set,
	// changed and removed until Complete. There is no timeout.
	// +optional
	CompleteWhen *CompleteWhen `json:"completeWhen,omitempty"`

	// deadline is until when the pods have to be gone, and what becomes of those that are
	// not. Absent, the drain takes as long as it takes. It may be added, changed and
	// removed at any time.
	// +optional
	Deadline *Deadline `json:"deadline,omitempty"`

	// reason says, in an administrator's words, what the maintenance is for. It
	// is shown wherever the maintenance is. At most 1,024 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
}

// InPlace is how pods stay on a node that comes back (skip-drain-on-upgrade).
type InPlace struct {
	// expectedDowntimeSeconds is how long a node is away, 1 to 3600. A pod stays
	// only if it tolerates the taints node.kubernetes.io/unreachable and
	// node.kubernetes.io/not-ready with effect NoExecute for so long; any other is
	// drained.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	ExpectedDowntimeSeconds int32 `json:"expectedDowntimeSeconds"`

	// lockTimeoutSeconds is how long a node waits for the locks of the disruption
	// budgets of the pods that stay, 1 to 86400, before onLockTimeout. It does not count
	// while only other drains have locked them. Defaults to 300.
	// +optional
	// +default=300
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	LockTimeoutSeconds int32 `json:"lockTimeoutSeconds,omitempty"`

	// onLockTimeout is what becomes then of the pods whose budgets could not be
	// locked: Evict drains them as if they had no label, Wait goes on waiting, and
	// Delete deletes them past their budget, which only a user with the verb
	// bypass-budgets on nodemaintenances may ask for. Defaults to Evict.
	// +optional
	// +default="Evict"
	OnLockTimeout LockTimeoutAction `json:"onLockTimeout,omitempty"`

	// expectedRebootCount is after how many reboots a node is back, 0 to 10. When it is, and
	// is Ready, and the pods that stayed are ready again, it gives its locks to the next
	// node before the maintenance is complete. 0 keeps them until then. Defaults to 1.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	ExpectedRebootCount *int32 `json:"expectedRebootCount,omitempty"`
}

// LockTimeoutAction is what is done about a budget that cannot be locked in time.
//
// +kubebuilder:validation:Enum=Evict;Wait;Delete
// +kubebuilder:validation:MaxLength=6
type LockTimeoutAction string

const (
	// LockTimeoutEvict drains the pods of the budget as if they did not stay.
	LockTimeoutEvict LockTimeoutAction = "Evict"
	// LockTimeoutWait goes on waiting.
	LockTimeoutWait LockTimeoutAction = "Wait"
	// LockTimeoutDelete deletes the pods of the budget, whatever it allows.
	LockTimeoutDelete LockTimeoutAction = "Delete"
)

// DrainPlanEntry selects pods of one type up to a priority (KEP-4212).
//
// +structType=atomic
type DrainPlanEntry struct {
	// podSelector narrows the entry to pods with these labels. Absent selects all.
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`

	// podPriority selects pods whose priority is at most this value. A pod
	// without a priority has priority 0.
	// +required
	// +kubebuilder:validation:Minimum=-2147483648
	// +kubebuilder:validation:Maximum=2147483647
	PodPriority int32 `json:"podPriority"`

	// podType selects pods of this type. Defaults to Default.
	// +optional
	// +default="Default"
	PodType PodType `json:"podType,omitempty"`
}

// NodeMaintenanceStatus is how far a maintenance has come. It is written by the
// NodeMaintenance controller only.
type NodeMaintenanceStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// nodeCount is how many nodes the selector matches that are not in completedNodes; 0 is
	// shown too.
	// +optional
	NodeCount int32 `json:"nodeCount"`

	// summary is the state in one short line, for people.
	// +optional
	Summary string `json:"summary,omitempty"`

	// stageStatuses lists the stages that were run, in order; Cordon is run before
	// Drain in any case.
	// +optional
	// +listType=map
	// +listMapKey=name
	StageStatuses []StageStatus `json:"stageStatuses,omitempty"`

	// nodeStatuses describes the selected nodes by name. In stage Idle it says what a drain
	// would do, as far as the nodes themselves show: which pods would go first, how many would
	// have to leave, which would stay, and what would hold them up. Past 1,000 nodes those
	// that are not drained come first, blocked ones before others, and the last ones may
	// be left out so that the object stays small; summary then says how many. The
	// drainTargets of the last one are then also those of the nodes left out.
	// +optional
	// +listType=atomic
	NodeStatuses []NodeMaintenanceNodeStatus `json:"nodeStatuses,omitempty"`

	// conditions are Drained, Blocked, Returned if there is a completeWhen, PastDeadline in
	// stage Drain if there is a deadline, and, from Complete on, Succeeded.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// StageStatus records that a stage was started.
type StageStatus struct {
	// name is the stage.
	// +required
	Name NodeMaintenanceStage `json:"name"`
	// startTimestamp is when the controller began to act on the stage (KEP-4212).
	// +optional
	StartTimestamp *metav1.Time `json:"startTimestamp,omitempty"`
}

// NodeReference names a node.
type NodeReference struct {
	// name of the node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// NodeState is how far the drain of a node is. The set is open: those that Ebbtide writes
// now are constants, and others may follow.
type NodeState string

const (
	// NodeStatePlanned is a node in stage Idle.
	NodeStatePlanned NodeState = "Planned"
	// NodeStateUnknown is a node whose pods are not known.
	NodeStateUnknown NodeState = "Unknown"
	// NodeStateWaitingForNodes is a node whose pods leave after those of other nodes.
	NodeStateWaitingForNodes NodeState = "WaitingForNodes"
	// NodeStatePaused is a node whose Machine has its drain paused.
	NodeStatePaused NodeState = "Paused"
	// NodeStateDraining is a node that pods are leaving.
	NodeStateDraining NodeState = "Draining"
	// NodeStateBlocked is a node that no pod is leaving, because of its blockers.
	NodeStateBlocked NodeState = "Blocked"
	// NodeStateWaitingForCompletion is a node that waits for pods that end without being evicted.
	NodeStateWaitingForCompletion NodeState = "WaitingForCompletion"
	// NodeStateWaitingForLocks is a node without pods that have to leave, and without the locks
	// for those that stay.
	NodeStateWaitingForLocks NodeState = "WaitingForLocks"
	// NodeStateWaitingForMaintenance is a node that came back from the reboot of another
	// NodeMaintenance, which has to be complete first.
	NodeStateWaitingForMaintenance NodeState = "WaitingForMaintenance"
	// NodeStateWaitingForHandOver is a drained node that is not announced as drained yet.
	NodeStateWaitingForHandOver NodeState = "WaitingForHandOver"
	// NodeStateDrained is a node that every pod has left that has to.
	NodeStateDrained NodeState = "Drained"
	// NodeStateReturned is a node that was drained and rebooted in place, and is back.
	NodeStateReturned NodeState = "Returned"
)

// IsDrained reports whether every pod has left the node that has to, also if the node is
// back since then.
func (s NodeState) IsDrained() bool { return s == NodeStateDrained || s == NodeStateReturned }

// NodeMaintenanceNodeStatus is the progress of one node (KEP-4212).
type NodeMaintenanceNodeStatus struct {
	// nodeRef identifies the node.
	// +required
	NodeRef NodeReference `json:"nodeRef"`

	// drainTargets is which pods of this node are being evacuated: one line per
	// pod type and selector with the highest priority reached. All maintenances
	// of a node show the same targets, and targets never shrink.
	// +optional
	// +listType=atomic
	DrainTargets []DrainPlanEntry `json:"drainTargets,omitempty"`

	// state is how far the drain of the node is. Absent in stages Cordon and Complete, and
	// in what a manager before this field wrote. The set is open.
	// +optional
	State NodeState `json:"state,omitempty"`

	// drainMessage describes the state, for people.
	// +optional
	DrainMessage string `json:"drainMessage,omitempty"`

	// awaitedNodes are the nodes whose pods have to leave first, in state
	// WaitingForNodes; at most 3 of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3
	AwaitedNodes []NodeReference `json:"awaitedNodes,omitempty"`

	// fastForwardedBy names the NodeMaintenance whose older drain had come further on
	// this node. It is there until this one has come as far, or no older drain of the
	// node had (KEP-4212).
	// +optional
	FastForwardedBy string `json:"fastForwardedBy,omitempty"`

	// podsPendingEvacuation is how many pods have to leave and have no Evacuation yet
	// (KEP-4212).
	// +optional
	PodsPendingEvacuation int32 `json:"podsPendingEvacuation"`

	// podsEvacuating is how many pods have to leave and have an Evacuation (KEP-4212).
	// +optional
	PodsEvacuating int32 `json:"podsEvacuating"`

	// podsRetained is how many pods stay on the node on purpose.
	// +optional
	PodsRetained int32 `json:"podsRetained"`

	// blockers are the reasons why pods do not leave, those of most pods first;
	// at most 10.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Blockers []Blocker `json:"blockers,omitempty"`

	// retained are the pods that stay on purpose, summed up like blockers: why they
	// stay, and what would have them leave. At most 10; left out where the object
	// would grow too large.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Retained []Blocker `json:"retained,omitempty"`
}
