package kube_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/kube"
)

var birth = metav1.Date(2026, time.March, 1, 8, 0, 0, 0, time.UTC)

func TestStripPodKeepsFieldsOfDecisions(t *testing.T) {
	t.Parallel()

	got := kube.StripPod(fullPod(7))

	priority, grace, controller := int32(1000), int64(30), true
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "shop-5d9c7bdf4-00007", Namespace: "shop", UID: "uid-00007", ResourceVersion: "4711",
			CreationTimestamp: birth, DeletionTimestamp: &birth, DeletionGracePeriodSeconds: &grace,
			Labels: map[string]string{"app": "shop", "pod-template-hash": "5d9c7bdf4"},
			Annotations: map[string]string{
				"evacuation.coordination.k8s.io/priority_deployment.apps.k8s.io": "10000/controller",
				"ebbtide.dev/surge":           "recorded",
				"kubernetes.io/config.mirror": "abc",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "shop-5d9c7bdf4", UID: "rs-uid", Controller: &controller,
			}},
			Finalizers: []string{"example.com/keep"},
		},
		Spec: corev1.PodSpec{
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
				}},
			},
			NodeName: "node-one", Priority: &priority, TerminationGracePeriodSeconds: &grace,
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
				{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{
				Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: birth,
			}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cached pod (-want +got):\n%s", diff)
	}
}

func TestStripNodeKeepsFieldsOfDecisions(t *testing.T) {
	t.Parallel()

	got := kube.StripNode(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "node-one", UID: "uid", ResourceVersion: "12", CreationTimestamp: birth,
			Labels: map[string]string{"zone": "a"},
			Annotations: map[string]string{
				"ebbtide.dev/cordon": `{"holders":["a"]}`,
				"volumes.kubernetes.io/controller-managed-attach-detach": "true",
			},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
		},
		Spec: corev1.NodeSpec{
			PodCIDR: "10.0.0.0/24", ProviderID: "cloud:///1", Unschedulable: true,
			Taints: []corev1.Taint{{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule}},
		},
		Status: corev1.NodeStatus{
			Capacity:        corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")},
			VolumesAttached: []corev1.AttachedVolume{{Name: "kubernetes.io/csi/disk.example^one", DevicePath: "/dev/one"}},
			VolumesInUse:    []corev1.UniqueVolumeName{"kubernetes.io/csi/disk.example^one"},
			Images:          []corev1.ContainerImage{{Names: []string{"shop:1"}}},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: birth},
				{Type: "DrainInProgress", Status: corev1.ConditionTrue, Reason: "EbbtideNodeMaintenance"},
				{Type: "KernelDeadlock", Status: corev1.ConditionTrue, Reason: "DockerHung", Message: "hung", LastTransitionTime: birth, LastHeartbeatTime: birth},
				{Type: "ReadonlyFilesystem", Status: corev1.ConditionFalse},
			},
		},
	})

	want := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "node-one", UID: "uid", ResourceVersion: "12", CreationTimestamp: birth,
			Labels:      map[string]string{"zone": "a"},
			Annotations: map[string]string{"ebbtide.dev/cordon": `{"holders":["a"]}`},
		},
		Spec: corev1.NodeSpec{
			ProviderID: "cloud:///1", Unschedulable: true,
			Taints: []corev1.Taint{{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule}},
		},
		Status: corev1.NodeStatus{
			VolumesAttached: []corev1.AttachedVolume{{Name: "kubernetes.io/csi/disk.example^one", DevicePath: "/dev/one"}},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: birth},
				{Type: "DrainInProgress", Status: corev1.ConditionTrue, Reason: "EbbtideNodeMaintenance"},
				{Type: "KernelDeadlock", Status: corev1.ConditionTrue, LastTransitionTime: birth, LastHeartbeatTime: birth},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cached node (-want +got):\n%s", diff)
	}
}

func TestCachedPodTakesAtMostThreeKiB(t *testing.T) {
	const limit = 3 * 1024
	if got := cachedPodBytes(5000); got > limit {
		t.Errorf("a cached pod takes %.0f bytes, want at most %d", got, limit)
	}
}

// cachedPodBytes is the growth of the heap per pod that only its stripped form
// keeps alive. Pods are decoded from the wire first, because that is how their
// strings come into being.
func cachedPodBytes(count int) float64 {
	kept := make([]*corev1.Pod, 0, count)
	before := liveHeap()
	for i := range count {
		kept = append(kept, kube.StripPod(decoded(fullPod(i))))
	}
	after := liveHeap()
	runtime.KeepAlive(kept)
	return (float64(after) - float64(before)) / float64(count)
}

func liveHeap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func decoded(pod *corev1.Pod) *corev1.Pod {
	wire, err := pod.Marshal()
	if err != nil {
		panic(fmt.Sprintf("encode a pod: %v", err))
	}
	copied := &corev1.Pod{}
	if err := copied.Unmarshal(wire); err != nil {
		panic(fmt.Sprintf("decode a pod: %v", err))
	}
	return copied
}

func fullPod(number int) *corev1.Pod {
	priority, grace, controller := int32(1000), int64(30), true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("shop-5d9c7bdf4-%05d", number), GenerateName: "shop-5d9c7bdf4-", Namespace: "shop",
			UID: types.UID(fmt.Sprintf("uid-%05d", number)), ResourceVersion: "4711",
			CreationTimestamp: birth, DeletionTimestamp: &birth, DeletionGracePeriodSeconds: &grace,
			Labels: map[string]string{"app": "shop", "pod-template-hash": "5d9c7bdf4"},
			Annotations: map[string]string{
				"evacuation.coordination.k8s.io/priority_deployment.apps.k8s.io": "10000/controller",
				"ebbtide.dev/surge":                 "recorded",
				"kubernetes.io/config.mirror":       "abc",
				"kubectl.kubernetes.io/restartedAt": "2026-02-01T00:00:00Z",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "shop-5d9c7bdf4", UID: "rs-uid", Controller: &controller,
			}},
			Finalizers:    []string{"example.com/keep"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`)}},
		},
		Spec: corev1.PodSpec{
			Volumes: []corev1.Volume{
				{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: new(int32(420))}}},
				{Name: "data", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
				}},
			},
			Containers:                    []corev1.Container{{Name: "shop", Image: "registry.example/shop:1"}},
			TerminationGracePeriodSeconds: &grace,
			NodeName:                      "node-one",
			ServiceAccountName:            "shop",
			Priority:                      &priority,
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
				{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: birth},
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: birth, Message: "fine"},
			},
			PodIP:             "10.0.0.7",
			ContainerStatuses: []corev1.ContainerStatus{{Name: "shop", Ready: true, ContainerID: "containerd://abc"}},
		},
	}
}

// Of a pod that is on no node it is kept why, in a few words, and of others nothing.
func TestWhyAPodIsOnNoNodeIsKept(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: strings.Repeat("ä", 1000),
	}}}}
	kept := kube.StripPod(pod).Status.Conditions
	if len(kept) != 1 || kept[0].Reason != corev1.PodReasonUnschedulable || kept[0].Message != strings.Repeat("ä", 256) {
		t.Errorf("kept is %+v, want the reason and the beginning of the words", kept)
	}
	pod.Spec.NodeName = "one"
	if kept := kube.StripPod(pod).Status.Conditions; len(kept) > 0 {
		t.Errorf("of a pod on a node is kept %+v", kept)
	}
}
