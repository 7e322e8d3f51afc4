package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// NodeRollout maintains many nodes, a few at a time: it creates one NodeMaintenance for each node,
// follows it until the node is back, and stops when too many nodes fail.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=nro
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodeCount`
// +kubebuilder:printcolumn:name="Done",type=integer,JSONPath=`.status.doneCount`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.failedCount`
// +kubebuilder:printcolumn:name="Summary",type=string,JSONPath=`.status.summary`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",fieldPath=".metadata.name",message="the name can have at most 63 characters, as it labels the NodeMaintenances of the rollout"
type NodeRollout struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec NodeRolloutSpec `json:"spec"`
	// status is the observed state.
	// +optional
	Status NodeRolloutStatus `json:"status,omitempty"`
}

// NodeRolloutList is a list of NodeRollouts.
//
// +kubebuilder:object:root=true
type NodeRolloutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeRollout `json:"items"`
}

// NodeRolloutSpec says which nodes are maintained, when, and how many at a time.
//
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode != 'Continuous' || has(self.target) || has(self.when)",fieldPath=".mode",message="mode Continuous requires target or when, which say that a node needs maintenance"
// +kubebuilder:validation:XValidation:rule="!has(self.job) || !has(self.after) || self.after != 'StayDrained'",fieldPath=".job",message="job and after: StayDrained exclude each other: a node whose job has succeeded is given back"
// +kubebuilder:validation:XValidation:rule="!has(self.reboot) || !self.reboot || !has(self.after) || self.after != 'StayDrained'",fieldPath=".reboot",message="reboot and after: StayDrained exclude each other: a node that reboots is given back"
// +kubebuilder:validation:XValidation:rule="!has(self.after) || self.after != 'Replace' || (!has(self.reboot) || !self.reboot) && (!has(self.mode) || self.mode == 'Once') && (!has(self.controlPlane) || self.controlPlane == 'Exclude') && !has(self.job)",fieldPath=".after",message="after: Replace requires mode Once and controlPlane Exclude, and excludes reboot and job"
type NodeRolloutSpec struct {
	// nodeSelector selects the nodes by labels or by name, as in a NodeMaintenance. Nodes that
	// match later join until the rollout is complete.
	// +required
	NodeSelector *corev1.NodeSelector `json:"nodeSelector"`

	// mode is Once to maintain each node once, after which the rollout is complete, or Continuous to
	// maintain nodes whenever they need it, which requires target or when. Defaults to Once.
	// +optional
	// +default="Once"
	Mode RolloutMode `json:"mode,omitempty"`

	// target lists what a node must report when its maintenance is done; the maintenance then
	// completes automatically. Nodes that report the versions already are skipped, unless newBoot
	// is set. When target changes, nodes that do not meet it are maintained again. If target,
	// reboot and job are unset, a user completes each maintenance.
	// +optional
	Target *CompleteWhen `json:"target,omitempty"`

	// when lists reasons to maintain a node besides target. If target and when are unset, each
	// node is maintained once.
	// +optional
	When *RolloutWhen `json:"when,omitempty"`

	// reboot makes the agent of each node reboot it when it is drained. The maintenance then
	// completes after the boot. It needs the agent with --reboot.
	// +optional
	Reboot bool `json:"reboot,omitempty"`

	// job is run on each node when it is drained, before the reboot. It has to succeed before the
	// maintenance completes; if it fails, the node has failed and stays drained.
	// +optional
	Job *RolloutJob `json:"job,omitempty"`

	// after is the end of a node's maintenance. GiveBack returns the node to service when its
	// work is done. StayDrained is finished with a node when it is drained, and leaves it drained;
	// target then only says which nodes need maintenance. Replace deletes the Machine or NodeClaim
	// of a drained node, and is finished when another selected node is Ready; nodes that join
	// after the creation of the rollout are not replaced, and fail if they do not meet target.
	// Replace needs the chart value rollouts.replace. Defaults to GiveBack.
	// +optional
	// +default="GiveBack"
	After RolloutAfter `json:"after,omitempty"`

	// maxUnavailable is the number of selected nodes that may be unavailable, from 1 to 256, or a
	// percentage of the selected nodes, rounded down, at least 1. A node is unavailable if it is
	// not Ready, unschedulable, under any maintenance, or in its soak time. Nodes that failed, are
	// skipped or stay drained do not count. Defaults to 1.
	// +optional
	// +default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 256 : self.matches('^([1-9][0-9]?|100)%$')",message="maxUnavailable is a number from 1 to 256, or a percentage from 1% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// topologyKey is a node label, such as topology.kubernetes.io/zone. If set, nodes are
	// unavailable in one domain at a time; nodes without the label form a domain.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="use a label key such as topology.kubernetes.io/zone"
	TopologyKey string `json:"topologyKey,omitempty"`

	// controlPlane is the order of nodes with the label node-role.kubernetes.io/control-plane.
	// Exclude leaves them out. First and Last include them before or after the other nodes, one
	// at a time over all rollouts. Defaults to Exclude.
	// +optional
	// +default="Exclude"
	ControlPlane ControlPlanePolicy `json:"controlPlane,omitempty"`

	// canary limits the rollout to a few nodes first. If unset, there is no such limit.
	// +optional
	Canary *RolloutCanary `json:"canary,omitempty"`

	// soakSeconds is the time that a node counts as unavailable after its maintenance, from 0 to
	// 86400. Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	SoakSeconds int32 `json:"soakSeconds,omitempty"`

	// windows are the weekly hours when nodes may start. A node that is not drained when its
	// window ends is given back and retried. If unset, nodes may start at any time.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Windows []MaintenanceWindow `json:"windows,omitempty"`

	// blackouts are periods without starts, also within windows.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Blackouts []Blackout `json:"blackouts,omitempty"`

	// requires lists what must hold before a node starts: Room (the pods that would be evicted fit on
	// other nodes) and NoLoss (no pods or data are lost for good). Do not use Room if a cluster
	// autoscaler makes room only for pods that wait. Unset by default.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	Requires []RolloutRequirement `json:"requires,omitempty"`

	// gates are conditions that all must hold before a node starts. A gate that closes stops new
	// starts only. At most 8.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Gates []RolloutGate `json:"gates,omitempty"`

	// failure says when a node or the rollout fails.
	// +optional
	// +default={}
	Failure RolloutFailure `json:"failure,omitzero"`

	// maintenance is copied into each NodeMaintenance.
	// +optional
	Maintenance RolloutMaintenance `json:"maintenance,omitzero"`

	// nodes holds decisions of users about single nodes, by name. At most 256.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Nodes []RolloutNodeSpec `json:"nodes,omitempty"`

	// state controls the rollout. Paused starts no more nodes. Aborted also gives back the nodes
	// that are not drained, and is final. Neither changes nodes that are drained. Defaults to
	// Running.
	// +optional
	// +default="Running"
	// +kubebuilder:validation:XValidation:rule="oldSelf != 'Aborted' || self == 'Aborted'",message="an aborted rollout cannot continue: create another NodeRollout"
	State RolloutState `json:"state,omitempty"`
}

