package kube_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/kube"
)

// A budget is found by the node whose drain says that it has locked it, whoever says so.
func TestTheNodeOfALock(t *testing.T) {
	t.Parallel()
	for lock, want := range map[string][]string{
		"": nil, "{": nil, `{"holder":"dba"}`: nil, `{"holder":"a/b/c/d"}`: nil,
		`{"holder":"nodemaintenance/kernel/node-1"}`:  {"node-1"},
		`{ "holder":"nodemaintenance/kernel/node-2"}`: {"node-2"},
	} {
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.LockAnnotation: lock}}}
		if diff := cmp.Diff(want, kube.LockNode(budget)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", lock, diff)
		}
	}
}

// A record is found by every budget that it asks for or remembers.
func TestTheBudgetsOfARecord(t *testing.T) {
	t.Parallel()
	named := func(name string) v1alpha1.BudgetReference {
		return v1alpha1.BudgetReference{Namespace: "shop", Name: name}
	}
	record := &v1alpha1.DrainRecord{
		Spec: v1alpha1.DrainRecordSpec{Budgets: []v1alpha1.BudgetReference{named("db"), named("web")}},
		Status: v1alpha1.DrainRecordStatus{
			Locks:   []v1alpha1.RecordedLock{{BudgetReference: named("db")}, {BudgetReference: named("old")}},
			GivenUp: []v1alpha1.GivenUpBudget{{BudgetReference: named("closed")}},
		},
	}
	if diff := cmp.Diff([]string{"shop/closed", "shop/db", "shop/old", "shop/web"}, slices.Sorted(slices.Values(kube.RecordBudgets(record)))); diff != "" {
		t.Errorf("budgets (-want +got):\n%s", diff)
	}
}

// Of a pod that stays on a node which reboots, the containers from before and after
// can be told apart; of others nobody asks.
func TestStripPodKeepsTheStartsOfPodsThatStay(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: "app", ContainerID: "containerd://1", Image: "app:1", RestartCount: 3,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: birth}},
	}}}}
	if got := kube.StripPod(pod).Status.ContainerStatuses; got != nil {
		t.Errorf("of a pod that leaves these are kept: %+v", got)
	}
	pod.Labels = map[string]string{v1alpha1.OnUpgradeLabel: v1alpha1.OnUpgradeStay}
	want := []corev1.ContainerStatus{{
		Name: "app", ContainerID: "containerd://1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: birth}},
	}}
	if diff := cmp.Diff(want, kube.StripPod(pod).Status.ContainerStatuses); diff != "" {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
}

func TestStripNodeKeepsBootAndVersions(t *testing.T) {
	t.Parallel()
	read := corev1.NodeSystemInfo{
		BootID: "boot", KernelVersion: "7.2", KubeletVersion: "v1.37.1", OSImage: "Ebb OS 3", ContainerRuntimeVersion: "containerd://2.1.4",
	}
	node := &corev1.Node{Status: corev1.NodeStatus{NodeInfo: read}}
	node.Status.NodeInfo.MachineID, node.Status.NodeInfo.Architecture = "machine", "arm64"
	if diff := cmp.Diff(read, kube.StripNode(node).Status.NodeInfo); diff != "" {
		t.Errorf("node info (-want +got):\n%s", diff)
	}
}
