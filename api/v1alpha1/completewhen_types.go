package v1alpha1

// CompleteWhen is by what a node shows that the work on it is done. Everything that is
// given has to be true at once. It is compared with what the node was when it was handed
// over, which is when the maintenance was Drained: what the node did before does not count.
//
// +kubebuilder:validation:XValidation:rule="self.?newBoot.orValue(false) || has(self.kubeletVersion) && self.kubeletVersion.size() > 0 || has(self.kernelVersion) && self.kernelVersion.size() > 0 || has(self.osImage) && self.osImage.size() > 0 || has(self.containerRuntimeVersion) && self.containerRuntimeVersion.size() > 0",message="give at least one of newBoot: true, kubeletVersion, kernelVersion, osImage and containerRuntimeVersion; that a node is Ready does not show that anything was done to it"
type CompleteWhen struct {
	// newBoot demands that the node has booted since it was handed over: its
	// status.nodeInfo.bootID is another one. With inPlace it has to have booted
	// inPlace.expectedRebootCount times, at least once.
	// +optional
	NewBoot bool `json:"newBoot,omitempty"`

	// kubeletVersion is the version of the kubelet that is wanted: as the node reports it, such as
	// "v1.37.1", or a range such as ">=1.37.0", ">=1.36.2 <1.38.0" or "<1.36.0 || >=1.37.0". In
	// a range a suffix such as -rc.1 or -gke.100 makes a version less than the same without
	// it. At most 128 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^(v[0-9].*|(>=|<=|>|<|==|=|!=|!)(0|[1-9][0-9]{0,8})([.](0|[1-9][0-9]{0,8})){2}(-(0|[1-9][0-9]{0,8}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)([.](0|[1-9][0-9]{0,8}|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?(( +| +[|][|] +)(>=|<=|>|<|==|=|!=|!)(0|[1-9][0-9]{0,8})([.](0|[1-9][0-9]{0,8})){2}(-(0|[1-9][0-9]{0,8}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)([.](0|[1-9][0-9]{0,8}|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?)*)?$')",message="kubeletVersion is a version as nodes report it, such as v1.37.1, or a range of versions with three numbers each, such as >=1.37.0, >=1.36.2 <1.38.0, or <1.36.0 || >=1.37.0"
	KubeletVersion string `json:"kubeletVersion,omitempty"`

	// kernelVersion is the kernel that is wanted, exactly as the node reports it in
	// status.nodeInfo.kernelVersion. At most 256 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	KernelVersion string `json:"kernelVersion,omitempty"`

	// osImage is the operating system that is wanted, exactly as the node reports it in
	// status.nodeInfo.osImage. At most 256 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	OSImage string `json:"osImage,omitempty"`

	// containerRuntimeVersion is the container runtime that is wanted, exactly as the node
	// reports it in status.nodeInfo.containerRuntimeVersion, such as "containerd://2.1.4".
	// At most 256 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ContainerRuntimeVersion string `json:"containerRuntimeVersion,omitempty"`

	// readySeconds is for how long the node then has to be Ready without a break, 0 to 3600.
	// Each change of what is compared, and of the Ready condition, begins it anew.
	// Defaults to 30.
	// +optional
	// +default=30
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	ReadySeconds *int32 `json:"readySeconds,omitempty"`
}
