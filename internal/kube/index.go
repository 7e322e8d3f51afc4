package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Field indexes.
const (
	// PodNodeField finds the pods of a node.
	PodNodeField = "spec.nodeName"
	// PodHeldNodeField finds the pods that a scheduling gate keeps from a node.
	PodHeldNodeField = "ebbtide.dev/held-node"
	// OwnerField finds what a controller of group apps owns by its UID.
	OwnerField = "ebbtide.dev/owner"
	// PodSurgeField finds the pods with a surge annotation by the UID of the Deployment.
	PodSurgeField = "ebbtide.dev/surging"

	// EvacuationPodField finds the Evacuations of a pod by UID.
	EvacuationPodField = "spec.podRef.uid"
	// EvacuationNodeField finds the Evacuations that NodeMaintenances requested on a node.
	EvacuationNodeField = "ebbtide.dev/node"
	// EvacuationTurnField finds the Evacuations requested by our responders by the name of the
	// Eviction, or by NoEviction.
	EvacuationTurnField = "ebbtide.dev/eviction-turn"

	// RequestNodeField finds the EvictionRequests of NodeMaintenances by node, EvictionPodField the
	// Evictions of a pod by UID. Both exist only while the kinds are served.
	RequestNodeField = "ebbtide.dev/node"
	EvictionPodField = "spec.target.pod.uid"

	// RecordBudgetField finds the DrainRecords that request or remember the lock of a budget by
	// namespace/name.
	RecordBudgetField = "ebbtide.dev/budget"
	// LockNodeField finds the PodDisruptionBudgets that the drain of a node has locked.
	LockNodeField = "ebbtide.dev/lock-node"

	// NodeProviderField finds Nodes by provider ID.
	NodeProviderField = "spec.providerID"
	// AttachmentNodeField finds the VolumeAttachments of a node.
	AttachmentNodeField = "spec.nodeName"
	// VolumeHandleField finds PersistentVolumes by VolumeHandle.
	VolumeHandleField = "spec.csi.volumeHandle"

	// MachineClusterField finds the Machines of a Cluster of their namespace.
	MachineClusterField = "spec.clusterName"
	// MachineProviderField finds Machines by provider ID.
	MachineProviderField = "spec.providerID"
	// MachineNodeField finds Machines by the name of their Node.
	MachineNodeField = "status.nodeRef.name"
	// MachineRefField finds the Machines that name an infrastructure or bootstrap object, by
	// RefKey.
	MachineRefField = "ebbtide.dev/ref"
	// ClusterRefField finds the Clusters that name a control plane object, by RefKey.
	ClusterRefField = "ebbtide.dev/control-plane-ref"
)

type index struct {
	object  client.Object
	field   string
	extract client.IndexerFunc
}

// IndexFields adds the field indexes of all shells. Call it before the cache starts. It fails if an
// index exists already or the cache cannot be set up.
func IndexFields(ctx context.Context, indexer client.FieldIndexer) error {
	return addIndexes(ctx, indexer, []index{
		{&corev1.Pod{}, PodNodeField, PodNode},
		{&corev1.Pod{}, PodHeldNodeField, PodHeldNode},
		{&corev1.Pod{}, OwnerField, Owner},
		{&corev1.Pod{}, PodSurgeField, PodSurge},
		{&appsv1.ReplicaSet{}, OwnerField, Owner},
		{&v1alpha1.Evacuation{}, EvacuationPodField, EvacuationPod},
		{&v1alpha1.Evacuation{}, EvacuationNodeField, EvacuationNode},
		{&v1alpha1.Evacuation{}, EvacuationTurnField, EvacuationTurn},
		{&v1alpha1.DrainRecord{}, RecordBudgetField, RecordBudgets},
		{&policyv1.PodDisruptionBudget{}, LockNodeField, LockNode},
	})
}

// IndexMachines adds the further field indexes for Machines and Clusters. Call it before the cache
// starts. Its errors are those of IndexFields.
func IndexMachines(ctx context.Context, indexer client.FieldIndexer) error {
	return addIndexes(ctx, indexer, append(workloadIndexes(), []index{
		{&v1alpha1.Machine{}, MachineClusterField, machineCluster},
		{&v1alpha1.Machine{}, MachineProviderField, machineProvider},
		{&v1alpha1.Machine{}, MachineNodeField, machineNode},
		{&v1alpha1.Machine{}, MachineRefField, MachineRefs},
		{&v1alpha1.Cluster{}, ClusterRefField, ClusterRef},
	}...))
}

// IndexWorkload adds the field indexes of WorkloadKinds. Call it before the cache starts.
// Errors as from IndexFields.
func IndexWorkload(ctx context.Context, indexer client.FieldIndexer) error {
	return addIndexes(ctx, indexer, append(workloadIndexes(), index{&corev1.Pod{}, PodNodeField, PodNode}))
}

func workloadIndexes() []index {
	return []index{
		{&corev1.Node{}, NodeProviderField, NodeProvider},
		{&storagev1.VolumeAttachment{}, AttachmentNodeField, AttachmentNode},
		{&corev1.PersistentVolume{}, VolumeHandleField, VolumeHandles},
	}
}

func addIndexes(ctx context.Context, indexer client.FieldIndexer, indexes []index) error {
	for _, one := range indexes {
		if err := indexer.IndexField(ctx, one.object, one.field, one.extract); err != nil {
			return fmt.Errorf("index %T by %s: %w", one.object, one.field, err)
		}
	}
	return nil
}

// by returns the text of an object of a type as the value of an index; none if it is empty.
func by[T client.Object](object client.Object, text func(T) string) []string {
	typed, ok := object.(T)
	if !ok {
		return nil
	}
	if value := text(typed); value != "" {
		return []string{value}
	}
	return nil
}

// PodNode extracts PodNodeField.
func PodNode(object client.Object) []string {
	return by(object, func(pod *corev1.Pod) string { return pod.Spec.NodeName })
}

// PodHeldNode extracts PodHeldNodeField.
func PodHeldNode(object client.Object) []string {
	return by(object, func(pod *corev1.Pod) string {
		if len(pod.Spec.SchedulingGates) == 0 {
			return ""
		}
		return PinnedNode(pod)
	})
}

// PodSurge extracts PodSurgeField.
func PodSurge(object client.Object) []string {
	var deployments []string
	for _, key := range []string{v1alpha1.SurgeAnnotation, v1alpha1.SurgeReplacementAnnotation} {
		var named struct {
			Deployment struct {
				UID string `json:"uid"`
			} `json:"deployment"`
		}
		text := object.GetAnnotations()[key]
		if text != "" && json.Unmarshal([]byte(text), &named) == nil && named.Deployment.UID != "" {
			deployments = append(deployments, named.Deployment.UID)
		}
	}
	return slices.Compact(deployments)
}

// Owner extracts OwnerField.
func Owner(object client.Object) []string {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil || owner.APIVersion != appsv1.SchemeGroupVersion.String() {
		return nil
	}
	return []string{string(owner.UID)}
}

// PinnedNode returns the node of a DaemonSet pod, by spec.nodeName or its node affinity, or an
// empty string.
func PinnedNode(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return ""
	}
	required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return ""
	}
	for _, term := range required.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}
