package maintenance_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

// announces has a node bear a condition with somebody's reason.
func announces(node *corev1.Node, conditionType corev1.NodeConditionType, status corev1.ConditionStatus, reason string) {
	node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == conditionType })
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
		Type: conditionType, Status: status, Reason: reason, Message: "by their hand", LastTransitionTime: metav1.NewTime(dawn),
	})
}

// pairOn is what a node says of its drain.
func pairOn(node *corev1.Node) string {
	var words []string
	for _, conditionType := range []corev1.NodeConditionType{v1alpha1.NodeDrainInProgress, v1alpha1.NodeDrained} {
		if c := nodeCondition(node, conditionType); c.Type != "" {
			words = append(words, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
		}
	}
	return strings.Join(words, " ")
}

const (
	ourDrain  = "DrainInProgress=True/EbbtideNodeMaintenance Drained=False/EbbtideNodeMaintenance"
	weDrained = "DrainInProgress=False/EbbtideNodeMaintenance Drained=True/EbbtideNodeMaintenance"
)

// passes runs so many of them.
func (w *world) passes(n int) {
	for range n {
		w.pass()
	}
}

// firstAnnounced is the first decision that announces anything of the one node.
func (w *world) firstAnnounced() maintenance.NodeDecision {
	d := only(w.pass().Nodes)
	for n := 0; len(d.Conditions) == 0 && n < 3; n++ {
		d = only(w.pass().Nodes)
	}
	return d
}

// TestANewDrainTakesBothConditionsInOneWrite: whoever reads Drained=True may reboot the node,
// so that it must not be there for a moment while pods leave, whoever has written it.
func TestANewDrainTakesBothConditionsInOneWrite(t *testing.T) {
	for name, before := range map[string]func(w *world){
		"a node of which nobody says anything": func(*world) {},
		"one that kubectl drain has drained": func(w *world) {
			announces(w.find("one"), v1alpha1.NodeDrainInProgress, corev1.ConditionFalse, "KubectlDrainSucceeded")
			announces(w.find("one"), v1alpha1.NodeDrained, corev1.ConditionTrue, "KubectlDrainSucceeded")
		},
		"one that somebody called drained": func(w *world) { announces(w.find("one"), v1alpha1.NodeDrained, corev1.ConditionTrue, "Somebody") },
		"one that we have drained before": func(w *world) {
			w.maintenance("before", drain, nil, "one")
			w.pass()
			w.pass()
			if got := pairOn(w.find("one")); got != weDrained {
				w.t.Fatalf("the node says %s, want %s", got, weDrained)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "one")
			before(w)
			w.find("one").Spec.Unschedulable = true
			w.run("one", 1, 0)
			w.maintenance("m", drain, nil, "one")
			d := w.firstAnnounced()
			written := &corev1.Node{Status: corev1.NodeStatus{Conditions: d.Conditions}}
			if got := pairOn(written); got != ourDrain || !d.Pinned {
				t.Errorf("one write has %s, pinned %t; want %s, pinned", got, d.Pinned, ourDrain)
			}
			w.leave("one", 0)
			w.passes(2)
			if got := pairOn(w.find("one")); got != weDrained {
				t.Errorf("in the end the node says %s, want %s", got, weDrained)
			}
		})
	}
}

// TestForeignDrainIsReportedAndNotReverted: it is there before ours, or comes in the middle,
// or is made up by who may write the status of a node. Ours goes on, theirs is not overwritten.
func TestForeignDrainIsReportedAndNotReverted(t *testing.T) {
	t.Run("it is there before", func(t *testing.T) { notFought(t, true) })
	t.Run("it comes in the middle", func(t *testing.T) { notFought(t, false) })
}

