package maintenance_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// handOver writes the annotation of a maintenance; an empty text removes it.
func (w *world) handOver(m *v1alpha1.NodeMaintenance, text string) {
	delete(m.Annotations, v1alpha1.HandedOverAnnotation)
	if text != "" {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.HandedOverAnnotation, text)
	}
}

// reports has the kubelet of a node say what it is: a boot, its version, and since when it
// is Ready; zero is not.
func (w *world) reports(name, boot, kubelet string, ready time.Time) {
	node := w.find(name)
	node.Status.NodeInfo = corev1.NodeSystemInfo{
		BootID: boot, KubeletVersion: kubelet, KernelVersion: "6.8.0", OSImage: "Ebb OS 3", ContainerRuntimeVersion: "containerd://2.1.4",
	}
	condition := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(ready)}
	if ready.IsZero() {
		condition.Status, condition.Reason, condition.LastTransitionTime = corev1.ConditionUnknown, "NodeStatusUnknown", metav1.NewTime(w.now)
	}
	node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	node.Status.Conditions = append(node.Status.Conditions, condition)
}

// handsOver is a world with a drained node that is handed over to whoever works on it.
func handsOver(t *testing.T, wants v1alpha1.CompleteWhen) (*world, *v1alpha1.NodeMaintenance) {
	t.Helper()
	w := newWorld(t, "node-7")
	w.reports("node-7", "boot-1", "v1.36.4", dawn)
	m := w.maintenance("m", drain, nil, "node-7")
	m.Spec.CompleteWhen = &wants
	w.settle()
	if !isTrue(m.Status.Conditions, v1alpha1.ConditionDrained) || w.mark("node-7") != "true by m" {
		t.Fatalf("the node is not handed over: %q, %q", says(m), w.mark("node-7"))
	}
	return w, m
}

// settle runs passes until nothing changes any more.
func (w *world) settle() {
	for range 5 {
		w.pass()
	}
}

// later lets time go by and settles.
func (w *world) later(by time.Duration) {
	w.now = w.now.Add(by)
	w.settle()
}

// mark is what a node shows of being handed over.
func (w *world) mark(name string) string {
	node := w.find(name)
	label, by := node.Labels[v1alpha1.HandedOverLabel], node.Annotations[v1alpha1.HandedOverByAnnotation]
	if label == "" && by == "" {
		return ""
	}
	return label + " by " + by
}

// whether is status and reason of the condition Returned.
func whether(m *v1alpha1.NodeMaintenance) string { return conditionOf(m, v1alpha1.ConditionReturned) }

