package nodemaintenance

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// decide is a decision on a maintenance whose summary changes to the given one.
func (w *world) decide(name, summary string) maintenance.MaintenanceDecision {
	w.t.Helper()
	observed := w.maintenance(name)
	return maintenance.MaintenanceDecision{
		Maintenance: observed,
		Status:      v1alpha1.NodeMaintenanceStatus{Summary: summary},
		Events: []event.Event{{
			Regarding: corev1.ObjectReference{Kind: "NodeMaintenance", Name: name}, Reason: "Summarised", Message: summary,
		}},
	}
}

// pass records and reports what was decided.
func (w *world) pass(r *reconciler, decisions ...maintenance.MaintenanceDecision) *writer {
	writing := &writer{reconciler: r}
	writing.report(w.t.Context(), writing.record(w.t.Context(), decisions))
	return writing
}

func TestAFailedRecordStopsOnlyThatMaintenance(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aMaintenance("first", "old"), aMaintenance("second", "new"))
	w.api.Refuse = refuseWrites("update status of NodeMaintenance first")
	first, second := w.decide("first", "draining"), w.decide("second", "draining")
	first.Record, second.Record = true, true
	writing := &writer{reconciler: w.manager()}

	all := writing.record(w.t.Context(), []maintenance.MaintenanceDecision{first, second})

	want := "record maintenance first: write the status: the webhook of somebody else says no"
	if writing.first == nil || writing.first.Error() != want {
		t.Errorf("record = %v, want %q", writing.first, want)
	}
	if diff := cmp.Diff(map[string]bool{"first": true, "second": false}, failed(all)); diff != "" {
		t.Errorf("failed records (-want +got):\n%s", diff)
	}
	if got := w.maintenance("second").Status.Summary; got != "draining" {
		t.Errorf("summary of the second = %q, want it recorded", got)
	}
	if got := slices.Sorted(slices.Values(w.api.Events())); len(got) != 2 || got[0] != "Summarised on NodeMaintenance/second: draining" || !strings.HasPrefix(got[1], "WriteRefused on NodeMaintenance/first: ") {
		t.Errorf("events are %q", got)
	}
}

// A maintenance that cannot be written is not asked for in every pass.
func TestARefusedRecordRests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aMaintenance("upgrade", "old"))
	w.api.Refuse = refuseWrites("NodeMaintenance upgrade")
	r := w.manager()
	decided := w.decide("upgrade", "draining")
	decided.Record = true
	w.pass(r, decided)
	before := len(w.api.Writes())

	if ended := w.pass(r, decided); len(w.api.Writes()) != before || ended.due == 0 || ended.due > firstRefusal {
		t.Errorf("at once after the refusal there are %d more writes and the next pass is due in %s, want none and up to %s",
			len(w.api.Writes())-before, ended.due, firstRefusal)
	}
	w.api.Refuse = nil
	w.clock.Step(firstRefusal)
	w.pass(r, decided)
	if got := w.maintenance("upgrade").Status.Summary; got != "draining" {
		t.Errorf("summary = %q, want it recorded after the rest", got)
	}
}

func TestStatusIsWrittenOnceASecondUnlessItIsUrgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aMaintenance("upgrade", "old"))
	r := w.manager()
	type step struct {
		after      time.Duration
		summary    string
		urgent     bool
		wantDue    time.Duration
		wantStored string
	}
	for _, step := range []step{
		{summary: "10 pods left", wantStored: "10 pods left"},
		{after: 200 * time.Millisecond, summary: "9 pods left", wantDue: 800 * time.Millisecond, wantStored: "10 pods left"},
		{after: 300 * time.Millisecond, summary: "8 pods left", wantDue: 500 * time.Millisecond, wantStored: "10 pods left"},
		{after: 500 * time.Millisecond, summary: "7 pods left", wantStored: "7 pods left"},
		{after: 100 * time.Millisecond, summary: "drained", urgent: true, wantStored: "drained"},
		{after: 100 * time.Millisecond, summary: "complete", wantDue: 900 * time.Millisecond, wantStored: "drained"},
	} {
		w.clock.Step(step.after)
		decided := w.decide("upgrade", step.summary)
		decided.Urgent = step.urgent
		due := w.pass(r, decided).due
		if due != step.wantDue {
			t.Errorf("after %q the next pass is due in %s, want %s", step.summary, due, step.wantDue)
		}
		if got := w.maintenance("upgrade").Status.Summary; got != step.wantStored {
			t.Errorf("after %q the API says %q, want %q", step.summary, got, step.wantStored)
		}
	}
	if n := len(w.api.Events()); n != 3 {
		t.Errorf("%d events, want one for each of the 3 writes: %v", n, w.api.Events())
	}
}