func notFought(t *testing.T, early bool) {
	const theirs = "DrainInProgress=True/KubectlDrainStarted"
	w := newWorld(t, "one")
	node := w.find("one")
	if early {
		announces(node, v1alpha1.NodeDrainInProgress, corev1.ConditionTrue, "KubectlDrainStarted")
	}
	w.run("one", 1, 0)
	m := w.maintenance("m", drain, nil, "one")
	w.passes(2)
	announces(node, v1alpha1.NodeDrainInProgress, corev1.ConditionTrue, "KubectlDrainStarted")
	w.passes(2)
	if !foreignOn(m) {
		t.Error("the status does not report it")
	}
	if isTrue(m.Status.Conditions, v1alpha1.ConditionBlocked) || len(w.evacuations) != 1 {
		t.Errorf("blocked is %v, %d pods are asked to leave; want that ours goes on", m.Status.Conditions, len(w.evacuations))
	}
	w.leave("one", 0)
	w.passes(2)
	if got := pairOn(node); !strings.HasPrefix(got, theirs) || strings.Contains(got, "Drained=True") {
		t.Errorf("the node says %s, want %s, and not that it is drained", got, theirs)
	}
	if !isTrue(m.Status.Conditions, v1alpha1.ConditionDrained) {
		t.Errorf("the maintenance is not drained: %+v", m.Status.Conditions)
	}
	m.Spec.Stage = complete
	w.passes(3)
	if got := pairOn(node); got != theirs || node.Spec.Unschedulable || len(m.Finalizers) > 0 {
		t.Errorf("given back, the node says %s, cordoned %t, finalizers %v; want %s, false, none", got, node.Spec.Unschedulable, m.Finalizers, theirs)
	}
}

// TestForeignDrainEnds: then ours is announced, with both conditions.
func TestForeignDrainEnds(t *testing.T) {
	w := newWorld(t, "one")
	node := w.find("one")
	announces(node, v1alpha1.NodeDrainInProgress, corev1.ConditionTrue, "Theirs")
	w.run("one", 1, 0)
	m := w.maintenance("m", drain, nil, "one")
	w.pass()
	w.pass()
	announces(node, v1alpha1.NodeDrainInProgress, corev1.ConditionFalse, "Theirs")
	announces(node, v1alpha1.NodeDrained, corev1.ConditionTrue, "Theirs")
	w.pass()
	if got := pairOn(node); got != ourDrain || foreignOn(m) {
		t.Errorf("the node says %s, the status reports another drain: %t; want %s", got, foreignOn(m), ourDrain)
	}
}

func foreignOn(m *v1alpha1.NodeMaintenance) bool {
	return slices.ContainsFunc(m.Status.NodeStatuses[0].Blockers, func(b v1alpha1.Blocker) bool { return b.Type == v1alpha1.BlockerForeignDrain })
}

func TestNodeThatIsBeingRemovedStaysCordoned(t *testing.T) {
	const autoscaler = "ToBeDeletedByClusterAutoscaler"
	for name, taint := range map[string]corev1.Taint{
		"the cluster-autoscaler": {Key: autoscaler, Value: "1772344800"}, "Karpenter": {Key: "karpenter.sh/disrupted"},
		"a time that cannot be": {Key: autoscaler, Value: "99999999999999"}, "no time at all": {Key: autoscaler, Value: "yesterday"},
	} {
		taint.Effect = corev1.TaintEffectNoSchedule
		t.Run(name+" gives up", func(t *testing.T) {
			w, m := removed(t, taint)
			w.find("one").Spec.Taints = nil
			w.passes(4)
			if w.find("one").Spec.Unschedulable || len(m.Finalizers) > 0 {
				t.Errorf("when that is over: cordoned %t, finalizers %v, want neither", w.find("one").Spec.Unschedulable, m.Finalizers)
			}
		})
		t.Run(name+" removes it", func(t *testing.T) {
			w, m := removed(t, taint)
			w.nodes = nil
			delete(w.pods, "one")
			w.passes(4)
			if len(m.Finalizers) > 0 {
				t.Errorf("when the node is gone: finalizers %v, want none", m.Finalizers)
			}
		})
	}
}