func (w *world) expect(t *testing.T, what, want string) {
	t.Helper()
	m := w.maintenances[0]
	if got := fmt.Sprintf("%s, %s", m.Spec.Stage, whether(m)); got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// TestANodeComesBackByItself: drained, rebooted, Ready for half a minute, given back.
func TestANodeComesBackByItself(t *testing.T) {
	t.Parallel()
	w, m := handsOver(t, v1alpha1.CompleteWhen{NewBoot: true})
	w.expect(t, "it is handed over", "Drain, False WaitingForBoot")
	w.later(time.Hour)
	w.reports("node-7", "boot-1", "v1.36.4", time.Time{})
	w.later(0)
	w.expect(t, "it goes down", "Drain, False WaitingForBoot")
	w.later(time.Minute)
	w.reports("node-7", "boot-2", "v1.36.4", time.Time{})
	w.later(0)
	w.expect(t, "it boots", "Drain, False NotReady")
	w.now = w.now.Add(10 * time.Second)
	w.reports("node-7", "boot-2", "v1.36.4", w.now)
	w.settle()
	w.expect(t, "it is Ready", "Drain, False NotReady")
	if got := maintenance.Decide(w.snapshot()).RequeueAfter; got != 30*time.Second {
		t.Errorf("it is looked at again after %s, want what is left of 30s", got)
	}
	w.later(29 * time.Second)
	if m.Spec.Stage != drain || w.mark("node-7") != "true by m" || !w.find("node-7").Spec.Unschedulable {
		t.Error("it is given back before it was Ready for 30s")
	}
	w.now = w.now.Add(time.Second)
	decided := w.pass().Maintenances[0]
	if len(decided.CompleteEvents) != 1 || decided.CompleteEvents[0].Message != "Stage Complete was set, as completeWhen asks: node-7 shows what is wanted and was Ready for 30s without a break; it was handed over at 2026-03-01T07:00:00Z." {
		t.Errorf("the events are %v", decided.CompleteEvents)
	}
	w.settle()
	w.expect(t, "it is back", "Complete, True Returned")
	node := w.find("node-7")
	if node.Spec.Unschedulable || w.mark("node-7") != "" || len(node.Annotations) > 0 || len(m.Finalizers) > 0 {
		t.Errorf("it is not given back: %+v, %v", node, m.Finalizers)
	}
	if got := m.Status.Summary; got != "complete, was drained" {
		t.Errorf("the summary is %q", got)
	}
}

// TestABrokenClockCompletesNothing: what is seen meanwhile has no time.
func TestABrokenClockCompletesNothing(t *testing.T) {
	t.Parallel()
	w, m := handsOver(t, v1alpha1.CompleteWhen{NewBoot: true})
	w.clockSkewed = true
	w.now = w.now.Add(time.Minute)
	w.reports("node-7", "boot-2", "v1.36.4", w.now)
	w.settle()
	w.later(24 * time.Hour)
	w.expect(t, "while the clock is skewed", "Drain, False ClockSkewed")
	w.clockSkewed, w.now = false, dawn.Add(2*time.Hour)
	w.settle()
	w.expect(t, "afterwards", "Drain, False NotReady")
	// Another manager, whose clock is ten seconds behind.
	w.now = w.now.Add(-10 * time.Second)
	w.settle()
	w.later(29 * time.Second)
	if m.Spec.Stage != drain {
		t.Error("what lies in the future is believed")
	}
	w.later(time.Second)
	if m.Spec.Stage != complete {
		t.Errorf("it is not complete: %s", whether(m))
	}
}

// TestTheBootsOfAMaintenanceInPlace: as many as it says, whether or not pods stay.
func TestTheBootsOfAMaintenanceInPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "node-7")
	w.reports("node-7", "boot-1", "v1.36.4", dawn)
	m := inPlace(w.maintenance("m", drain, nil, "node-7"), 300)
	m.Spec.InPlace.ExpectedRebootCount = new(int32(2))
	m.Spec.CompleteWhen = &v1alpha1.CompleteWhen{NewBoot: true}
	w.budget("db")
	w.run("node-7", 1, 0, stays, label("app", "db"))
	w.settle()
	w.expect(t, "it has no locks yet", "Drain, False WaitingForDrain")
	if got := w.mark("node-7"); got != "" {
		t.Errorf("it is handed over without locks: %q", got)
	}
	w.take("node-7", "db")
	w.settle()
	for boots, want := range []string{
		"Drain, False WaitingForBoot",
		"Drain, False WaitingForBoot",
		"Complete, True Returned",
	} {
		w.reports("node-7", fmt.Sprintf("boot-%d", boots+1), "v1.36.4", dawn)
		w.later(time.Second)
		w.later(30 * time.Second)
		w.expect(t, fmt.Sprintf("%d boots", boots), want)
	}
	w.expectRecord("it is complete", "node-7", "m 300s: pod-0001(db) lock db complete")
}

// TestAnInvalidCompleteWhen: one that only an API server without our rules lets in.
func TestAnInvalidCompleteWhen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b")
	m := w.maintenance("m", drain, nil, "a", "b")
	m.Spec.CompleteWhen = &v1alpha1.CompleteWhen{NewBoot: true}
	w.settle()
	blocked := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionBlocked)
	if blocked.Reason != v1alpha1.ReasonInvalidSpec || w.find("a").Spec.Unschedulable {
		t.Errorf("it is %s, cordoned %t; want InvalidSpec, and no act", blocked.Reason, w.find("a").Spec.Unschedulable)
	}
}
