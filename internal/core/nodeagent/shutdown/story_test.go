package shutdown

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/test/golden"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

type world struct {
	t *testing.T
	Snapshot
	// stored is the file of the entry.
	stored []byte
	// told is what was seen: a line for each decision that is not as the one before.
	told []string
	last string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{t: t, Snapshot: Snapshot{
		Now: noon, BootID: "boot-1", Wish: v1alpha1.ShutdownModeDrain, Logind: Logind{Delay: time.Minute}, Fresh: true,
		Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}},
		Pods: []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-0"}}},
	}}
}

// step decides, and has done what was decided.
func (w *world) step() {
	w.t.Helper()
	entry, err := ParseEntry(w.stored)
	if err != nil {
		w.t.Fatal(err)
	}
	w.Entry = entry
	d := Decide(w.Snapshot)
	w.stored, w.Held, w.Fresh = d.Entry.Text(), d.Inhibit, w.Fresh && w.Logind.Fault != ""
	if d.NodeCondition != nil {
		setCondition(w.Node, *d.NodeCondition)
	}
	line := fmt.Sprintf("%s %s", d.Status.Mode, d.Status.Phase)
	if d.Status.Type != "" {
		line += " " + d.Status.Type
	}
	if d.Inhibit {
		line += ", held"
	}
	if shown := podclass.NodeCondition(w.Node, v1alpha1.NodeGracefulShutdown); shown != nil {
		line += fmt.Sprintf(", %s/%s", shown.Status, shown.Reason)
	}
	for _, e := range d.Events {
		golden.Message(w.t, e.Reason, e.Message)
		line += "\n" + e.Reason
	}
	if line != w.last {
		w.told = append(w.told, fmt.Sprintf("%4.0fs %s", w.Now.Sub(noon).Seconds(), line))
	}
	w.last, _, _ = strings.Cut(line, "\n")
	if d.After > 0 && d.After > time.Minute {
		w.t.Errorf("it looks again after %s, want no more than the delay", d.After)
	}
}

func setCondition(node *corev1.Node, condition corev1.NodeCondition) {
	if was := podclass.NodeCondition(node, condition.Type); was != nil {
		*was = condition
		return
	}
	node.Status.Conditions = append(node.Status.Conditions, condition)
}

// What happens in the stories.

func (w *world) after(d time.Duration) { w.Now = w.Now.Add(d); w.step() }
func (w *world) prepare(kind string)   { w.Logind.Preparing, w.Logind.Type = true, kind; w.step() }
func (w *world) cancel()               { w.Logind.Preparing, w.Logind.Type = false, ""; w.step() }
func (w *world) restart()              { w.Fresh, w.Held = true, false; w.step() }
func (w *world) boot() {
	w.BootID, w.Logind.Preparing, w.Logind.Type, w.Schedule = "boot-2", false, "", nil
	w.restart()
}
func (w *world) schedule(at time.Time) { w.Schedule = &Schedule{At: at, Type: "reboot"}; w.step() }
func (w *world) says(condition corev1.NodeConditionType) {
	for _, one := range []corev1.NodeConditionType{v1alpha1.NodeDrainInProgress, v1alpha1.NodeDrained} {
		status := corev1.ConditionFalse
		if one == condition {
			status = corev1.ConditionTrue
		}
		setCondition(w.Node, corev1.NodeCondition{Type: one, Status: status, Reason: v1alpha1.ReasonNodeMaintenance})
	}
	w.step()
}

const detected = "\nNodeShutdownDetected"

const idle = "   0s Drain None, held"

type story struct {
	happens func(*world)
	want    []string
}

