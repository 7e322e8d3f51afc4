package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SchemeGroupVersion is the group and version of every kind in this package.
var SchemeGroupVersion = schema.GroupVersion{Group: "ebbtide.dev", Version: "v1alpha1"}

// AddToScheme registers the kinds of this package.
var AddToScheme = (&runtime.SchemeBuilder{addKnownTypes}).AddToScheme

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&NodeMaintenance{}, &NodeMaintenanceList{},
		&Evacuation{}, &EvacuationList{},
		&MachineDrainRule{}, &MachineDrainRuleList{},
		&Cluster{}, &ClusterList{},
		&Machine{}, &MachineList{},
		&DrainRecord{}, &DrainRecordList{},
		&NodeAgent{}, &NodeAgentList{},
		&NodeRollout{}, &NodeRolloutList{},
		&NodeBudget{}, &NodeBudgetList{},
	)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
