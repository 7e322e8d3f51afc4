package node

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/patience"
)

// budget lets nobody go, or as few as it says.
func (s *stage) budget(t *testing.T, namespace, app string, unavailable int) *policyv1.PodDisruptionBudget {
	t.Helper()
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app}, Spec: policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: new(intstr.FromInt(unavailable)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
	}}
	if err := s.Client.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return b
}

// withoutManager is a node on which no manager is.
func (s *stage) withoutManager(t *testing.T) string {
	t.Helper()
	list := &corev1.PodList{}
	if err := s.Client.List(t.Context(), list, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/name": "ebbtide"}); err != nil {
		t.Fatal(err)
	}
	for _, node := range s.Nodes {
		if !slices.ContainsFunc(list.Items, func(pod corev1.Pod) bool { return pod.Spec.NodeName == node }) {
			return node
		}
	}
	t.Fatal("there is a manager on each node")
	return ""
}

// bootOf is the boot that a node reports.
func (s *stage) bootOf(t *testing.T, node string) string {
	t.Helper()
	object, err := getNode(t.Context(), s.Cluster, node)
	if err != nil {
		t.Fatal(err)
	}
	return object.Status.NodeInfo.BootID
}

// cutLeader cuts the power of the leader while a drain waits for a budget: another manager
// goes on with it.
func (s *stage) cutLeader(t *testing.T) {
	s.settled(t)
	before, dark := s.leader(t)
	node, namespace := s.withoutManager(t), s.Namespace(t)
	s.serveOn(t, namespace, node, program{name: "held", grace: 2 * time.Second})
	held := s.budget(t, namespace, "held", 0)
	s.maintain(t, "leader", node)
	s.says(t, "leader", v1alpha1.BlockerPDBUnsatisfiable)
	boot := s.bootOf(t, dark)

	s.PowerOff(t, dark)
	cut := time.Now()
	if err := s.Client.Delete(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	s.drained(t, "leader")
	after, _ := s.leader(t)
	t.Logf("%s had led; %s had drained the node %s after the power cut", before, after, time.Since(cut).Round(100*time.Millisecond))
	if after == before {
		t.Errorf("%s leads, whose node has no power", after)
	}
	s.PowerOn(t, dark)
	waitReady(t, s.Cluster, dark, boot)
	s.complete(t, "leader")
	s.settled(t)
}

// cutDrained cuts the power of a node whose last pod is deaf: it is waited for, since nobody
// knows whether it runs, and it is gone soon after the node is back.
func (s *stage) cutDrained(t *testing.T) {
	node, namespace := s.withoutManager(t), s.Namespace(t)
	s.serveOn(t, namespace, node, program{name: "deaf", grace: 20 * time.Second, args: []string{"-deaf"}})
	boot := s.bootOf(t, node)
	s.maintain(t, "dark", node)
	s.awaitPod(t, namespace, "deaf", "to be asked to end", func(pod *corev1.Pod) bool {
		return pod.Spec.NodeName == node && pod.DeletionTimestamp != nil
	})
	s.PowerOff(t, node)
	t.Logf("while it is dark: %s", s.says(t, "dark", v1alpha1.BlockerNodeUnreachable))
	s.PowerOn(t, node)
	waitReady(t, s.Cluster, node, boot)
	t.Logf("drained %s after the boot", s.drained(t, "dark"))
	s.goneFrom(t, namespace, node, "deaf")
	s.complete(t, "dark")
	s.settled(t)
}

// rebootInPlace completes a maintenance in the moment in which the node goes down. The API
// shows node and pod as Ready for most of a minute after that, and the lock of the budget
// holds until the pod was started under another boot.
func (s *stage) rebootInPlace(t *testing.T) {
	node, namespace := s.withoutManager(t), s.Namespace(t)
	s.Apply(t, namespace, program{name: "shard", replicas: 3, grace: 2 * time.Second, stays: true}.text())
	waitAvailable(t, s.Cluster, namespace, "shard")
	s.budget(t, namespace, "shard", 1)
	boot := s.bootOf(t, node)
	s.maintain(t, "reboot", node, func(m *v1alpha1.NodeMaintenance) {
		m.Spec.InPlace = &v1alpha1.InPlace{ExpectedDowntimeSeconds: 120, LockTimeoutSeconds: 60, OnLockTimeout: v1alpha1.LockTimeoutWait}
	})
	s.drained(t, "reboot")

	s.PowerOff(t, node)
	dark := time.Now()
	m, err := s.maintenance(t.Context(), "reboot")
	if err != nil {
		t.Fatal(err)
	}
	m.Spec.Stage = v1alpha1.StageComplete
	if err := s.Client.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	for time.Since(dark) < 10*time.Second {
		if err := s.evictElsewhere(t, namespace, "shard", node); err == nil {
			t.Fatalf("an eviction elsewhere was admitted %s after the power cut", time.Since(dark))
		}
		time.Sleep(200 * time.Millisecond)
	}
	s.PowerOn(t, node)
	waitReady(t, s.Cluster, node, boot)
	patience.Eventually(t, "the lock to go", func(ctx context.Context) (string, bool) {
		b := &policyv1.PodDisruptionBudget{}
		err := s.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "shard"}, b)
		return fmt.Sprint(b.Annotations, err), err == nil && b.Annotations[v1alpha1.LockAnnotation] == ""
	})
	t.Logf("the lock went %s after the power cut", time.Since(dark).Round(100*time.Millisecond))
	s.awaitPod(t, namespace, "shard", "to run under the new boot", func(pod *corev1.Pod) bool {
		started := len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].RestartCount > 0
		return pod.Spec.NodeName == node && started && isPodReady(pod)
	})
	s.complete(t, "reboot")
}

// evictElsewhere tries to evict the pods of an application on other nodes, as a dry run.
func (s *stage) evictElsewhere(t *testing.T, namespace, app, node string) (err error) {
	t.Helper()
	running, err := pods(t.Context(), s.Cluster, namespace, app)
	if err != nil {
		t.Fatal(err)
	}
	for on, list := range running {
		if on == node {
			continue
		}
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: list[0].Name}}
		return s.Client.SubResource("eviction").Create(t.Context(), &list[0], eviction, client.DryRunAll)
	}
	t.Fatalf("%s has no pods elsewhere", app)
	return nil
}
