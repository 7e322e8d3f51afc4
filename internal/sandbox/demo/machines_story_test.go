package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox/provider/api"
)

func worker(phase v1alpha1.MachinePhase, providerID, node string) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}
	m.Spec.ProviderID, m.Status.Phase = providerID, phase
	if node != "" {
		m.Status.NodeRef = &v1alpha1.MachineNodeReference{Name: node}
	}
	return m
}

func deleting(reason, message string) *v1alpha1.Machine {
	m := worker(v1alpha1.MachineDeleting, "sandbox://1", "worker-1")
	m.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionDeleting, Status: metav1.ConditionTrue, Reason: reason, Message: message,
	}}
	return m
}

func refused(answer string) *v1alpha1.Machine {
	m := deleting("DrainingNode", "Drain not completed yet")
	m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionDrainingSucceeded, Status: metav1.ConditionFalse,
		Message: "Drain not completed yet:\n* Pods with eviction failed:\n  * " + answer + "\n* Pods that are evicted later",
	})
	return m
}

func instanceNode(unschedulable bool, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "worker-1"},
		Spec:       corev1.NodeSpec{Unschedulable: unschedulable},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
	}
}

func attachment(node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-1"},
		Spec: storagev1.VolumeAttachmentSpec{
			NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("disk-1")},
		},
	}
}

func TestArrivalOfMachinesReportsEachPhaseOnce(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	a := newArrival(1, printer(&out))
	fresh := instanceNode(false, corev1.ConditionTrue)
	fresh.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady}}
	for i, object := range []runtime.Object{
		worker("", "", ""),
		worker(v1alpha1.MachinePending, "", ""),
		worker(v1alpha1.MachinePending, "", ""),
		worker(v1alpha1.MachineProvisioned, "sandbox://1", ""),
		worker(v1alpha1.MachineRunning, "sandbox://1", "node-1"),
		instanceNode(false, corev1.ConditionUnknown),
		fresh,
		instanceNode(false, corev1.ConditionTrue),
		instanceNode(false, corev1.ConditionTrue),
	} {
		if a.allRun() && i < 8 {
			t.Errorf("they run before change %d", i)
		}
		if err := a.see(time.Duration(i)*time.Second, watch.Event{Type: watch.Modified, Object: object}); err != nil {
			t.Fatal(err)
		}
	}
	if !a.allRun() {
		t.Errorf("they do not run: %s", a.lastStatus())
	}
	want := `   1.0s  worker-1  Pending
   3.0s  worker-1  Provisioned: providerID sandbox://1
   4.0s  worker-1  Running: Node node-1
   7.0s  worker-1  Node worker-1 is ready for pods
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("story (-want +got):\n%s", diff)
	}
}

var anEnd = []moment{
	{0, watch.Added, worker(v1alpha1.MachineRunning, "sandbox://1", "worker-1")},
	{0, watch.Added, instanceNode(false, corev1.ConditionTrue)},
	{0, watch.Added, pod("web", 0, false)},
	{0, watch.Added, pod("db", 0, false)},
	{0, watch.Added, pod("metrics", 0, false)},
	{0, watch.Added, attachment("worker-1")},
	{0, watch.Added, attachment("worker-2")},
	{0, watch.Added, budget(2)},
	{100 * time.Millisecond, watch.Modified, deleting("WaitingForPreDrainHook", "held by Backup")},
	{200 * time.Millisecond, watch.Modified, deleting("WaitingForPreDrainHook", "held by Backup, still")},
	{2000 * time.Millisecond, watch.Modified, deleting("DrainingNode", "Drain not completed yet:\n* Pods")},
	{2000 * time.Millisecond, watch.Modified, instanceNode(true, corev1.ConditionTrue)},
	{2100 * time.Millisecond, watch.Modified, pod("web", 0, true)},
	{2100 * time.Millisecond, watch.Deleted, pod("web", 0, true)},
	{2100 * time.Millisecond, watch.Modified, refused("no budget: shop/db")},
	{2200 * time.Millisecond, watch.Modified, refused("no budget yet: shop/db")},
	{2200 * time.Millisecond, watch.Modified, pod("db", 0, true)},
	{3200 * time.Millisecond, watch.Deleted, pod("db", 0, true)},
	{3200 * time.Millisecond, watch.Modified, budget(1)},
	{4000 * time.Millisecond, watch.Deleted, attachment("worker-2")},
	{5000 * time.Millisecond, watch.Deleted, attachment("worker-1")},
	{5100 * time.Millisecond, watch.Modified, instanceNode(true, corev1.ConditionUnknown)},
	{5200 * time.Millisecond, watch.Deleted, &api.SandboxMachine{}},
	{5300 * time.Millisecond, watch.Deleted, &api.SandboxConfig{}},
	{5400 * time.Millisecond, watch.Deleted, instanceNode(true, corev1.ConditionUnknown)},
	{5500 * time.Millisecond, watch.Deleted, deleting("DeletionCompleted", "nothing is left")},
}

const wantEnd = `   0.1s  step      WaitingForPreDrainHook: held by Backup
   2.0s  step      DrainingNode: Drain not completed yet:
                   * Pods
   2.0s  cordoned  worker-1
   2.1s  evicted   web
   2.1s  waits     no budget: shop/db
   2.2s  evicted   db
   3.2s  gone      db, 1.0s after its eviction
   5.0s  detached  disk-1 from worker-1
   5.1s  silent    Node worker-1 is no longer ready
   5.2s  instance  SandboxMachine worker-1 is gone
   5.3s  bootstrap SandboxConfig worker-1 is gone
   5.4s  node      Node worker-1 is gone
   5.5s  step      DeletionCompleted: nothing is left
   5.5s  gone      Machine worker-1

worker-1 was gone after 5.5s: 2 pods evicted; pods that stayed: metrics.
web never had fewer than 1 of 2 pods ready; its budget requires 1.
`

func TestDeletionOfAMachineIsReportedStepByStep(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	d := newDeparture("worker-1", printer(&out))
	if diff := cmp.Diff("the deletion has not begun: ", d.lastStatus()); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	for _, m := range anEnd {
		if d.isGone() {
			t.Errorf("the Machine is gone before %s", m.at)
		}
		if err := d.see(m.at, watch.Event{Type: m.change, Object: m.object}); err != nil {
			t.Fatal(err)
		}
	}
	if !d.isGone() {
		t.Errorf("the Machine is not gone: %s", d.lastStatus())
	}
	d.printSummary(&out)
	if diff := cmp.Diff(wantEnd, out.String()); diff != "" {
		t.Errorf("story (-want +got):\n%s", diff)
	}
}

func TestStoriesOfMachinesDoNotGoOnWithoutTheirWatches(t *testing.T) {
	t.Parallel()
	silent := printer(&strings.Builder{})
	for name, s := range map[string]story{"arrival": newArrival(1, silent), "departure": newDeparture("worker-1", silent)} {
		if err := s.see(0, watch.Event{Type: watch.Error}); err == nil || !strings.Contains(err.Error(), "a watch ended early") {
			t.Errorf("%s: error is %v, want that a watch ended early", name, err)
		}
	}
}
