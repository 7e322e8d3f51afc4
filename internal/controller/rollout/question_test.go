package rollout

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/rollout"
)

// outside answers the queries of gates.
type outside struct {
	mu    sync.Mutex
	says  map[string]core.Verdict
	asked []string
	// stuck are the queries that have no answer until it is closed.
	stuck map[string]chan struct{}
}

func (o *outside) respond(_ context.Context, q core.Question) (core.Verdict, string) {
	o.mu.Lock()
	o.asked = append(o.asked, q.Query)
	verdict, stuck := o.says[q.Query], o.stuck[q.Query]
	o.mu.Unlock()
	if stuck != nil {
		<-stuck
	}
	return verdict, ""
}

func (o *outside) say(query string, verdict core.Verdict) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.says[query] = verdict
}

func (o *outside) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.asked)
}

// gatedRollout is a rollout over one node with gates.
func gatedRollout(name string, queries ...string) []client.Object {
	r := aRollout(name)
	r.Spec.Target = &v1alpha1.CompleteWhen{KubeletVersion: ">=1.37.0"}
	for i, query := range queries {
		r.Spec.Gates = append(r.Spec.Gates, v1alpha1.RolloutGate{Name: fmt.Sprint("gate-", i), Prometheus: &v1alpha1.PrometheusGate{Query: query}})
	}
	node := aNode("node-of-" + name)
	node.Labels["rollout"] = name
	return []client.Object{r, node}
}

// settle decides and writes until nothing is asked or written any more.
func (m *replica) settle() {
	m.w.t.Helper()
	for range 5 {
		m.sync()
		m.pass()
		m.questions.wait()
	}
}

func (w *world) working(rollout string) int { return int(w.rollout(rollout).Status.WorkingCount) }

func (w *world) waitsFor(rollout string) (reasons []string) {
	for _, one := range w.rollout(rollout).Status.Waiting {
		reasons = append(reasons, one.Reason)
	}
	return reasons
}

// A gate is asked again every 30 seconds while it is closed, and nothing is written meanwhile. No gate
// is asked while no node could start.
func TestGateHoldsStartsUntilItOpens(t *testing.T) {
	t.Parallel()
	w, prometheus := newWorld(t, gatedRollout("kernel", "quiet")...), &outside{says: map[string]core.Verdict{"quiet": core.No}}
	m := w.manager(nil)
	m.questions.gate = prometheus.respond
	m.settle()
	if got := w.waitsFor("kernel"); !slices.Equal(got, []string{v1alpha1.RolloutWaitsForGate}) || prometheus.count() != 1 {
		t.Fatalf("waits for %q, asked %d times", got, prometheus.count())
	}
	writes := len(w.api.Writes())
	for range 5 {
		w.clock.Step(31 * time.Second)
		m.settle()
	}
	if prometheus.count() != 6 || len(w.api.Writes()) != writes {
		t.Errorf("asked %d times, writes %q", prometheus.count(), w.api.Writes()[writes:])
	}
	prometheus.say("quiet", core.Yes)
	w.clock.Step(31 * time.Second)
	m.settle()
	asked := prometheus.count()
	prometheus.say("quiet", core.No)
	w.clock.Step(time.Hour / 4)
	m.settle()
	if w.working("kernel") != 1 || prometheus.count() != asked {
		t.Errorf("works on %d nodes, asked %d more times", w.working("kernel"), prometheus.count()-asked)
	}
}

// So it is with a gate that opens every other minute, and nodes that are checked.
func TestManagerKilledBehindEveryWriteBesideAGate(t *testing.T) {
	t.Parallel()
	assertKilledBehindEveryWrite(t, "3 of 3 nodes done", func(t *testing.T) *fleet {
		t.Helper()
		f := newFleet(t, 3, 2)
		r := f.rollout("kernel")
		r.Spec.Gates = []v1alpha1.RolloutGate{{Name: "even", Prometheus: &v1alpha1.PrometheusGate{Query: "even"}}}
		r.Spec.Requires = []v1alpha1.RolloutRequirement{v1alpha1.RequiresRoom, v1alpha1.RequiresNoLoss}
		f.must(f.api.Update(t.Context(), r))
		f.gate = func(context.Context, core.Question) (core.Verdict, string) {
			if f.clock.Now().Minute()%2 == 1 {
				return core.Yes, ""
			}
			return core.No, ""
		}
		return f
	})
}

