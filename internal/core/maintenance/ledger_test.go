package maintenance_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

func TestCordon(t *testing.T) {
	const (
		held    = `{"wasUnschedulable":false,"holders":["m"]}`
		persons = `{"wasUnschedulable":true,"holders":["m"]}`
		both    = `{"wasUnschedulable":false,"holders":["m","other"]}`
		unknown = `{"wasUnschedulable":true,"unknown":true,"holders":["m"]}`
		uncords = `{"wasUnschedulable":false,"holders":["m"],"foreignUncordons":["2026-03-01T07:00:00Z"]}`
		farOff  = `{"wasUnschedulable":false,"holders":["m"],"foreignUncordons":["2026-03-01T06:49:00Z","9999-12-31T00:00:00Z"]}`
	)
	list := func(stages ...v1alpha1.NodeMaintenanceStage) []v1alpha1.NodeMaintenanceStage { return stages }
	change := func(unschedulable bool, ledger string) *cordon.Change {
		return &cordon.Change{Unschedulable: unschedulable, Ledger: ledger}
	}
	for name, test := range map[string]struct {
		stage         v1alpha1.NodeMaintenanceStage
		recorded      []v1alpha1.NodeMaintenanceStage
		unschedulable bool
		ledger        string
		want          *cordon.Change
		events        []string
	}{
		"idle touches nothing":                 {stage: idle, unschedulable: true},
		"first touch":                          {stage: v1alpha1.StageCordon, want: change(true, held), events: []string{"Node/n NodeCordoned"}},
		"first touch in Drain":                 {stage: drain, want: drained(held), events: []string{"Node/n NodeCordoned"}},
		"a person's cordon is remembered":      {stage: v1alpha1.StageCordon, unschedulable: true, want: change(true, persons)},
		"held already":                         {stage: v1alpha1.StageCordon, unschedulable: true, ledger: held},
		"another holder joins":                 {stage: v1alpha1.StageCordon, unschedulable: true, ledger: strings.Replace(held, `"m"`, `"gone"`, 1), want: change(true, held)},
		"a holder has gone":                    {stage: v1alpha1.StageCordon, unschedulable: true, ledger: both, want: change(true, held)},
		"somebody uncordons":                   {stage: v1alpha1.StageCordon, ledger: held, want: change(true, uncords), events: []string{"Node/n ForeignUncordon", "NodeMaintenance/m ForeignUncordon"}},
		"times that cannot be are forgotten":   {stage: v1alpha1.StageCordon, ledger: farOff, want: change(true, uncords), events: []string{"Node/n ForeignUncordon", "NodeMaintenance/m ForeignUncordon"}},
		"the last holder leaves":               {stage: complete, recorded: list(v1alpha1.StageCordon), unschedulable: true, ledger: held, want: change(false, ""), events: []string{"Node/n NodeRestored"}},
		"a person's cordon comes back":         {stage: complete, recorded: list(v1alpha1.StageCordon), unschedulable: true, ledger: persons, want: change(true, ""), events: []string{"Node/n NodeRestored"}},
		"restored already":                     {stage: complete, recorded: list(v1alpha1.StageCordon, complete), unschedulable: true},
		"Idle to Complete asks for it":         {stage: complete, unschedulable: true, want: change(false, ""), events: []string{"Node/n NodeUncordoned"}},
		"Idle to Complete on a free node":      {stage: complete},
		"a broken ledger is held and repaired": {stage: drain, unschedulable: true, ledger: `{"holders":["m"]}`, want: drained(unknown), events: []string{"Node/n LedgerUnreadable"}},
		"no JSON at all":                       {stage: drain, unschedulable: true, ledger: `}`, want: drained(unknown), events: []string{"Node/n LedgerUnreadable"}},
		"an unknown past stays cordoned":       {stage: complete, recorded: list(drain), unschedulable: true, ledger: unknown, want: change(true, ""), events: []string{"Node/n NodeLeftCordoned"}},
		"a broken ledger stays cordoned":       {stage: complete, recorded: list(drain), unschedulable: true, ledger: `null`, want: change(true, ""), events: []string{"Node/n NodeLeftCordoned"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			node := w.node("n")
			node.Spec.Unschedulable = test.unschedulable
			if test.ledger != "" {
				node.Annotations = map[string]string{v1alpha1.CordonAnnotation: test.ledger}
			}
			m := w.maintenance("m", test.stage, nil, "n")
			m.Finalizers = []string{v1alpha1.MaintenanceCompletionFinalizer}
			m.Status.StageStatuses = started(test.recorded...)
			got := only(maintenance.Decide(w.snapshot()).Nodes)
			if diff := cmp.Diff(test.want, got.Cordon); diff != "" {
				t.Errorf("cordon (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.events, reasons(got.Events)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// drained is the hold on an empty node in Drain, which has come to the end of its plan.
func drained(ledger string) *cordon.Change {
	return &cordon.Change{Unschedulable: true, Ledger: ledger, DrainTargets: allAway, Suppress: true}
}

// only is the decision about the one node that there is, empty if there is none.
func only(decisions []maintenance.NodeDecision) maintenance.NodeDecision {
	return append(decisions, maintenance.NodeDecision{})[0]
}

func TestIdleToCompleteRespectsAnotherHolder(t *testing.T) {
	w := newWorld(t, "one")
	w.maintenance("keeps", v1alpha1.StageCordon, nil, "one")
	w.pass()
	m := w.maintenance("completes", complete, nil, "one")
	for range 3 {
		w.pass()
	}
	if !w.find("one").Spec.Unschedulable {
		t.Error("the node of another maintenance is uncordoned")
	}
	if len(m.Finalizers) > 0 {
		t.Error("the complete maintenance does not finish")
	}
}

func TestFightOverTheCordon(t *testing.T) {
	w := newWorld(t, "one")
	m := w.maintenance("m", v1alpha1.StageCordon, nil, "one")
	w.pass()
	for n := range 14 {
		w.now = w.now.Add(time.Minute)
		w.find("one").Spec.Unschedulable = false
		w.pass()
		blocked := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionBlocked)
		if want := n >= 3; isTrue(m.Status.Conditions, v1alpha1.ConditionBlocked) != want {
			t.Errorf("after %d uncordons: %+v, want blocked %v", n+1, blocked, want)
		}
	}
	if got := conditionOf(m, v1alpha1.ConditionBlocked); got != "True ForeignUncordon" {
		t.Errorf("Blocked is %s", got)
	}
	if got := m.Status.NodeStatuses; len(got) != 1 || got[0].Blockers[0].Type != v1alpha1.BlockerForeignUncordon {
		t.Errorf("node statuses are %+v, want the blocker", got)
	}
	if ledger := w.find("one").Annotations[v1alpha1.CordonAnnotation]; strings.Count(ledger, "2026-") != 10 {
		t.Errorf("the ledger remembers more or less than 10 times: %s", ledger)
	}

	// Nothing but time passes: the fight is over when only three are left.
	decision := w.pass()
	if decision.RequeueAfter != 7*time.Minute {
		t.Fatalf("the next pass is due in %s, want 7m", decision.RequeueAfter)
	}
	w.now = w.now.Add(decision.RequeueAfter)
	if again := w.pass(); again.RequeueAfter != 0 || isTrue(m.Status.Conditions, v1alpha1.ConditionBlocked) {
		t.Errorf("blocked is %v and the next pass due in %s, want false and never", m.Status.Conditions, again.RequeueAfter)
	}
}

func TestWhichNodesMatter(t *testing.T) {
	w := newWorld(t, "a", "b", "c", "d", "e", "other")
	w.maintenance("m", idle, nil, "c")
	done := w.maintenance("done", complete, nil, "d")
	done.Status.StageStatuses = started(complete)
	broken := w.maintenance("broken", drain, nil)
	broken.Spec.NodeSelector = nil
	w.find("b").Annotations = map[string]string{v1alpha1.CordonAnnotation: "{}"}
	w.find("a").Status.Conditions = []corev1.NodeCondition{
		{Type: v1alpha1.NodeMaintenancePlanned, Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonNodeMaintenance},
	}
	w.find("e").Status.Conditions = []corev1.NodeCondition{
		{Type: v1alpha1.NodeDrained, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonNodeMaintenance},
	}
	w.find("other").Status.Conditions = []corev1.NodeCondition{
		{Type: v1alpha1.NodeMaintenancePlanned, Status: corev1.ConditionTrue, Reason: "Somebody"},
	}
	var got []string
	for _, node := range w.selected() {
		got = append(got, node.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "e"}, got); diff != "" {
		t.Errorf("selected (-want +got):\n%s", diff)
	}
}

// The record of a maintenance goes before the acts on all of its nodes.
func TestNodesNameTheMaintenancesToRecord(t *testing.T) {
	w := newWorld(t, "one")
	w.maintenance("young", drain, nil, "one").CreationTimestamp = *metaTime(dawn.Add(time.Hour))
	w.maintenance("old", v1alpha1.StageCordon, nil, "one")
	w.maintenance("planned", idle, nil, "one")
	w.maintenance("elsewhere", drain, nil, "two")
	w.maintenance("restores", complete, nil, "one")
	got := fmt.Sprint(w.pass().Nodes[0].Maintenances)
	if want := "[old restores young]"; got != want {
		t.Errorf("maintenances are %s, want %s", got, want)
	}
}
