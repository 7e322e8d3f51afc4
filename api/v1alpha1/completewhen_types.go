package v1alpha1

// CompleteWhen lists what a node must report before its maintenance completes automatically. All
// of it must be met. It is compared with the node at its handover, which is when the maintenance
// was Drained.
//
// +kubebuilder:validation:XValidation:rule="self.?newBoot.orValue(false) || has(self.kubeletVersion) && self.kubeletVersion.size() > 0 || has(self.kernelVersion) && self.kernelVersion.size() > 0 || has(self.osImage) && self.osImage.size() > 0 || has(self.containerRuntimeVersion) && self.containerRuntimeVersion.size() > 0",message="give at least one of newBoot: true, kubeletVersion, kernelVersion, osImage and containerRuntimeVersion; that a node is Ready does not show that anything was done to it"
type CompleteWhen struct {
	// newBoot requires that the node has booted since its handover: its status.nodeInfo.bootID has
	// changed. With inPlace, it must have booted inPlace.expectedRebootCount times, at least once.
	// +optional
	NewBoot bool `json:"newBoot,omitempty"`

	// kubeletVersion is the required version of the kubelet: as the node reports it, such as
	// "v1.37.1", or a range, such as ">=1.37.0", ">=1.36.2 <1.38.0" or "<1.36.0 || >=1.37.0". In a
	// range, a suffix such as -rc.1 or -gke.100 sorts before the version without it. At most 128
	// characters.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^(v[0-9].*|(>=|<=|>|<|==|=|!=|!)(0|[1-9][0-9]{0,8})([.](0|[1-9][0-9]{0,8})){2}(-(0|[1-9][0-9]{0,8}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)([.](0|[1-9][0-9]{0,8}|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?(( +| +[|][|] +)(>=|<=|>|<|==|=|!=|!)(0|[1-9][0-9]{0,8})([.](0|[1-9][0-9]{0,8})){2}(-(0|[1-9][0-9]{0,8}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)([.](0|[1-9][0-9]{0,8}|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?)*)?$')",message="kubeletVersion is a version as nodes report it, such as v1.37.1, or a range of versions with three numbers each, such as >=1.37.0, >=1.36.2 <1.38.0, or <1.36.0 || >=1.37.0"
	KubeletVersion string `json:"kubeletVersion,omitempty"`

	// kernelVersion is the required kernel, exactly as in status.nodeInfo.kernelVersion. At most
	// 256 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	KernelVersion string `json:"kernelVersion,omitempty"`

	// osImage is the required operating system, exactly as in status.nodeInfo.osImage. At most 256
	// characters.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	OSImage string `json:"osImage,omitempty"`

	// containerRuntimeVersion is the required container runtime, exactly as in
	// status.nodeInfo.containerRuntimeVersion, such as "containerd://2.1.4". At most 256
	// characters.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ContainerRuntimeVersion string `json:"containerRuntimeVersion,omitempty"`

	// readySeconds is the time that the node must then be Ready without interruption, 0 to 3600.
	// Every change of the compared values or of the Ready condition restarts it. Defaults to 30.
	// +optional
	// +default=30
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	ReadySeconds *int32 `json:"readySeconds,omitempty"`
}
