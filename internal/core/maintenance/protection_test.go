package maintenance_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

const (
	doNotDisrupt = "karpenter.sh/do-not-disrupt"
	noScaleDown  = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
)

// bridged is a world in which both autoscalers are bridged, with a node that bears this
// annotation of Karpenter; "-" is none.
func bridged(t *testing.T, value string) (*world, *corev1.Node) {
	w := newWorld(t, "one")
	w.protect = []string{doNotDisrupt, noScaleDown}
	node := w.find("one")
	annotate(node, value)
	return w, node
}

// annotate has somebody write Karpenter's annotation, or remove it.
func annotate(node *corev1.Node, value string) {
	delete(node.Annotations, doNotDisrupt)
	if value != "-" {
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, doNotDisrupt, value)
	}
}

// shown is what autoscalers read of a node.
func shown(node *corev1.Node) string {
	var words []string
	for _, key := range []string{doNotDisrupt, noScaleDown} {
		value, is := node.Annotations[key]
		if !is {
			value = "-"
		}
		words = append(words, value)
	}
	return strings.Join(words, " ")
}

// TestAutoscalersLeaveNodesUnderMaintenanceAlone from Cordon on; what was there before comes back.
func TestAutoscalersLeaveNodesUnderMaintenanceAlone(t *testing.T) {
	long := strings.Repeat("x", 65)
	for before, want := range map[string][2]string{
		"-":     {"true true", "- -"},
		"":      {"true true", " -"},
		"false": {"true true", "false -"},
		"true":  {"true true", "true -"},
		long:    {long + " true", long + " -"},
	} {
		w, node := bridged(t, before)
		m := w.maintenance("m", idle, nil, "one")
		w.passes(2)
		if got := shown(node); got != before+" -" {
			t.Errorf("%q: in Idle the node shows %q", before, got)
		}
		m.Spec.Stage = v1alpha1.StageCordon
		w.passes(2)
		if got := shown(node); got != want[0] {
			t.Errorf("%q: in Cordon the node shows %q, want %q", before, got, want[0])
		}
		if d := w.pass(); len(d.Nodes) > 0 {
			t.Errorf("%q: it is written again and again: %+v", before, d.Nodes[0].Cordon)
		}
		m.Spec.Stage = complete
		w.passes(3)
		if got := shown(node); got != want[1] || len(m.Finalizers) > 0 {
			t.Errorf("%q: in the end the node shows %q, finalizers %v; want %q, none", before, got, m.Finalizers, want[1])
		}
	}
}