// A status of 900 KiB that only speaks of progress is written every 14 s, and one whose
// conditions change every 3 s.
func TestALargeStatusIsWrittenLessOften(t *testing.T) {
	t.Parallel()
	p := newPace()
	p.wrote("upgrade", noon, 900<<10)
	if got, want := p.left("upgrade", noon.Add(4*time.Second), false), 10062500*time.Microsecond; got != want {
		t.Errorf("after 4s progress waits for %s more, want %s", got, want)
	}
	if got, want := p.left("upgrade", noon.Add(3*time.Second), true), 515625*time.Microsecond; got != want {
		t.Errorf("after 3s a condition waits for %s more, want %s", got, want)
	}
	p.forget("upgrade")
	if got := p.left("upgrade", noon, false); got != 0 {
		t.Errorf("one that is forgotten waits for %s", got)
	}
}

func TestAStatusThatWasDecidedOnAnOldObjectIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aMaintenance("upgrade", "old"))
	decided := w.decide("upgrade", "draining")
	moved := w.maintenance("upgrade")
	moved.Spec.Stage = v1alpha1.StageComplete
	if err := w.api.Update(w.t.Context(), moved); err != nil {
		t.Fatalf("complete the maintenance: %v", err)
	}
	r := w.manager()

	if ended := w.pass(r, decided); !apierrors.IsConflict(ended.stale) {
		t.Errorf("pass = %v, want a conflict", ended.stale)
	}
	if got := w.maintenance("upgrade").Status.Summary; got != "" {
		t.Errorf("summary = %q, want none", got)
	}
}

func TestTheFinalizerGoesLast(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		unfinished bool
		want       []string
	}{
		"once its nodes are given back":                {want: nil},
		"not while a node could not be given back yet": {unfinished: true, want: []string{v1alpha1.MaintenanceCompletionFinalizer}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			held := aMaintenance("upgrade", "old")
			held.Finalizers = []string{v1alpha1.MaintenanceCompletionFinalizer}
			w := newWorld(t, held)
			r := w.manager()
			decided := w.decide("upgrade", "complete")
			decided.DropFinalizer = true

			writing := &writer{reconciler: r}
			all := writing.record(w.t.Context(), []maintenance.MaintenanceDecision{decided})
			all["upgrade"].unfinished.Store(test.unfinished)
			writing.report(w.t.Context(), all)

			got := w.maintenance("upgrade")
			if diff := cmp.Diff(test.want, got.Finalizers); diff != "" {
				t.Errorf("finalizers (-want +got):\n%s", diff)
			}
			if got.Status.Summary != "complete" {
				t.Errorf("summary = %q, want it written in any case", got.Status.Summary)
			}
		})
	}
}

func failed(all records) map[string]bool {
	failures := map[string]bool{}
	for name, one := range all {
		failures[name] = one.failed
	}
	return failures
}

// A maintenance without nodes has nothing to give back, so that no event comes of its end.
func TestAMaintenanceWhoseNodesAreGoneIsLetGoWithoutAnEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aNode("one"), aMaintenance("upgrade", "old"))
	r := w.manager()
	w.reconcile(r)
	w.must(w.api.Delete(t.Context(), w.node("one")))
	w.reconcile(r)
	upgrade := w.maintenance("upgrade")
	upgrade.Spec.Stage = v1alpha1.StageComplete
	w.must(w.api.Update(t.Context(), upgrade))

	// It is told of once, as to a manager that begins behind the write of somebody else.
	next := w.manager()
	w.reconcile(next)
	w.clock.Step(time.Second)
	w.must(runDue(t.Context(), next, w.clock))
	if m := w.maintenance("upgrade"); len(m.Finalizers) > 0 || m.Status.Summary != "cancelled, not all nodes were drained" {
		t.Errorf("finalizers %v, %q; want none, and that it is over", m.Finalizers, m.Status.Summary)
	}
}
