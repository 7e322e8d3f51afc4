package rollout

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	core "ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/internal/kube"
)

var (
	errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "nodemaintenances"}, "kernel", errors.New("denied by a test"))
	errConflict  = apierrors.NewConflict(schema.GroupResource{Resource: "noderollouts"}, "kernel", errors.New("it has changed"))
	errCut       = errors.New("read tcp: connection reset by peer")
)

// refuse refuses requests that contain a text.
func (w *world) refuse(text string, err error) {
	w.api.Refuse = func(request string) error {
		if strings.Contains(request, text) {
			return err
		}
		return nil
	}
}

// The start of a node is recorded before its NodeMaintenance is created.
func TestStartIsRecordedBeforeItIsMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aRollout("kernel"))
	m := w.manager(func(s *core.Snapshot) *core.Decision {
		d := starting(s)
		d.Rollouts[0].AddFinalizer = true
		return d
	})
	m.pass()
	want := []string{"patch NodeRollout kernel", "patch status of NodeRollout kernel", "create NodeMaintenance kernel"}
	if got := w.api.Writes(); !slices.Equal(got, want) {
		t.Errorf("it writes %q, want %q", got, want)
	}
	m.sync()
	if m.pass(); len(w.api.Writes()) > len(want)+1 {
		t.Errorf("the second decision writes %q", w.api.Writes()[len(want):])
	}
}

// Without a record nothing starts: neither if the API server refuses it, nor if the rollout has
// changed. A state that the API server no longer has is not written again.
func TestNothingStartsWithoutItsRecord(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{"refused": errForbidden, "stale": errConflict, "no answer": errCut} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, aRollout("kernel"))
			w.refuse("patch status", refusal)
			m := w.manager(starting)
			m.pass()
			if writes := w.api.Writes(); len(writes) != 1 {
				t.Fatalf("it writes %q", writes)
			}
			w.api.Refuse = nil
			due := m.pass()
			if len(w.api.Writes()) > 1 {
				t.Fatalf("it writes %q at once again", w.api.Writes())
			}
			if stale := kube.IsStale(refusal); stale != (due == 0) {
				t.Errorf("it is due in %s", due)
			}
			w.clock.Step(due)
			changed := w.rollout("kernel")
			changed.Labels = map[string]string{"changed": "true"}
			w.must(w.api.Update(t.Context(), changed))
			if m.sync(); m.pass() != 0 || w.maintenance("kernel") == nil {
				t.Errorf("later it writes %q", w.api.Writes())
			}
		})
	}
}

// One NodeMaintenance that is refused delays no other one. It is shown, and retried with a back-off.
func TestRefusedWriteRestsAndDelaysNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aRollout("kernel"), aRollout("other"))
	w.refuse("create NodeMaintenance kernel", errForbidden)
	m := w.manager(starting)
	m.pass()
	if w.maintenance("kernel") != nil || w.maintenance("other") == nil {
		t.Fatalf("it writes %q", w.api.Writes())
	}
	var rests []time.Duration
	for range 8 {
		m.sync()
		before := len(w.api.Writes())
		due := m.pass()
		if got := m.last().Refused["kernel"]; len(m.last().Refused) != 1 || !strings.Contains(got, "denied by a test") || len(w.api.Writes()) > before {
			t.Fatalf("it is shown the refusals %q, and writes %q", m.last().Refused, w.api.Writes()[before:])
		}
		rests = append(rests, due.Round(time.Second))
		w.clock.Step(due)
		if m.pass(); len(m.last().Refused) > 0 || len(w.api.Writes()) != before+2 {
			t.Fatalf("it is shown the refusals %q, and writes %q when the write is due", m.last().Refused, w.api.Writes()[before:])
		}
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60}
	for i := range want {
		want[i] *= time.Second
	}
	if !slices.Equal(rests, want) {
		t.Errorf("it rests for %v, want %v", rests, want)
	}
	w.api.Refuse = nil
	w.clock.Step(time.Minute)
	m.pass()
	if m.pass(); w.maintenance("kernel") == nil || len(m.last().Refused) > 0 {
		t.Errorf("when it is allowed there is %v, and still refused are %q", w.maintenance("kernel"), m.last().Refused)
	}
}

