package v1alpha1

// RolloutNodeSpec is a decision of a user about one node.
type RolloutNodeSpec struct {
	// name of the node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// skip leaves the node out. A maintenance that has started continues.
	// +optional
	Skip bool `json:"skip,omitempty"`

	// forgivenAttemptCount is the number of attempts that no longer count as failures, so that the
	// node is tried again. Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ForgivenAttemptCount int32 `json:"forgivenAttemptCount,omitempty"`
}
