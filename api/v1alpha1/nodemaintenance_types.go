package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeMaintenanceStage is the stage of a maintenance (KEP-4212). Stages only move forward, in the
// order Idle, Cordon, Drain, Complete, and may be skipped.
//
// +kubebuilder:validation:Enum=Idle;Cordon;Drain;Complete
// +kubebuilder:validation:MaxLength=8
type NodeMaintenanceStage string

const (
	// StageIdle announces a maintenance and changes nothing.
	StageIdle NodeMaintenanceStage = "Idle"
	// StageCordon keeps the selected nodes unschedulable.
	StageCordon NodeMaintenanceStage = "Cordon"
	// StageDrain cordons the selected nodes and evacuates their pods in the order of the drain
	// plan.
	StageDrain NodeMaintenanceStage = "Drain"
	// StageComplete withdraws the evacuations and restores the nodes. It is final.
	StageComplete NodeMaintenanceStage = "Complete"
)

// PodType is one of three groups of pods, which leave a node one after the other (KEP-4212).
//
// +kubebuilder:validation:Enum=Default;DaemonSet;Static
// +kubebuilder:validation:MaxLength=9
type PodType string

const (
	// PodTypeDefault is a pod that is neither a DaemonSet pod nor a static pod.
	PodTypeDefault PodType = "Default"
	// PodTypeDaemonSet is a pod of an apps DaemonSet.
	PodTypeDaemonSet PodType = "DaemonSet"
	// PodTypeStatic is the mirror pod of a static pod.
	PodTypeStatic PodType = "Static"
)

// NodeMaintenance drains a set of nodes and restores them when it is complete (KEP-4212).
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

	// spec is the desired state.
	// +required
	Spec NodeMaintenanceSpec `json:"spec"`
	// status is the observed state.
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