// A write that hangs delays no other rollout. Meanwhile its node counts as started, and whether its
// NodeMaintenance exists is unknown.
func TestHangingWriteDelaysNoOtherRollout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aRollout("kernel"))
	m := w.manager(starting)
	release := m.hang("kernel")
	m.decideOnce()
	w.await("the start is recorded", func() bool { return len(w.api.Writes()) == 1 && len(w.rollout("kernel").Status.Working) == 1 })
	w.must(w.api.Create(t.Context(), aRollout("other")))
	// The cache is behind.
	w.must(w.api.List(t.Context(), &m.shown))
	m.decideOnce()
	w.await("the other one starts", func() bool { return w.maintenance("other") != nil })
	seen := m.last()
	if got := seen.Rollouts[0].Status.Working; len(got) != 1 || !seen.Unknown["kernel"] || seen.Unknown["other"] {
		t.Errorf("the other one is decided with %v, unknown %v", got, seen.Unknown)
	}
	if w.maintenance("kernel") != nil {
		t.Error("the write did not hang")
	}
	release()
	m.flights.wait()
	if m.pass(); m.last().Unknown["kernel"] || len(m.last().Maintenances) != 2 {
		t.Errorf("afterwards it sees %v, unknown %v", m.last().Maintenances, m.last().Unknown)
	}
}

// A NodeMaintenance that is recorded and not in the cache is read from the API server. One that
// A creation whose answer is lost is neither believed nor repeated blindly.
func TestLostAnswerOfACreation(t *testing.T) {
	t.Parallel()
	for _, arrives := range []bool{false, true} {
		w := newWorld(t, aRollout("kernel"))
		m := w.manager(starting)
		w.clock.Step(kube.RequestTimeout)
		w.refuse("create NodeMaintenance kernel", errCut)
		m.pass()
		w.api.Refuse = nil
		if m.pass(); !m.last().Unknown["kernel"] || m.last().Refused["kernel"] == "" {
			t.Errorf("without an answer it sees %v, unknown %v, refused %q", m.last().Maintenances, m.last().Unknown, m.last().Refused)
		}
		if arrives {
			w.must(w.api.Create(t.Context(), aMaintenance("kernel")))
		}
		w.clock.Step(kube.RequestTimeout)
		for range 2 {
			m.pass()
		}
		if m.last().Unknown["kernel"] || len(m.last().Maintenances) != 1 {
			t.Errorf("in the end, as it arrives: %t, it sees %v, unknown %v", arrives, m.last().Maintenances, m.last().Unknown)
		}
	}
}

// A NodeMaintenance that exists is no error, unless the decision knew it: then it has another
// origin.
func TestExistingMaintenanceIsNoError(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aRollout("kernel"))
	always := func(s *core.Snapshot) *core.Decision {
		d := starting(&core.Snapshot{Rollouts: s.Rollouts})
		return d
	}
	m := w.manager(always)
	m.caughtUp = true
	w.must(w.api.Create(t.Context(), aMaintenance("kernel")))
	m.pass()
	if due := m.pass(); due > trusted || len(m.last().Refused) > 0 || len(m.last().Maintenances) != 1 {
		t.Fatalf("it sees %v, refused %q, due in %s", m.last().Maintenances, m.last().Refused, due)
	}
	if m.pass(); !strings.Contains(m.last().Refused["kernel"], "is not of this rollout") {
		t.Errorf("one of another origin is refused: %q", m.last().Refused)
	}
}

