package nodemaintenance

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// A manager that dies behind any of its writes, from the cordon to the end, is followed by
// one that completes the maintenance all the same: once the node has booted, and not before.
func TestAReturnOutlivesTheManager(t *testing.T) {
	t.Parallel()
	undisturbed := newReturn(t, -1)
	undisturbed.reboot()
	want := timeless(undisturbed.state())
	if !slices.ContainsFunc(undisturbed.api.Events(), func(told string) bool { return strings.Contains(told, v1alpha1.EventCompletedByItself) }) {
		t.Errorf("nobody was told: %q", undisturbed.api.Events())
	}
	for dies, write := range undisturbed.api.Writes() {
		disturbed := newReturn(t, dies+1)
		disturbed.reboot()
		if diff := cmp.Diff(want, timeless(disturbed.state())); diff != "" {
			t.Errorf("the end after dying behind write %d, %q (-undisturbed +continued):\n%s", dies, write, diff)
		}
	}
}

// timeless leaves out when the node was handed over: a manager that dies takes time.
func timeless(state []string) []string {
	for i := range state {
		state[i] = handedOverAt.ReplaceAllString(state[i], "handed over at some time")
	}
	return state
}

var handedOverAt = regexp.MustCompile("handed over at [0-9TZ:-]+")

// newReturn is a world with a node that is to be drained and to come back, whose manager
// dies after so many writes.
func newReturn(t *testing.T, dies int) *drain {
	t.Helper()
	m := aMaintenance("upgrade", "old")
	m.Spec.NodeSelector.NodeSelectorTerms = []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"one"}}},
	}}
	m.Spec.CompleteWhen = &v1alpha1.CompleteWhen{NewBoot: true}
	w := newWorld(t, aNode("one"), aNode("two"), aNode("three"), m, aPod("a", "one"), aDaemonSetPod("d", "one"))
	d := &drain{world: w, alive: w.manager()}
	d.boots("before")
	w.api.KillAfter(dies)
	return d
}

// boots has node one report a boot, and that it is Ready since.
func (d *drain) boots(id string) {
	d.t.Helper()
	node := d.node("one")
	node.Status.NodeInfo.BootID = id
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(d.clock.Now())}
	node.Status.Conditions = append(slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady }), ready)
	d.must(d.api.Status().Update(d.t.Context(), node))
}

// reboot waits for the hand-over, reboots the node, and waits for the end.
func (d *drain) reboot() {
	d.t.Helper()
	d.settle(true)
	d.clock.Step(time.Hour)
	d.settle(true)
	m, node := d.maintenance("upgrade"), d.node("one")
	if got := fmt.Sprintf("%s %t %s %s", m.Spec.Stage, meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionDrained),
		node.Labels[v1alpha1.HandedOverLabel], node.Annotations[v1alpha1.HandedOverByAnnotation]); got != "Drain true true upgrade" {
		d.t.Fatalf("before the reboot it is %s", got)
	}
	d.boots("after")
	d.settle(true)
	if stage := d.maintenance("upgrade").Spec.Stage; stage != v1alpha1.StageDrain {
		d.t.Errorf("at once after the boot it is %s", stage)
	}
	for range 2 {
		d.clock.Step(30 * time.Second)
		d.settle(true)
	}
	if m = d.maintenance("upgrade"); m.Spec.Stage != v1alpha1.StageComplete || !meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionReturned) {
		d.t.Errorf("after the boot it is %s, %v", m.Spec.Stage, m.Status.Conditions)
	}
	if _, labelled := d.node("one").Labels[v1alpha1.HandedOverLabel]; labelled {
		d.t.Error("it is still handed over")
	}
}

// Nothing is completed while the clock is skewed, and those that wait are looked at when
// it is trusted again.
func TestNothingIsCompletedWhileTheClockIsSkewed(t *testing.T) {
	t.Parallel()
	d := newReturn(t, -1)
	d.alive.skewed = func() bool { return true }
	d.settle(true)
	d.boots("after")
	d.settle(true)
	d.clock.Step(time.Hour)
	d.settle(true)
	returned := meta.FindStatusCondition(d.maintenance("upgrade").Status.Conditions, v1alpha1.ConditionReturned)
	if returned == nil || returned.Reason != v1alpha1.ReasonClockSkewed {
		t.Fatalf("while it is skewed: %+v", returned)
	}
	d.alive.skewed = func() bool { return false }
	for range 2 {
		if due := d.alive.dueBy(d.clock.Now()); len(due) > 0 {
			t.Fatalf("%v is due before anybody was told", due)
		}
		d.alive.held(t.Context())
		d.must(runDue(t.Context(), d.alive, d.clock))
		d.clock.Step(30 * time.Second)
		d.must(runDue(t.Context(), d.alive, d.clock))
	}
	if stage := d.maintenance("upgrade").Spec.Stage; stage != v1alpha1.StageComplete {
		t.Errorf("afterwards it is %s", stage)
	}
}

// What changes of a node that may have come back wakes its maintenance.
func TestNodeChangesThatShowItsReturnWakeMaintenances(t *testing.T) {
	t.Parallel()
	before := aNode("one")
	before.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon)}}
	for name, change := range map[string]func(*corev1.Node){
		"its boot":    func(n *corev1.Node) { n.Status.NodeInfo.BootID = "b" },
		"its kubelet": func(n *corev1.Node) { n.Status.NodeInfo.KubeletVersion = "v1.37.1" },
		"a short break": func(n *corev1.Node) {
			n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon.Add(time.Second))
		},
		"the label": func(n *corev1.Node) { n.Labels[v1alpha1.HandedOverLabel] = "true" },
		"the mark":  func(n *corev1.Node) { n.Annotations = map[string]string{v1alpha1.HandedOverByAnnotation: "m"} },
	} {
		after := before.DeepCopy()
		change(after)
		if !nodeChanged(before, after) {
			t.Errorf("%s changes, and nobody looks", name)
		}
	}
	beat := before.DeepCopy()
	beat.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(noon.Add(time.Minute))
	if nodeChanged(before, beat) {
		t.Error("a heartbeat counts")
	}
}

// A pod that lands in the moment in which the node is back is not asked to leave any more.
func TestCompletedMaintenanceEvacuatesNoPod(t *testing.T) {
	t.Parallel()
	d := newReturn(t, -1)
	d.settle(true)
	d.boots("after")
	d.settle(true)
	d.clock.Step(30 * time.Second)
	d.must(d.api.Create(d.t.Context(), aPod("late", "one")))
	before := len(d.api.Writes())
	d.settle(false)
	if stage := d.maintenance("upgrade").Spec.Stage; stage != v1alpha1.StageComplete {
		t.Errorf("it is %s", stage)
	}
	for _, write := range d.api.Writes()[before:] {
		if strings.Contains(write, "Evacuation") {
			t.Errorf("%s, though the node is given back", write)
		}
	}
}