// removed is a maintenance in Complete of a node that another controller removes.
func removed(t *testing.T, taint corev1.Taint) (*world, *v1alpha1.NodeMaintenance) {
	w := newWorld(t, "one")
	m := w.maintenance("m", drain, nil, "one")
	w.pass()
	node := w.find("one")
	node.Spec.Taints = append(node.Spec.Taints, taint)
	w.passes(2)
	if !foreignOn(m) {
		t.Error("in Drain the status does not report it")
	}
	m.Spec.Stage = complete
	w.passes(4)
	if !foreignOn(m) || !node.Spec.Unschedulable || len(m.Finalizers) != 1 || cordon.SuppressesAll(node) {
		t.Errorf("reported %t, cordoned %t, finalizers %v, DaemonSets kept away %t", foreignOn(m), node.Spec.Unschedulable, m.Finalizers, cordon.SuppressesAll(node))
	}
	return w, m
}

// TestNodeThatStaysCordonedWaitsForNoMaintenance: there is nothing to give back but the ledger.
func TestNodeThatStaysCordonedWaitsForNoMaintenance(t *testing.T) {
	w := newWorld(t, "one")
	node := w.find("one")
	node.Spec.Unschedulable = true
	m := w.maintenance("m", drain, nil, "one")
	w.pass()
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule})
	m.Spec.Stage = complete
	for range 3 {
		w.pass()
	}
	if !node.Spec.Unschedulable || len(node.Annotations) > 0 || len(m.Finalizers) > 0 {
		t.Errorf("cordoned %t, annotations %v, finalizers %v; want true, none, none", node.Spec.Unschedulable, node.Annotations, m.Finalizers)
	}
}

// TestIdleToCompleteDoesNotFightEither: it asks for a node to be made schedulable.
func TestIdleToCompleteDoesNotFightEither(t *testing.T) {
	w := newWorld(t, "one")
	node := w.find("one")
	node.Spec.Unschedulable = true
	node.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}
	m := w.maintenance("m", complete, nil, "one")
	for range 3 {
		w.pass()
	}
	if !node.Spec.Unschedulable || len(m.Finalizers) != 1 {
		t.Errorf("cordoned %t, finalizers %v; want true, ours", node.Spec.Unschedulable, m.Finalizers)
	}
	node.Spec.Taints = nil
	for range 3 {
		w.pass()
	}
	if node.Spec.Unschedulable || len(m.Finalizers) > 0 {
		t.Errorf("cordoned %t, finalizers %v; want neither", node.Spec.Unschedulable, m.Finalizers)
	}
}

// TestManyForeignDrainsAreOneBlocker: it is bounded whatever they write.
func TestManyForeignDrainsAreOneBlocker(t *testing.T) {
	w := newWorld(t, "one")
	node := w.find("one")
	announces(node, v1alpha1.NodeDrainInProgress, corev1.ConditionTrue, strings.Repeat("r", 1<<16))
	node.Status.Conditions[0].Message = strings.Repeat("m\x1b[2J", 1<<15)
	node.Spec.Taints = []corev1.Taint{
		{Key: "ToBeDeletedByClusterAutoscaler", Value: "1772344800", Effect: corev1.TaintEffectNoSchedule},
		{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule},
	}
	m := w.maintenance("m", v1alpha1.StageCordon, nil, "one")
	w.pass()
	w.pass()
	got := m.Status.NodeStatuses[0].Blockers
	if len(got) != 1 || len(got[0].Message)+len(got[0].Suggestion) > 2000 || strings.Contains(got[0].Message, "\x1b") {
		t.Fatalf("the blockers are %+v", got)
	}
	for _, who := range []string{"The cluster-autoscaler drains", "Karpenter drains", "Another tool drains"} {
		if !strings.Contains(got[0].Message, who) {
			t.Errorf("%q does not say %q", got[0].Message, who)
		}
	}
	if diff := cmp.Diff(metav1.NewTime(dawn).UTC(), got[0].SinceTime.UTC()); diff != "" {
		t.Errorf("since (-want +got):\n%s", diff)
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionBlocked); c.Status == metav1.ConditionTrue {
		t.Errorf("blocked: %s", c.Message)
	}
	if d := w.pass(); d.RequeueAfter > time.Hour {
		t.Errorf("it is to be decided again in %s", d.RequeueAfter)
	}
}