// NodeMaintenanceSpec is the desired state of the selected nodes.
//
// +kubebuilder:validation:XValidation:rule="(has(self.drainPlan) && self.drainPlan.size() > 0) == (has(oldSelf.drainPlan) && oldSelf.drainPlan.size() > 0)",fieldPath=".drainPlan",message="drainPlan is immutable; complete or delete this NodeMaintenance and create another one with the new plan"
// +kubebuilder:validation:XValidation:rule="!has(self.completeWhen) || self.nodeSelector.nodeSelectorTerms.size() == 1 && (!has(self.nodeSelector.nodeSelectorTerms[0].matchExpressions) || self.nodeSelector.nodeSelectorTerms[0].matchExpressions.size() == 0) && has(self.nodeSelector.nodeSelectorTerms[0].matchFields) && self.nodeSelector.nodeSelectorTerms[0].matchFields.size() == 1 && self.nodeSelector.nodeSelectorTerms[0].matchFields[0].operator == 'In'",fieldPath=".completeWhen",message="completeWhen works on one node: select it by matchFields metadata.name"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.stage) || oldSelf.stage != 'Complete' || has(self.completeWhen) == has(oldSelf.completeWhen) && (!has(self.completeWhen) || self.completeWhen == oldSelf.completeWhen)",fieldPath=".completeWhen",message="completeWhen cannot change any more: this NodeMaintenance is Complete"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.completedNodes) || has(self.completedNodes) && oldSelf.completedNodes.all(node, self.completedNodes.exists(other, other.name == node.name))",fieldPath=".completedNodes",message="completedNodes only grows: these nodes have been given back; create another NodeMaintenance to drain one of them again"
// +kubebuilder:validation:XValidation:rule="!has(self.completedNodes) || has(oldSelf.completedNodes) && self.completedNodes.size() == oldSelf.completedNodes.size() || has(self.stage) && self.stage in ['Cordon', 'Drain']",fieldPath=".completedNodes",message="completedNodes can be added to in stages Cordon and Drain only: in Idle no node is held yet, and Complete gives back all"
// +kubebuilder:validation:XValidation:rule="!has(self.completeWhen) || !has(self.completedNodes) || self.completedNodes.size() == 0",fieldPath=".completedNodes",message="completeWhen works on one node: to give it back set stage Complete, not completedNodes"
type NodeMaintenanceSpec struct {
	// nodeSelector selects the nodes by labels or by name. Terms are ORed; each needs at least one
	// expression or field.
	// +required
	NodeSelector *corev1.NodeSelector `json:"nodeSelector"`

	// stage is the last stage that the maintenance may reach. It only moves forward, in the order
	// Idle, Cordon, Drain, Complete. Defaults to Idle.
	// +optional
	// +default="Idle"
	// +kubebuilder:validation:XValidation:rule="{'Idle':0,'Cordon':1,'Drain':2,'Complete':3}[self] >= {'Idle':0,'Cordon':1,'Drain':2,'Complete':3}[oldSelf]",messageExpression="'stage cannot go back from ' + oldSelf + ' to ' + self + '; it only moves forward along Idle, Cordon, Drain, Complete: create another NodeMaintenance instead'"
	Stage NodeMaintenanceStage `json:"stage,omitempty"`

	// completedNodes lists the nodes that are restored before the others. Nodes can be added in
	// stages Cordon and Drain, and never removed. A later Node with the same name stays free. At
	// most 256 nodes.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	CompletedNodes []NodeReference `json:"completedNodes,omitempty"`

	// drainPlan says when pods leave. An entry starts when all selected nodes have
	// finished the previous one. Entries are ordered by podType (Default, DaemonSet, Static), then
	// by ascending podPriority, then with podSelector before without. Twelve entries that together
	// select every pod are always added. Immutable.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || oldSelf.size() == 0 || self == oldSelf",message="drainPlan is immutable; complete or delete this NodeMaintenance and create another one with the new plan"
	// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || self.map(e, (e.podType == 'Default' ? 0 : e.podType == 'DaemonSet' ? 1 : 2) * 8589934592 + e.podPriority * 2 + (has(e.podSelector) ? 0 : 1)).isSorted()",messageExpression="!self.map(e, (e.podType == 'Default' ? 0 : e.podType == 'DaemonSet' ? 1 : 2)).isSorted() ? 'order the entries by podType: first Default, then DaemonSet, then Static' : !self.map(e, (e.podType == 'Default' ? 0 : e.podType == 'DaemonSet' ? 1 : 2) * 8589934592 + e.podPriority).isSorted() ? 'order the entries of each podType by podPriority, lowest first' : 'of entries with the same podType and podPriority put those with a podSelector first'",message="order the entries by podType, by podPriority, and those with a podSelector first"
	// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || [self.filter(e, !has(e.podSelector)).map(e, (e.podType == 'Default' ? 0 : e.podType == 'DaemonSet' ? 1 : 2) * 8589934592 + e.podPriority)].all(keys, keys.all(key, keys.exists_one(other, other == key))) && self.filter(e, has(e.podSelector)).all(e, self.exists_one(other, e == other))",message="each entry may occur only once; remove the duplicate"
	DrainPlan []DrainPlanEntry `json:"drainPlan,omitempty"`

	// drainDepth is the last pod type that leaves; deeper types are retained. Defaults to Static,
	// which removes all pods.
	// +optional
	// +default="Static"
	DrainDepth PodType `json:"drainDepth,omitempty"`

	// inPlace declares that the nodes return with their disks, for example after a reboot. Pods
	// with the label ebbtide.dev/on-upgrade: stay then stay on the nodes, while their disruption
	// budgets are locked. If unset, all pods leave. It can be set, changed and removed at any
	// time; pods that have left do not return.
	// +optional
	InPlace *InPlace `json:"inPlace,omitempty"`

	// completeWhen sets the stage to Complete when the node meets these conditions. If unset, a
	// user completes the maintenance. It works for a single node, selected by matchFields
	// metadata.name, and can be changed until Complete. There is no timeout.
	// +optional
	CompleteWhen *CompleteWhen `json:"completeWhen,omitempty"`

	// deadline is the time when the nodes must be empty. If unset, the drain takes as long as
	// necessary. It can be set, changed and removed at any time.
	// +optional
	Deadline *Deadline `json:"deadline,omitempty"`

	// reason describes the purpose of the maintenance, for people. At most 1,024 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
}