// A change is under the resource version that was decided on, and a deletion under the UID. The
// rollout is released after all changes only.
func TestRolloutIsReleasedAfterItsMaintenances(t *testing.T) {
	t.Parallel()
	held := aRollout("kernel")
	held.Finalizers = []string{v1alpha1.RolloutFinalizer}
	objects := map[string]*v1alpha1.NodeMaintenance{"one": aMaintenance("one"), "two": aMaintenance("two")}
	for _, one := range objects {
		one.Finalizers = []string{v1alpha1.RolloutFinalizer}
	}
	w := newWorld(t, held, objects["one"], objects["two"])
	releasing := func(s *core.Snapshot) *core.Decision {
		d := core.RolloutDecision{Rollout: s.Rollouts[0], RemoveFinalizer: true}
		for _, before := range s.Maintenances {
			after := before.DeepCopy()
			after.Finalizers = nil
			d.Changes = append(d.Changes, core.Change{Before: before, After: after, Delete: before.Name == "two" && before.DeletionTimestamp == nil})
		}
		return &core.Decision{Rollouts: []core.RolloutDecision{d}}
	}
	m := w.manager(releasing)
	changed := w.maintenance("one")
	changed.Labels["changed"] = "true"
	w.must(w.api.Update(t.Context(), changed))
	m.caughtUp = true
	m.pass()
	if w.maintenance("one") == nil || len(w.maintenance("one").Finalizers) == 0 || w.maintenance("two").DeletionTimestamp == nil || len(w.rollout("kernel").Finalizers) == 0 {
		t.Fatalf("on old state it writes %q", w.api.Writes())
	}
	m.sync()
	if m.pass(); w.maintenance("two") != nil || len(w.maintenance("one").Finalizers) > 0 || len(w.rollout("kernel").Finalizers) > 0 {
		t.Errorf("it writes %q", w.api.Writes())
	}
}

// NodeMaintenances of rollouts that are gone are released, unless only the cache lacks the rollout.
func TestOrphansAreReleasedIfTheirRolloutIsGone(t *testing.T) {
	t.Parallel()
	for name, rollout := range map[string]string{"gone": "", "another one of its name": "another", "not in the cache": "uid-of-kernel"} {
		orphan := aMaintenance("one")
		orphan.Annotations = map[string]string{v1alpha1.RolloutAttemptAnnotation: `{"uid": "uid-of-kernel"}`}
		w := newWorld(t, orphan)
		m := w.manager(func(s *core.Snapshot) *core.Decision {
			after := s.Maintenances[0].DeepCopy()
			delete(after.Annotations, v1alpha1.RolloutAttemptAnnotation)
			return &core.Decision{Orphans: []core.Change{{Before: s.Maintenances[0], After: after}}}
		})
		if rollout != "" {
			existing := aRollout("kernel")
			existing.UID = types.UID(rollout)
			w.must(w.api.Create(t.Context(), existing))
		}
		m.pass()
		_, held := w.maintenance("one").Annotations[v1alpha1.RolloutAttemptAnnotation]
		if want := rollout == "uid-of-kernel"; held != want {
			t.Errorf("%s: it is held: %t", name, held)
		}
	}
}

// An event says that a node has started only if its NodeMaintenance exists.
func TestRefusedStartHasNoEvent(t *testing.T) {
	t.Parallel()
	for _, refused := range []bool{false, true} {
		w := newWorld(t, aRollout("kernel"))
		if refused {
			w.refuse("create", errForbidden)
		}
		m := w.manager(func(s *core.Snapshot) *core.Decision {
			d := starting(s)
			d.Rollouts[0].Events = []event.Event{event.RolloutNodeStarted(s.Rollouts[0], "one", "kernel"), event.RolloutNodeFailed(s.Rollouts[0], "two", "why")}
			return d
		})
		m.pass()
		if got := len(w.api.Events()); got != 1 && refused || got != 2 && !refused {
			t.Errorf("refused: %t: the events are %q", refused, w.api.Events())
		}
	}
}

// Nodes that are recorded already start under the state that was decided on, too.
func TestRecordedStartHeedsAChangedRollout(t *testing.T) {
	t.Parallel()
	recorded := aRollout("kernel")
	recorded.Status = starting(&core.Snapshot{Rollouts: []*v1alpha1.NodeRollout{recorded}}).Rollouts[0].Status
	w := newWorld(t, recorded)
	m := w.manager(starting)
	m.caughtUp = true
	w.clock.Step(kube.RequestTimeout)
	changed := w.rollout("kernel")
	changed.Status.Working = nil
	w.must(w.api.Status().Update(t.Context(), changed))
	if m.pass(); w.maintenance("kernel") != nil {
		t.Errorf("it writes %q", w.api.Writes())
	}
	m.sync()
	if m.pass(); w.maintenance("kernel") == nil {
		t.Errorf("later it writes %q", w.api.Writes())
	}
}
