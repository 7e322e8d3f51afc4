package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// EvacuationCancellationPolicy says whether an evacuation can be cancelled.
//
// +kubebuilder:validation:Enum=Allow;Forbid
type EvacuationCancellationPolicy string

const (
	// CancellationAllow lets instigators withdraw. This is the default.
	CancellationAllow EvacuationCancellationPolicy = "Allow"
	// CancellationForbid is set by an evacuator that cannot stop any more.
	CancellationForbid EvacuationCancellationPolicy = "Forbid"
)

// Limits and defaults of an Evacuation (KEP-4563).
const (
	// DefaultProgressDeadlineSeconds limits the silence of an evacuator.
	DefaultProgressDeadlineSeconds = 1800
	// ControllerEvacuatorPriority is the priority for the role "controller".
	ControllerEvacuatorPriority = 10000
	// ControllerEvacuatorRole is the role of the evacuator of the pod's controller.
	ControllerEvacuatorRole = "controller"
	// MaxEvacuatorPriority is the highest priority of an evacuator.
	MaxEvacuatorPriority = 100000
	// MaxEvacuators is the maximum number of evacuators of a pod.
	MaxEvacuators = 100
)

// Evacuation asks for a pod to leave its node. Instigators ask by a finalizer, evacuators move the
// pod one after the other, and finally the evacuation controller evicts it (KEP-4212, KEP-4563).
// Its name is "<pod UID>-<first 150 characters of the pod's name>", without trailing dashes and
// dots.
//
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || !has(self.metadata.generateName)",fieldPath=".metadata.generateName",message="metadata.generateName is not supported: set metadata.name to <spec.podRef.uid>-<first 150 characters of spec.podRef.name>"
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || [self.spec.podRef.uid + '-' + (self.spec.podRef.name.size() > 150 ? self.spec.podRef.name.substring(0, 150) : self.spec.podRef.name)].all(full, full.startsWith(self.metadata.name) && full.substring(self.metadata.name.size()).matches('^[-.]*$'))",fieldPath=".metadata.name",messageExpression="'metadata.name must be ' + self.spec.podRef.uid + '-' + (self.spec.podRef.name.size() > 150 ? self.spec.podRef.name.substring(0, 150) : self.spec.podRef.name) + ', which is <spec.podRef.uid>-<first 150 characters of spec.podRef.name>'"
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=evac
// +kubebuilder:printcolumn:name="Pod",type=string,JSONPath=`.spec.podRef.name`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.metadata.annotations['ebbtide\.dev/node']`
// +kubebuilder:printcolumn:name="Evacuator",type=string,JSONPath=`.status.activeEvacuatorClass`
// +kubebuilder:printcolumn:name="Progress",type=date,JSONPath=`.status.evacuationProgressTimestamp`
// +kubebuilder:printcolumn:name="ETA",type=string,JSONPath=`.status.expectedEvacuationFinishTime`
// +kubebuilder:printcolumn:name="Failed evictions",type=integer,JSONPath=`.status.failedEvictionCounter`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Evacuation struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the pod and its evacuators.
	// +required
	Spec EvacuationSpec `json:"spec"`
	// status is the progress.
	// +optional
	Status EvacuationStatus `json:"status,omitempty"`
}

// EvacuationList is a list of Evacuations.
//
// +kubebuilder:object:root=true
type EvacuationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Evacuation `json:"items"`
}

// EvacuationSpec names the pod and its evacuators.
//
// +kubebuilder:validation:XValidation:rule="oldSelf.?evacuators.orValue([]).size() == 0 || self.?evacuators.orValue([]) == oldSelf.evacuators",fieldPath=".evacuators",message="evacuators are set once and then immutable; they come from the pod's annotations when the Evacuation is created"
type EvacuationSpec struct {
	// podRef is the pod. Immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="podRef is immutable; create an Evacuation of its own for another pod"
	PodRef LocalPodReference `json:"podRef"`

	// progressDeadlineSeconds is the time without a report after which the next evacuator
	// takes over, from 600 to 21600. Defaults to 1800. Immutable.
	// +optional
	// +default=1800
	// +kubebuilder:validation:Minimum=600
	// +kubebuilder:validation:Maximum=21600
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="progressDeadlineSeconds is immutable; set it when the Evacuation is created"
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`

	// evacuators are the evacuators registered on the pod, read once from its annotations.
	// Immutable.
	// +optional
	// +listType=map
	// +listMapKey=evacuatorClass
	// +kubebuilder:validation:MaxItems=100
	Evacuators []Evacuator `json:"evacuators,omitempty"`
}

// LocalPodReference names a pod in the same namespace by name and UID.
type LocalPodReference struct {
	// name of the pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// uid of the pod.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid"`
}

// Evacuator can move the pod in its own way.
type Evacuator struct {
	// evacuatorClass is the name of the evacuator, a DNS subdomain.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="evacuatorClass must be a DNS subdomain such as drainer.example.com: lower case letters, digits, - and ., beginning and ending with a letter or digit"
	EvacuatorClass string `json:"evacuatorClass"`
	// priority is the order of the evacuators: the highest comes first, ties are ordered by class
	// name.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Priority int32 `json:"priority"`
	// role is "controller" for the pod's controller, or any other text.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Role string `json:"role,omitempty"`
}

// EvacuationStatus is the progress of an evacuation. The evacuation controller sets the active
// evacuator and counts evictions; the active evacuator reports the rest.
//
// +kubebuilder:validation:XValidation:rule="self.?failedEvictionCounter.orValue(0) >= oldSelf.?failedEvictionCounter.orValue(0)",fieldPath=".failedEvictionCounter",message="failedEvictionCounter only grows; read the Evacuation again and count on from its value"
type EvacuationStatus struct {
	// activeEvacuatorClass is the active evacuator.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ActiveEvacuatorClass string `json:"activeEvacuatorClass,omitempty"`

	// activeEvacuatorCompleted is set by the active evacuator when it is done.
	// +optional
	ActiveEvacuatorCompleted bool `json:"activeEvacuatorCompleted,omitempty"`

	// evacuationProgressTimestamp is the time of the active evacuator's last report (KEP-4212).
	// +optional
	EvacuationProgressTimestamp *metav1.Time `json:"evacuationProgressTimestamp,omitempty"`

	// expectedEvacuationFinishTime is the active evacuator's estimate.
	// +optional
	ExpectedEvacuationFinishTime *metav1.Time `json:"expectedEvacuationFinishTime,omitempty"`

	// evacuationCancellationPolicy says whether the evacuation can be cancelled. If unset, it can.
	// +optional
	EvacuationCancellationPolicy EvacuationCancellationPolicy `json:"evacuationCancellationPolicy,omitempty"`

	// failedEvictionCounter is the number of refused evictions. It only grows (KEP-4212).
	// +optional
	// +kubebuilder:validation:Minimum=0
	FailedEvictionCounter int32 `json:"failedEvictionCounter,omitempty"`

	// message describes the progress, for people. At most 32,768 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`

	// refusingBudgetName is the PodDisruptionBudget that refused the last eviction, or whose lock
	// prevented it. Unset if no budget refuses, or none is known.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	RefusingBudgetName string `json:"refusingBudgetName,omitempty"`

	// conditions are EvictionRefused, with a BlockerType as its reason, while the API server
	// refuses the eviction, and those of Ebbtide's evacuators.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