// A gate without an answer delays its rollout only.
func TestHangingGateDelaysNoOtherRollout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, slices.Concat(gatedRollout("slow", "slow", "quiet"), gatedRollout("kernel", "quiet"))...)
	stuck := make(chan struct{})
	prometheus := &outside{says: map[string]core.Verdict{"quiet": core.Yes, "slow": core.Yes}, stuck: map[string]chan struct{}{"slow": stuck}}
	m := w.manager(nil)
	m.questions.gate = prometheus.respond
	w.await("the other rollout", func() bool {
		m.sync()
		m.pass()
		return w.working("kernel") == 1
	})
	if got := w.waitsFor("slow"); w.working("slow") != 0 || !slices.Equal(got, []string{v1alpha1.RolloutWaitsForAnswer}) {
		t.Errorf("works on %d nodes, waits for %q", w.working("slow"), got)
	}
	close(stuck)
	m.settle()
	if w.working("slow") != 1 {
		t.Errorf("waits for %q after the answer", w.waitsFor("slow"))
	}
}

// 200 rollouts with 8 gates each ask a bounded number of queries at the same time, each once.
func TestGatesOfManyRolloutsAreAskedAFewAtATime(t *testing.T) {
	t.Parallel()
	var all []core.Question
	for i := range 1600 {
		all = append(all, core.Question{Query: fmt.Sprint("up > ", i)})
	}
	q := newQuestions(func() (time.Time, bool) { return noon, false }, testingclock.NewFakeClock(noon))
	var now, most, count atomic.Int64
	q.gate = func(context.Context, core.Question) (core.Verdict, string) {
		count.Add(1)
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		return core.Yes, ""
	}
	for known := q.all(); len(known) < len(all); known = q.all() {
		left := slices.DeleteFunc(slices.Clone(all), func(one core.Question) bool { _, answered := known[one]; return answered })
		q.ask(t.Context(), slices.Concat(left, left), func() {})
		q.wait()
	}
	if most.Load() > maxAsked || count.Load() != 1600 {
		t.Errorf("%d at the same time, %d in all", most.Load(), count.Load())
	}
}

// Old answers are forgotten, and the oldest ones if there are too many.
func TestAnswersAreForgotten(t *testing.T) {
	t.Parallel()
	now := noon
	q := newQuestions(func() (time.Time, bool) { return now, false }, testingclock.NewFakeClock(noon))
	for i := range maxAnswers + 10 {
		q.note(core.Question{Query: fmt.Sprint(i)}, core.Answer{Time: noon.Add(time.Duration(i))})
	}
	if _, known := q.all()[core.Question{Query: "0"}]; known || len(q.all()) != maxAnswers {
		t.Errorf("%d answers, knows the first: %t", len(q.all()), known)
	}
	now = noon.Add(answerMemory + time.Second)
	if len(q.all()) > 0 {
		t.Errorf("%d answers after %s", len(q.all()), answerMemory)
	}
}

// A question that has the manager panic is unknown.
func TestPanickingGateIsUnknown(t *testing.T) {
	t.Parallel()
	q := newQuestions(func() (time.Time, bool) { return noon, false }, testingclock.NewFakeClock(noon))
	q.gate = func(context.Context, core.Question) (core.Verdict, string) { panic("a defect") }
	asked, done := core.Question{Query: "up"}, make(chan struct{})
	q.ask(t.Context(), []core.Question{asked}, func() { close(done) })
	<-done
	if answer := q.all()[asked]; answer.Verdict != core.Unknown || answer.Text == "" {
		t.Errorf("the answer is %+v", answer)
	}
}