// InPlace says how pods stay on a node that returns (skip-drain-on-upgrade).
type InPlace struct {
	// expectedDowntimeSeconds is the time that a node is away, from 1 to 3600. A pod stays only if it
	// tolerates the taints node.kubernetes.io/unreachable and node.kubernetes.io/not-ready with
	// effect NoExecute for this long. Other pods leave.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	ExpectedDowntimeSeconds int32 `json:"expectedDowntimeSeconds"`

	// lockTimeoutSeconds is the time that a node waits for the locks of its budgets before
	// onLockTimeout applies, from 1 to 86400. Time while only other drains hold the locks does
	// not count. Defaults to 300.
	// +optional
	// +default=300
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	LockTimeoutSeconds int32 `json:"lockTimeoutSeconds,omitempty"`

	// onLockTimeout is the action for pods whose budgets could not be locked in time. Evict evicts
	// them, Wait waits, and Delete deletes them regardless of their budgets, which needs the verb
	// bypass-budgets on nodemaintenances. Defaults to Evict.
	// +optional
	// +default="Evict"
	OnLockTimeout LockTimeoutAction `json:"onLockTimeout,omitempty"`

	// expectedRebootCount is the number of reboots after which a node is considered back, from 0
	// to 10. The node also has to be Ready, and the pods that stayed have to be ready. It then
	// passes its locks to the next node. With 0 it keeps them until the maintenance is complete.
	// Defaults to 1.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	ExpectedRebootCount *int32 `json:"expectedRebootCount,omitempty"`
}

// LockTimeoutAction is the action for a budget that cannot be locked in time.
//
// +kubebuilder:validation:Enum=Evict;Wait;Delete
// +kubebuilder:validation:MaxLength=6
type LockTimeoutAction string

const (
	// LockTimeoutEvict evicts the pods of the budget.
	LockTimeoutEvict LockTimeoutAction = "Evict"
	// LockTimeoutWait continues to wait.
	LockTimeoutWait LockTimeoutAction = "Wait"
	// LockTimeoutDelete deletes the pods regardless of the budget.
	LockTimeoutDelete LockTimeoutAction = "Delete"
)