// TestHistoryIsWrittenWithItsChange: a manager that is killed after any write finds both or
// neither.
func TestHistoryIsWrittenWithItsChange(t *testing.T) {
	w, _ := bridged(t, "false")
	w.maintenance("m", v1alpha1.StageCordon, nil, "one")
	got := only(maintenance.Decide(w.snapshot()).Nodes).Cordon
	yes := "true"
	want := &cordon.Change{
		Unschedulable: true, Protection: map[string]*string{doNotDisrupt: &yes, noScaleDown: &yes},
		Ledger: `{"wasUnschedulable":false,"holders":["m"],"protected":{"cluster-autoscaler.kubernetes.io/scale-down-disabled":{},"karpenter.sh/do-not-disrupt":{"was":"false"}}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("one write has (-want +got):\n%s", diff)
	}
}

// TestWithoutItsBridgeNothingIsWritten, and what was written with it is taken back.
func TestWithoutItsBridgeNothingIsWritten(t *testing.T) {
	w, node := bridged(t, "false")
	w.protect = []string{noScaleDown}
	w.maintenance("m", v1alpha1.StageCordon, nil, "one")
	w.passes(2)
	if got := shown(node); got != "false true" {
		t.Errorf("the node shows %q, want nothing of Karpenter", got)
	}
	w.protect = nil
	w.passes(2)
	if got := shown(node); got != "false -" {
		t.Errorf("with the bridges off the node shows %q", got)
	}
	if ledger := node.Annotations[v1alpha1.CordonAnnotation]; strings.Contains(ledger, "protected") {
		t.Errorf("the ledger is %s", ledger)
	}
}

// TestNodesThatAreToGo may be removed, unless another maintenance of theirs wants them back.
func TestNodesThatAreToGo(t *testing.T) {
	w, node := bridged(t, "-")
	m := w.maintenance("decommission", drain, nil, "one")
	m.Annotations = map[string]string{"ebbtide.dev/allow-scale-down": "true"}
	w.passes(3)
	if got := shown(node); got != "- -" {
		t.Errorf("the node shows %q, want that it may go", got)
	}
	other := w.maintenance("kernel", v1alpha1.StageCordon, nil, "one")
	w.passes(2)
	if got := shown(node); got != "true true" {
		t.Errorf("with another maintenance the node shows %q, want that it stays", got)
	}
	other.Spec.Stage = complete
	w.passes(3)
	if got := shown(node); got != "- -" || !node.Spec.Unschedulable {
		t.Errorf("when that is over the node shows %q, cordoned %t; want that it may go, and is held", got, node.Spec.Unschedulable)
	}
	m.Annotations["ebbtide.dev/allow-scale-down"] = "yes"
	w.passes(2)
	if got := shown(node); got != "true true" {
		t.Errorf("with another value the node shows %q, want that it stays", got)
	}
	broken := w.maintenance("broken", v1alpha1.StageCordon, nil, "one")
	m.Annotations["ebbtide.dev/allow-scale-down"] = "true"
	w.passes(2)
	broken.Spec.NodeSelector = nil
	w.passes(2)
	if got := shown(node); got != "true true" {
		t.Errorf("with one that is not understood the node shows %q, want that it stays", got)
	}
}

// TestAPersonsActIsAnAnswer: what somebody says meanwhile holds, also after the maintenance.
func TestAPersonsActIsAnAnswer(t *testing.T) {
	for name, acts := range map[string][]string{
		"they remove it": {"-"}, "they change it": {"false"}, "they remove it, and want it after all": {"-", "true"},
	} {
		t.Run(name, func(t *testing.T) {
			w, node := bridged(t, "false")
			m := w.maintenance("m", v1alpha1.StageCordon, nil, "one")
			w.passes(2)
			for _, value := range acts {
				annotate(node, value)
				w.passes(3)
			}
			last := acts[len(acts)-1]
			if got := shown(node); got != last+" true" {
				t.Errorf("the node shows %q, want what they said: %q", got, last)
			}
			w.maintenance("later", drain, nil, "one")
			w.passes(2)
			m.Spec.Stage = complete
			w.passes(3)
			w.maintenances[1].Spec.Stage = complete
			w.passes(3)
			if got := shown(node); got != last+" -" {
				t.Errorf("after the maintenance the node shows %q, want %q and nothing of ours", got, last)
			}
		})
	}
}

func TestRespondersLearnOfTheirAnswer(t *testing.T) {
	w, node := bridged(t, "-")
	w.maintenance("m", v1alpha1.StageCordon, nil, "one")
	w.passes(2)
	annotate(node, "-")
	got := only(w.pass().Nodes).Events
	if diff := cmp.Diff([]string{"Node/one " + v1alpha1.EventScaleDownAllowed}, reasons(got)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if again := w.pass(); len(again.Nodes) > 0 {
		t.Errorf("told again: %+v", again.Nodes[0].Events)
	}
}

// TestForgedLedgerIsIgnored has nothing written but what an autoscaler's switch may be.
func TestForgedLedgerIsIgnored(t *testing.T) {
	for name, protected := range map[string]string{
		"another key":      `{"example.com/admin":{"was":"true"}}`,
		"a long value":     fmt.Sprintf(`{"karpenter.sh/do-not-disrupt":{"was":%q}}`, strings.Repeat("x", 1<<16)),
		"no object at all": `{"karpenter.sh/do-not-disrupt":null}`,
	} {
		w, node := bridged(t, "true")
		node.Spec.Unschedulable = true
		node.Annotations[v1alpha1.CordonAnnotation] = `{"wasUnschedulable":false,"holders":[],"protected":` + protected + `}`
		w.passes(2)
		if len(node.Annotations) > 1 || len(node.Annotations[doNotDisrupt]) > 64 || node.Spec.Unschedulable {
			t.Errorf("%s: the node is %+v, cordoned %t", name, node.Annotations, node.Spec.Unschedulable)
		}
	}
}

// TestAnAnswerOutlivesItsBridge: who switches that off and on again, or lets the node go for a
// while, has not asked anew.
func TestAnAnswerOutlivesItsBridge(t *testing.T) {
	w, node := bridged(t, "-")
	w.maintenance("m", v1alpha1.StageCordon, nil, "one")
	w.passes(2)
	annotate(node, "-")
	w.passes(2)
	bridges := w.protect
	w.protect = nil
	w.passes(2)
	w.protect = bridges
	w.passes(2)
	if got := shown(node); got != "- true" {
		t.Errorf("the node shows %q, want that what they removed is left alone", got)
	}
}