var stories = map[string]story{
	"a node is drained, reboots and is back": {
		func(w *world) {
			w.after(time.Second)
			w.prepare("reboot")
			w.after(time.Second)
			w.says(v1alpha1.NodeDrainInProgress)
			w.after(40 * time.Second)
			w.says(v1alpha1.NodeDrained)
			w.after(time.Second)
			w.boot()
		},
		[]string{
			idle,
			"   1s Drain Preparing reboot, held, True/NodeShutdown" + detected,
			"  42s Drain Released reboot, True/NodeShutdown\nNodeShutdownReleased",
			"  43s Drain None, held, False/NodeReady",
		},
	},
	"pods are left at the end of the delay": {
		func(w *world) {
			w.prepare("reboot")
			w.says(v1alpha1.NodeDrainInProgress)
			w.after(58 * time.Second)
			w.after(time.Second)
			w.after(time.Minute)
		},
		[]string{
			idle,
			"   0s Drain Preparing reboot, held, True/NodeShutdown" + detected,
			"  59s Drain Released reboot, True/NodeShutdown\nNodeShutdownReleased",
		},
	},
	"no manager shows itself": {
		func(w *world) {
			w.prepare("reboot")
			w.after(9 * time.Second)
			w.after(time.Second)
		},
		[]string{
			idle,
			"   0s Drain Preparing reboot, held, True/NodeShutdown" + detected,
			"  10s Drain Released reboot, True/NodeShutdown\nNodeShutdownReleased",
		},
	},
	"somebody else says that the node is drained": {
		func(w *world) {
			w.prepare("reboot")
			w.Node.Status.Conditions = append(w.Node.Status.Conditions, corev1.NodeCondition{
				Type: v1alpha1.NodeDrained, Status: corev1.ConditionTrue, Reason: "Mine",
			})
			w.after(5 * time.Second)
		},
		[]string{idle, "   0s Drain Preparing reboot, held, True/NodeShutdown" + detected},
	},
	"the API server is gone, and the node unknown": {
		func(w *world) {
			w.Node, w.Pods = nil, nil
			w.prepare("reboot")
			w.after(10 * time.Second)
		},
		[]string{idle, "   0s Drain Preparing reboot, held", "  10s Drain Released reboot"},
	},
	"it is cancelled, and comes again": {
		func(w *world) {
			w.prepare("reboot")
			w.after(3 * time.Second)
			w.cancel()
			w.after(time.Minute)
			w.prepare("poweroff")
		},
		[]string{
			idle,
			"   0s Drain Preparing reboot, held, True/NodeShutdown" + detected,
			"   3s Drain Cancelled reboot, held, False/NodeShutdownCancelled\nNodeShutdownCancelled",
			"  63s Drain Preparing power-off, held, True/NodeShutdown\nNodeShutdownDetected",
		},
	},
	"it is cancelled after it was let go": {
		func(w *world) {
			w.prepare("reboot")
			w.says(v1alpha1.NodeDrained)
			w.after(time.Second)
			w.cancel()
		},
		[]string{
			idle,
			"   0s Drain Preparing reboot, held, True/NodeShutdown" + detected,
			"   0s Drain Released reboot, True/NodeShutdown\nNodeShutdownReleased",
			"   1s Drain Cancelled reboot, held, False/NodeShutdownCancelled\nNodeShutdownCancelled",
		},
	},
	"somebody else drains, too, so that only the cordon shows the maintenance": {
		func(w *world) {
			setCondition(w.Node, corev1.NodeCondition{Type: v1alpha1.NodeDrainInProgress, Status: corev1.ConditionTrue, Reason: "KubectlDrainStarted"})
			w.prepare("reboot")
			w.after(5 * time.Second)
			w.Node.Annotations = map[string]string{v1alpha1.CordonAnnotation: `{"holders":["shutdown"]}`}
			w.after(40 * time.Second)
			w.Pods = nil
			w.after(time.Second)
		},
		[]string{
			idle,
			"   0s Drain Preparing reboot, held, True/NodeShutdown" + detected,
			"  46s Drain Released reboot, True/NodeShutdown\nNodeShutdownReleased",
		},
	},
	"the agent is started again in the middle, and keeps to the deadline": {
		func(w *world) {
			w.prepare("reboot")
			w.says(v1alpha1.NodeDrainInProgress)
			w.after(30 * time.Second)
			w.restart()
			w.after(29 * time.Second)
		},
		[]string{
			idle,
			"   0s Drain Preparing reboot, held, True/NodeShutdown" + detected,
			"  59s Drain Released reboot, True/NodeShutdown\nNodeShutdownReleased",
		},
	},
	"logind takes no inhibitor any more, as the shutdown goes on": {
		func(w *world) {
			w.Refusal, w.Held = "take an inhibitor: already running", false
			w.stored = nil
			w.Logind.Preparing, w.Logind.Type = true, "reboot"
			w.step()
		},
		[]string{idle, "   0s Drain Released reboot, True/NodeShutdown" + detected +
			"\nNodeShutdownReleased"},
	},
	"the agent was away while it was cancelled, or while userspace was rebooted": {
		func(w *world) {
			w.prepare("soft-reboot")
			w.says(v1alpha1.NodeDrained)
			w.Logind.Preparing = false
			w.restart()
		},
		[]string{
			idle,
			"   0s Drain Preparing soft-reboot, held, True/NodeShutdown\nNodeShutdownDetected",
			"   0s Drain Released soft-reboot, True/NodeShutdown\nNodeShutdownReleased",
			"   0s Drain None, held, False/NodeReady",
		},
	},
	"the bus is lost in the middle": {
		func(w *world) {
			w.prepare("reboot")
			w.says(v1alpha1.NodeDrainInProgress)
			w.Logind = Logind{Fault: "the connection to D-Bus is lost"}
			w.after(20 * time.Second)
			w.says(v1alpha1.NodeDrained)
		},
		[]string{
			idle,
			"   0s Drain Preparing reboot, held, True/NodeShutdown" + detected,
			"  20s Drain Released reboot, True/NodeShutdown\nNodeShutdownReleased",
		},
	},
	"the kubelet stops all pods itself": {
		func(w *world) {
			w.Logind.Kubelet = true
			w.step()
			w.prepare("reboot")
			w.Logind.Kubelet = false // It has let go.
			w.after(30 * time.Second)
			w.boot()
		},
		[]string{
			idle, "   0s Report None",
			"   0s Report Preparing reboot, True/NodeShutdown\nNodeShutdownDetected",
			"  30s Drain None, held, False/NodeReady",
		},
	},
	"it has a time, is put off, and begins": {
		func(w *world) {
			w.schedule(noon.Add(15 * time.Minute))
			w.restart()
			w.schedule(noon.Add(time.Hour))
			w.after(time.Hour)
			w.Schedule = nil
			w.prepare("")
		},
		[]string{
			idle,
			"   0s Drain Scheduled reboot, held\nNodeShutdownDetected",
			"   0s Drain Scheduled reboot, held\nNodeShutdownDetected",
			"3600s Drain Preparing reboot, held, True/NodeShutdown" + detected,
		},
	},
	"it has a time, and is cancelled": {
		func(w *world) {
			w.schedule(noon.Add(15 * time.Minute))
			w.Schedule = nil
			w.step()
		},
		[]string{
			idle,
			"   0s Drain Scheduled reboot, held\nNodeShutdownDetected",
			"   0s Drain Cancelled reboot, held\nNodeShutdownCancelled",
		},
	},
	"shutdowns are left alone": {
		func(w *world) {
			w.Wish = v1alpha1.ShutdownModeOff
			w.step()
			w.schedule(noon.Add(time.Minute))
			w.prepare("reboot")
		},
		[]string{idle, "   0s Off None"},
	},
	"the condition is somebody else's": {
		func(w *world) {
			setCondition(w.Node, corev1.NodeCondition{Type: v1alpha1.NodeGracefulShutdown, Status: corev1.ConditionFalse, Reason: "KubeletSays"})
			w.prepare("reboot")
		},
		[]string{idle, "   0s Drain Preparing reboot, held, False/KubeletSays" + detected},
	},
	"it is switched off before the time that was set": {
		func(w *world) {
			w.schedule(noon.Add(15 * time.Minute))
			w.boot()
		},
		[]string{
			idle,
			"   0s Drain Scheduled reboot, held\nNodeShutdownDetected",
			"   0s Drain None, held",
		},
	},
	"it is cancelled, and boots another day": {
		func(w *world) {
			w.prepare("reboot")
			w.cancel()
			w.boot()
		},
		[]string{
			idle,
			"   0s Drain Preparing reboot, held, True/NodeShutdown" + detected,
			"   0s Drain Cancelled reboot, held, False/NodeShutdownCancelled\nNodeShutdownCancelled",
			"   0s Drain None, held, False/NodeShutdownCancelled",
		},
	},
	"what was written down is lost, and nobody knows more": {
		func(w *world) {
			w.prepare("reboot")
			w.stored, w.Logind = nil, Logind{Fault: "the connection to D-Bus is lost"}
			w.restart()
		},
		[]string{idle, "   0s Drain Preparing reboot, held, True/NodeShutdown" + detected, "   0s Off None, True/NodeShutdown"},
	},
	"another inhibitor is refused while the first one holds": {
		func(w *world) {
			w.prepare("reboot")
			w.Refusal = "take an inhibitor: already running"
			w.after(5 * time.Second)
		},
		[]string{idle, "   0s Drain Preparing reboot, held, True/NodeShutdown" + detected},
	},
}

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

func TestShutdownIsHeldUntilPodsHaveLeft(t *testing.T) {
	t.Parallel()
	for name, test := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.step()
			test.happens(w)
			if diff := cmp.Diff(test.want, w.told); diff != "" {
				t.Errorf("it happens (-want +got):\n%s", diff)
			}
		})
	}
}
