package maintenance_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

// allAway is what a node suppresses at the end of every plan.
const allAway = `[{"podPriority":2147483647,"podType":"DaemonSet"},{"podPriority":2147483647,"podType":"Static"}]`

// shows is what a node shows of its suppression.
func shows(node *corev1.Node) string {
	shown := node.Annotations[v1alpha1.DrainTargetsAnnotation]
	if cordon.SuppressesAll(node) {
		shown += " and the taint"
	}
	return shown
}

// A drain of a node with ordinary, DaemonSet and more important DaemonSet pods:
// the node shows no more than what leaves, and is given back with nothing left.
func TestANodeShowsWhatStaysAway(t *testing.T) {
	w := newWorld(t, "one")
	w.runners.DaemonSets = true
	m := w.maintenance("m", drain, []v1alpha1.DrainPlanEntry{entryFor("log", v1alpha1.PodTypeDaemonSet, 500), entry(v1alpha1.PodTypeDaemonSet, 5000)}, "one")
	node := w.find("one")
	web := w.run("one", 1, 0)
	log := w.run("one", 1, 0, ofDaemonSet, labelled("app", "log"))
	low := w.run("one", 1, 1000, ofDaemonSet)
	high := w.run("one", 1, 2000001000, ofDaemonSet)
	expect := func(when, want string, evacuated ...*corev1.Pod) {
		t.Helper()
		d := only(w.pass().Nodes)
		if diff := cmp.Diff(want, shows(node)); diff != "" {
			t.Errorf("%s, the node shows (-want +got):\n%s", when, diff)
		}
		if diff := cmp.Diff(names(evacuated), names(requested(d.Evacuate))); diff != "" {
			t.Errorf("%s, evacuated (-want +got):\n%s", when, diff)
		}
		if again := only(w.pass().Nodes); again.Cordon != nil {
			t.Errorf("%s, the node is written to again: %+v", when, again.Cordon)
		}
	}
	expect("while ordinary pods leave", "", web...)
	w.remove(web[0].UID)
	expect("with the first entry", `[{"podSelector":{"matchLabels":{"app":"log"}},"podPriority":500,"podType":"DaemonSet"}]`, log...)
	w.remove(log[0].UID)
	expect("with the second entry", `[{"podPriority":5000,"podType":"DaemonSet"}]`, low...)
	w.remove(low[0].UID)
	expect("with the most important pods", `[{"podPriority":2000001000,"podType":"DaemonSet"}]`, high...)
	w.remove(high[0].UID)
	expect("when all have left", allAway+" and the taint")

	m.Spec.Stage = v1alpha1.StageComplete
	expect("after Complete", "")
	if node.Spec.Unschedulable {
		t.Error("the node stays cordoned")
	}
}

// What somebody else changes is put right and is no fight over the cordon.
func TestSuppressionIsPutRight(t *testing.T) {
	for name, meddle := range map[string]func(*corev1.Node){
		"the taint is gone":      func(n *corev1.Node) { n.Spec.Taints = nil },
		"the label is gone":      func(n *corev1.Node) { delete(n.Labels, v1alpha1.DaemonSetDrainLabel) },
		"the annotation is gone": func(n *corev1.Node) { delete(n.Annotations, v1alpha1.DrainTargetsAnnotation) },
		"the annotation is another": func(n *corev1.Node) {
			n.Annotations[v1alpha1.DrainTargetsAnnotation] = `[{"podPriority":1,"podType":"DaemonSet"}]`
		},
		"the annotation cannot be read": func(n *corev1.Node) { n.Annotations[v1alpha1.DrainTargetsAnnotation] = "}" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "one")
			w.maintenance("m", drain, nil, "one")
			w.pass()
			node := w.find("one")
			ledger := node.Annotations[v1alpha1.CordonAnnotation]
			meddle(node)
			d := only(w.pass().Nodes)
			if diff := cmp.Diff(allAway+" and the taint", shows(node)); diff != "" {
				t.Errorf("the node shows (-want +got):\n%s", diff)
			}
			if node.Annotations[v1alpha1.CordonAnnotation] != ledger || len(d.Events) > 0 {
				t.Errorf("the ledger is %s, events are %v; want no trace of a fight", node.Annotations[v1alpha1.CordonAnnotation], reasons(d.Events))
			}
		})
	}
}