// RolloutMode says how often a rollout maintains a node.
//
// +kubebuilder:validation:Enum=Once;Continuous
// +kubebuilder:validation:MaxLength=10
type RolloutMode string

const (
	// RolloutOnce maintains each node once.
	RolloutOnce RolloutMode = "Once"
	// RolloutContinuous maintains nodes whenever they need it.
	RolloutContinuous RolloutMode = "Continuous"
)

// RolloutWhen lists reasons to maintain a node. One of them is enough.
type RolloutWhen struct {
	// rebootRequired is true to maintain nodes with the condition RebootRequired, which the
	// node's agent reports.
	// +optional
	RebootRequired bool `json:"rebootRequired,omitempty"`

	// conditions are types of node conditions, such as KernelDeadlock. Nodes are maintained if one
	// of them is True. At most 16.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=316
	// +kubebuilder:validation:items:MinLength=1
	Conditions []string `json:"conditions,omitempty"`
}

// RolloutAfter is the end of a node's maintenance in a rollout.
//
// +kubebuilder:validation:Enum=GiveBack;StayDrained;Replace
// +kubebuilder:validation:MaxLength=11
type RolloutAfter string

const (
	// AfterGiveBack returns the node to service.
	AfterGiveBack RolloutAfter = "GiveBack"
	// AfterStayDrained leaves the node drained.
	AfterStayDrained RolloutAfter = "StayDrained"
	// AfterReplace deletes the machine of the node, so that its provider makes another one.
	AfterReplace RolloutAfter = "Replace"
)

// ControlPlanePolicy is the order of control plane nodes in a rollout.
//
// +kubebuilder:validation:Enum=Exclude;First;Last
// +kubebuilder:validation:MaxLength=7
type ControlPlanePolicy string

const (
	// ControlPlaneExclude leaves them out.
	ControlPlaneExclude ControlPlanePolicy = "Exclude"
	// ControlPlaneFirst maintains them before the others.
	ControlPlaneFirst ControlPlanePolicy = "First"
	// ControlPlaneLast maintains them after the others.
	ControlPlaneLast ControlPlanePolicy = "Last"
)

// RolloutState controls a rollout.
//
// +kubebuilder:validation:Enum=Running;Paused;Aborted
// +kubebuilder:validation:MaxLength=7
type RolloutState string

const (
	// RolloutRunning starts nodes.
	RolloutRunning RolloutState = "Running"
	// RolloutPaused starts no more nodes.
	RolloutPaused RolloutState = "Paused"
	// RolloutAborted starts no more nodes and gives back those that are not drained.
	RolloutAborted RolloutState = "Aborted"
)

