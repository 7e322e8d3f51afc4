package v1alpha1

// RolloutRequirement names a condition of a node, which must hold before it starts.
//
// +kubebuilder:validation:Enum=Room;NoLoss
// +kubebuilder:validation:MaxLength=6
type RolloutRequirement string

const (
	// RequiresRoom requires that the evicted pods fit on other nodes.
	RequiresRoom RolloutRequirement = "Room"
	// RequiresNoLoss requires that no pods or data are lost for good.
	RequiresNoLoss RolloutRequirement = "NoLoss"
)

// RolloutGate is a condition outside of the rollout, by a Prometheus query or a field of an object.
//
// +kubebuilder:validation:XValidation:rule="has(self.prometheus) != has(self.object)",message="a gate has either prometheus or object"
type RolloutGate struct {
	// name of the gate, for people.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// prometheus opens the gate by a query.
	// +optional
	Prometheus *PrometheusGate `json:"prometheus,omitempty"`

	// object opens the gate by a field of an object.
	// +optional
	Object *ObjectGate `json:"object,omitempty"`
}

// PrometheusGate is a query of the Prometheus whose URL is the flag --prometheus-url of the manager.
type PrometheusGate struct {
	// query is an instant query. The gate is open if it returns at least one sample, and every
	// sample is a number other than 0. An empty, failed or incomplete result closes the gate.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query"`
}

// ObjectGate is a field of an object. The manager needs the right to get the object, and so do
// users who set the gate.
//
// +kubebuilder:validation:XValidation:rule="self.kind != 'Secret'",fieldPath=".kind",message="a gate cannot read Secrets: use another kind, such as ConfigMap"
type ObjectGate struct {
	// apiVersion of the object, such as v1 or ceph.rook.io/v1.
	// +required
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	APIVersion string `json:"apiVersion"`
	// kind of the object. Secrets are refused.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]+$`
	Kind string `json:"kind"`
	// namespace of the object. Unset for a cluster-scoped kind.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^/%\s]+$`
	Name string `json:"name"`
	// jsonPath selects one value by fields, indices and comparisons of lists, such as .status.phase
	// or .status.conditions[?(@.type=="Ready")].status. Write a dot in a field as \.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(\.([A-Za-z0-9_/-]|\\\.)+(\[([0-9]{1,6}|\?\(@\.[A-Za-z0-9_-]+=="[^"\\\s]*"\))\])*)+$`
	JSONPath string `json:"jsonPath"`
	// value opens the gate: a text, or a number or truth value as text.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Value string `json:"value"`
}