// A node that nobody holds and that still keeps pods away is given back.
func TestSuppressionWithoutAHolderIsRemoved(t *testing.T) {
	w := newWorld(t, "one")
	node := w.find("one")
	hold(node, &cordon.Change{Unschedulable: true, DrainTargets: allAway, Suppress: true})
	w.pass()
	if shows(node) != "" || !node.Spec.Unschedulable {
		t.Errorf("the node shows %q, cordoned %v; want nothing and the person's cordon", shows(node), node.Spec.Unschedulable)
	}
}

// drainDepth Default leaves the DaemonSets alone.
func TestAShallowDrainSuppressesNothing(t *testing.T) {
	w := newWorld(t, "one")
	w.runners.DaemonSets = true
	m := w.maintenance("m", drain, nil, "one")
	m.Spec.DrainDepth = v1alpha1.PodTypeDefault
	w.run("one", 1, 0, ofDaemonSet)
	w.pass()
	w.pass()
	if shown := shows(w.find("one")); shown != "" || !isTrue(m.Status.Conditions, v1alpha1.ConditionDrained) {
		t.Errorf("the node shows %q, want nothing and Drained", shown)
	}
}

// Two maintenances share a node and differ in how deep they drain. When both are
// done all DaemonSet pods stay away, until the one that asked for it ends.
func TestTheDeepestMaintenanceSuppresses(t *testing.T) {
	w := newWorld(t, "one")
	w.runners.DaemonSets = true
	shallow := w.maintenance("shallow", drain, nil, "one")
	shallow.Spec.DrainDepth = v1alpha1.PodTypeDefault
	deep := w.maintenance("deep", drain, nil, "one")
	pod := w.run("one", 1, 0, ofDaemonSet)[0]
	node := w.find("one")
	for _, step := range []struct {
		when string
		do   func()
		want string
	}{
		{"while a pod leaves", func() {}, `[{"podPriority":1000000000,"podType":"DaemonSet"}]`},
		{"when it has left", func() { w.remove(pod.UID) }, allAway + " and the taint"},
		{"when the deep one is complete", func() { deep.Spec.Stage = v1alpha1.StageComplete }, ""},
	} {
		step.do()
		w.pass()
		w.pass()
		if diff := cmp.Diff(step.want, shows(node)); diff != "" {
			t.Errorf("%s, the node shows (-want +got):\n%s", step.when, diff)
		}
	}
	if !node.Spec.Unschedulable {
		t.Error("the node is given back although one maintenance still drains it")
	}
}

// While a maintenance that cannot be understood any more holds a node, nothing is
// taken back, and another maintenance may add to it.
func TestSuppressionOfAnUnreadMaintenanceStays(t *testing.T) {
	w := newWorld(t, "one")
	w.runners.DaemonSets = true
	broken := w.maintenance("broken", drain, []v1alpha1.DrainPlanEntry{entry(v1alpha1.PodTypeDaemonSet, 500)}, "one")
	pod := w.run("one", 1, 500, ofDaemonSet)[0]
	w.pass()
	broken.Spec.NodeSelector = nil
	w.pass()
	if diff := cmp.Diff(`[{"podPriority":500,"podType":"DaemonSet"}]`, shows(w.find("one"))); diff != "" {
		t.Errorf("the node shows (-want +got):\n%s", diff)
	}
	w.remove(pod.UID)
	w.maintenance("other", drain, nil, "one")
	w.pass()
	if diff := cmp.Diff(allAway+" and the taint", shows(w.find("one"))); diff != "" {
		t.Errorf("with another maintenance, the node shows (-want +got):\n%s", diff)
	}
}

func TestReason(t *testing.T) {
	w := newWorld(t, "one")
	node := w.find("one")
	old := w.maintenance("old", drain, nil, "one")
	young := w.maintenance("young", drain, nil, "one")
	young.CreationTimestamp = metav1.NewTime(old.CreationTimestamp.Add(time.Minute))
	young.Spec.Reason = "OS upgrade"
	expect := func(when, want string) {
		t.Helper()
		if got := maintenance.Reason(node, w.maintenances); got != want {
			t.Errorf("%s, the reason is %q, want %q", when, got, want)
		}
	}
	expect("before the node is held", "")
	w.pass()
	expect("without a reason", "old")
	old.Spec.Reason = "new disks"
	expect("with a reason", "new disks")
	old.Spec.Stage = v1alpha1.StageComplete
	expect("when the older one is complete", "OS upgrade")
	node.Annotations[v1alpha1.CordonAnnotation] = strings.Repeat("}", 3)
	expect("with a broken ledger", "")
}