// RolloutCanary limits a rollout to a few nodes first.
type RolloutCanary struct {
	// nodeCount is the number of nodes that must be done before others start, from 1 to 256.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	NodeCount int32 `json:"nodeCount"`

	// soakSeconds is the time between the end of the last canary and the start of other nodes,
	// from 0 to 604800. Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	SoakSeconds int32 `json:"soakSeconds,omitempty"`

	// approved makes other nodes wait for a user while it is false. Setting it to true needs the
	// verb approve on noderollouts. It becomes false again when nodeSelector, target, when, reboot
	// or job changes. If unset, no approval is needed.
	// +optional
	Approved *bool `json:"approved,omitempty"`
}

// MaintenanceWindow is a period that recurs weekly.
type MaintenanceWindow struct {
	// days are the days when the window starts: mon, tue, wed, thu, fri, sat, sun. If unset,
	// it starts every day.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=7
	Days []Weekday `json:"days,omitempty"`

	// from is the start, as HH:MM.
	// +required
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	From string `json:"from"`

	// to is the end, as HH:MM. If it is not after from, the window ends on the next day.
	// +required
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	To string `json:"to"`

	// timeZone is a name of the IANA time zone database, such as Europe/Berlin. Defaults to UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
}

// Weekday is a day of the week.
//
// +kubebuilder:validation:Enum=mon;tue;wed;thu;fri;sat;sun
// +kubebuilder:validation:MaxLength=3
type Weekday string

// Blackout is a period without starts.
//
// +kubebuilder:validation:XValidation:rule="self.startTime < self.endTime",fieldPath=".endTime",message="endTime must be after startTime"
type Blackout struct {
	// startTime is the start.
	// +required
	StartTime metav1.Time `json:"startTime"`
	// endTime is the end.
	// +required
	EndTime metav1.Time `json:"endTime"`
	// reason describes the purpose, for people. At most 256 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
}

// RolloutFailure says when a node or the rollout fails.
type RolloutFailure struct {
	// drainTimeoutSeconds is the time that a node may need to drain, from 0 to 604800. Then it is
	// given back and retried after the other nodes. 0 is no limit. Defaults to 1800.
	// +optional
	// +default=1800
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	DrainTimeoutSeconds *int32 `json:"drainTimeoutSeconds,omitempty"`

	// workTimeoutSeconds is the time between the drain of a node and its return, from 0 to
	// 604800. After it the node has failed and stays drained; it is done if it returns later. With
	// after: Replace, another node has to be Ready in this time. 0 is no limit. Ignored with
	// after: StayDrained. Defaults to 3600.
	// +optional
	// +default=3600
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	WorkTimeoutSeconds *int32 `json:"workTimeoutSeconds,omitempty"`

	// retryCount is the number of further attempts for a node that did not drain in time, from 0 to
	// 10. Defaults to 1.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	RetryCount *int32 `json:"retryCount,omitempty"`

	// maxFailures is the number of failed nodes that ends further starts, at least 1, or a
	// percentage of the selected nodes, rounded down, at least 1. Defaults to 1.
	// +optional
	// +default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^([1-9][0-9]?|100)%$')",message="maxFailures is a number of at least 1, or a percentage from 1% to 100%"
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`
}

// RolloutMaintenance is copied into each NodeMaintenance of a rollout.
type RolloutMaintenance struct {
	// reason is spec.reason of the NodeMaintenance. At most 1,024 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// drainPlan is spec.drainPlan of the NodeMaintenance.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() && oldSelf.value() == self || self.map(e, (e.podType == 'Default' ? 0 : e.podType == 'DaemonSet' ? 1 : 2) * 8589934592 + e.podPriority * 2 + (has(e.podSelector) ? 0 : 1)).isSorted()",messageExpression="!self.map(e, (e.podType == 'Default' ? 0 : e.podType == 'DaemonSet' ? 1 : 2)).isSorted() ? 'order the entries by podType: first Default, then DaemonSet, then Static' : !self.map(e, (e.podType == 'Default' ? 0 : e.podType == 'DaemonSet' ? 1 : 2) * 8589934592 + e.podPriority).isSorted() ? 'order the entries of each podType by podPriority, lowest first' : 'of entries with the same podType and podPriority put those with a podSelector first'",message="order the entries by podType, by podPriority, and those with a podSelector first"
	// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() && oldSelf.value() == self || [self.filter(e, !has(e.podSelector)).map(e, (e.podType == 'Default' ? 0 : e.podType == 'DaemonSet' ? 1 : 2) * 8589934592 + e.podPriority)].all(keys, keys.all(key, keys.exists_one(other, other == key))) && self.filter(e, has(e.podSelector)).all(e, self.exists_one(other, e == other))",message="each entry may occur only once; remove the duplicate"
	DrainPlan []DrainPlanEntry `json:"drainPlan,omitempty"`

	// drainDepth is spec.drainDepth of the NodeMaintenance. Defaults to Static.
	// +optional
	// +default="Static"
	DrainDepth PodType `json:"drainDepth,omitempty"`

	// inPlace is spec.inPlace of the NodeMaintenance.
	// +optional
	InPlace *InPlace `json:"inPlace,omitempty"`
}