// DrainPlanEntry selects pods of one type up to a priority (KEP-4212).
//
// +structType=atomic
type DrainPlanEntry struct {
	// podSelector selects pods by their labels. If unset, all pods match.
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`

	// podPriority selects pods with at most this priority. A pod without a priority has priority
	// 0.
	// +required
	// +kubebuilder:validation:Minimum=-2147483648
	// +kubebuilder:validation:Maximum=2147483647
	PodPriority int32 `json:"podPriority"`

	// podType selects pods of this type. Defaults to Default.
	// +optional
	// +default="Default"
	PodType PodType `json:"podType,omitempty"`
}

// NodeMaintenanceStatus is the observed state of a maintenance. Only the NodeMaintenance
// controller writes it.
type NodeMaintenanceStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// nodeCount is the number of selected nodes that are not in completedNodes.
	// +optional
	NodeCount int32 `json:"nodeCount"`

	// summary is the state in one line, for people.
	// +optional
	Summary string `json:"summary,omitempty"`

	// stageStatuses lists the stages that have started, in order. Cordon always precedes Drain.
	// +optional
	// +listType=map
	// +listMapKey=name
	StageStatuses []StageStatus `json:"stageStatuses,omitempty"`

	// nodeStatuses describes the selected nodes, by name. In stage Idle it previews the drain, as
	// far as the nodes themselves show it. With more than 1,000 nodes, nodes that are not drained
	// come first, blocked ones before others, and the last ones may be omitted; summary then has
	// their number. The drainTargets of the last entry also cover the omitted nodes.
	// +optional
	// +listType=atomic
	NodeStatuses []NodeMaintenanceNodeStatus `json:"nodeStatuses,omitempty"`

	// conditions are Drained, Blocked, Returned with completeWhen, PastDeadline in stage Drain
	// with a deadline, and Succeeded from Complete on.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// StageStatus records the start of a stage.
type StageStatus struct {
	// name is the stage.
	// +required
	Name NodeMaintenanceStage `json:"name"`
	// startTimestamp is the time when the controller started the stage (KEP-4212).
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

// NodeState is the state of a node's drain. Expect values that are not among the constants.
type NodeState string

const (
	// NodeStatePlanned is a node in stage Idle.
	NodeStatePlanned NodeState = "Planned"
	// NodeStateUnknown is a node whose pods could not be read.
	NodeStateUnknown NodeState = "Unknown"
	// NodeStateWaitingForNodes is a node whose pods leave after those of other nodes.
	NodeStateWaitingForNodes NodeState = "WaitingForNodes"
	// NodeStatePaused is a node whose Machine is paused.
	NodeStatePaused NodeState = "Paused"
	// NodeStateDraining is a node that pods are leaving.
	NodeStateDraining NodeState = "Draining"
	// NodeStateBlocked is a node that no pod can leave because of its blockers.
	NodeStateBlocked NodeState = "Blocked"
	// NodeStateWaitingForCompletion is a node with pods that must finish on their own.
	NodeStateWaitingForCompletion NodeState = "WaitingForCompletion"
	// NodeStateWaitingForLocks is an otherwise drained node that waits for locks of budgets.
	NodeStateWaitingForLocks NodeState = "WaitingForLocks"
	// NodeStateWaitingForMaintenance is a node that is back from another NodeMaintenance, which
	// must complete first.
	NodeStateWaitingForMaintenance NodeState = "WaitingForMaintenance"
	// NodeStateWaitingForHandOver is a drained node that is not announced as drained yet.
	NodeStateWaitingForHandOver NodeState = "WaitingForHandOver"
	// NodeStateDrained is a node that all pods have left that have to.
	NodeStateDrained NodeState = "Drained"
	// NodeStateReturned is a node that is back from a reboot in place.
	NodeStateReturned NodeState = "Returned"
)

// IsDrained reports whether every pod has left the node that has to, also if the node is
// back since then.
func (s NodeState) IsDrained() bool { return s == NodeStateDrained || s == NodeStateReturned }

// NodeMaintenanceNodeStatus is the progress of one node (KEP-4212).
type NodeMaintenanceNodeStatus struct {
	// nodeRef names the node.
	// +required
	NodeRef NodeReference `json:"nodeRef"`

	// drainTargets lists the pods of this node that are being evacuated: one entry for each pod
	// type and selector, with the highest priority reached. All maintenances of a node show the
	// same targets, which never shrink.
	// +optional
	// +listType=atomic
	DrainTargets []DrainPlanEntry `json:"drainTargets,omitempty"`

	// state is the state of the node's drain. Unset in stages Cordon and Complete. Expect unknown
	// values.
	// +optional
	State NodeState `json:"state,omitempty"`

	// drainedTime is the time when the node was first drained.
	// +optional
	DrainedTime *metav1.Time `json:"drainedTime,omitempty"`

	// drainMessage describes the state, for people.
	// +optional
	DrainMessage string `json:"drainMessage,omitempty"`

	// awaitedNodes lists nodes whose pods have to leave first, in state WaitingForNodes. At most 3
	// nodes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3
	AwaitedNodes []NodeReference `json:"awaitedNodes,omitempty"`

	// fastForwardedBy is the NodeMaintenance whose older drain was further ahead on this node.
	// Unset when this one has caught up (KEP-4212).
	// +optional
	FastForwardedBy string `json:"fastForwardedBy,omitempty"`

	// podsPendingEvacuation is the number of pods that have to leave and have no Evacuation yet
	// (KEP-4212).
	// +optional
	PodsPendingEvacuation int32 `json:"podsPendingEvacuation"`

	// podsEvacuating is the number of pods that have to leave and have an Evacuation (KEP-4212).
	// +optional
	PodsEvacuating int32 `json:"podsEvacuating"`

	// podsRetained is the number of pods that stay on purpose.
	// +optional
	PodsRetained int32 `json:"podsRetained"`

	// blockers are the reasons why pods do not leave, those with most pods first. At most 10.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Blockers []Blocker `json:"blockers,omitempty"`

	// retained lists why pods stay on purpose, and what would let them leave. At most 10; omitted
	// if the object would become too large.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Retained []Blocker `json:"retained,omitempty"`
}
