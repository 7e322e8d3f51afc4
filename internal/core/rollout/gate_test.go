package rollout_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/golden"
)

var (
	healthy = v1alpha1.RolloutGate{Name: "healthy", Prometheus: &v1alpha1.PrometheusGate{Query: "up == bool 1"}}
	allowed = v1alpha1.RolloutGate{Name: "allowed", Object: &v1alpha1.ObjectGate{
		APIVersion: "v1", Kind: "ConfigMap", Namespace: "ops", Name: "fleet", JSONPath: ".data.state", Value: "go",
	}}
	isHealthy, isAllowed = rollout.Question{Query: "up == bool 1"}, rollout.Question{Object: *allowed.Object}
)

func gated(gates ...v1alpha1.RolloutGate) func(*v1alpha1.NodeRolloutSpec) {
	return func(s *v1alpha1.NodeRolloutSpec) { s.Gates = gates }
}

func requiring(all ...v1alpha1.RolloutRequirement) func(*v1alpha1.NodeRolloutSpec) {
	return func(s *v1alpha1.NodeRolloutSpec) { s.Requires = all }
}

func room(node, leaving string) rollout.Question {
	return rollout.Question{Requirement: v1alpha1.RequiresRoom, Node: node, Leaving: leaving}
}

func noLoss(node string) rollout.Question {
	return rollout.Question{Requirement: v1alpha1.RequiresNoLoss, Node: node}
}

// answered answers a question now.
func answered(q rollout.Question, verdict rollout.Verdict, text ...string) func(w *world) {
	return func(w *world) {
		answer := rollout.Answer{Time: w.now, Verdict: verdict}
		if len(text) > 0 {
			answer.Text = text[0]
		}
		w.answers = maps.Clone(w.answers)
		if w.answers == nil {
			w.answers = map[rollout.Question]rollout.Answer{}
		}
		w.answers[q] = answer
	}
}

func TestStartIsRefusedByGatesAndRequirements(t *testing.T) {
	t.Parallel()
	waits := func(reason string) []string { return []string{"a b c wait: " + reason} }
	starts := []string{"a: Draining", "b c wait: MaxUnavailable"}
	both := created(gated(healthy, allowed))
	roomy, lossless := created(requiring(v1alpha1.RequiresRoom)), created(requiring(v1alpha1.RequiresNoLoss, v1alpha1.RequiresRoom))
	tell(t, map[string]story{
		"gates were not asked":           {both, waits(v1alpha1.RolloutWaitsForAnswer)},
		"one gate was not asked":         {then(both, answered(isAllowed, rollout.Yes)), waits(v1alpha1.RolloutWaitsForAnswer)},
		"a query is 0":                   {then(both, answered(isHealthy, rollout.No), answered(isAllowed, rollout.Yes)), waits(v1alpha1.RolloutWaitsForGate)},
		"an object has another value":    {then(both, answered(isHealthy, rollout.Yes), answered(isAllowed, rollout.No)), waits(v1alpha1.RolloutWaitsForGate)},
		"a query is empty":               {then(both, answered(isHealthy, rollout.Unknown, "the query returns nothing."), answered(isAllowed, rollout.Yes)), waits(v1alpha1.RolloutWaitsForAnswer)},
		"both gates are open":            {then(both, answered(isHealthy, rollout.Yes), answered(isAllowed, rollout.Yes)), starts},
		"open long ago":                  {then(both, answered(isHealthy, rollout.Yes), answered(isAllowed, rollout.Yes), passes(30*time.Second)), waits(v1alpha1.RolloutWaitsForAnswer)},
		"open in the future":             {then(both, answered(isHealthy, rollout.Yes), answered(isAllowed, rollout.Yes), passes(-time.Second)), waits(v1alpha1.RolloutWaitsForAnswer)},
		"closed long ago":                {then(both, answered(isHealthy, rollout.No), passes(time.Hour)), waits(v1alpha1.RolloutWaitsForGate)},
		"closes after a start":           {then(created(gated(healthy), unavailable("2")), answered(isHealthy, rollout.Yes), decides, answered(isHealthy, rollout.No)), []string{"a: Draining", "b: Draining", "c wait: MaxUnavailable"}},
		"closes before the second start": {then(created(gated(healthy)), answered(isHealthy, rollout.Yes), decides, func(w *world) { w.succeed("a") }, answered(isHealthy, rollout.No)), []string{"1 done", "b c wait: Gate"}},
		"one node has no room":           {then(roomy, answered(room("a", ""), rollout.No), answered(room("b", ""), rollout.Yes)), []string{"b: Draining", "a c wait: MaxUnavailable"}},
		"no node has room":               {then(roomy, answered(room("a", ""), rollout.No), answered(room("b", ""), rollout.No), answered(room("c", ""), rollout.No)), waits(v1alpha1.RolloutWaitsForRoom)},
		"room is unknown":                {then(roomy, answered(room("a", ""), rollout.Unknown, "the pods could not be read.")), waits(v1alpha1.RolloutWaitsForAnswer)},
		"pods would be lost":             {then(lossless, answered(noLoss("a"), rollout.No), answered(noLoss("b"), rollout.Yes), answered(room("b", ""), rollout.Yes)), []string{"b: Draining", "a c wait: MaxUnavailable"}},
		"one without room, one with loss": {
			then(lossless, answered(noLoss("a"), rollout.Yes), answered(room("a", ""), rollout.No), answered(noLoss("b"), rollout.No), answered(noLoss("c"), rollout.No)),
			[]string{"b c wait: PodLoss", "a wait: NoRoom"},
		},
		"room beside another start": {
			then(created(requiring(v1alpha1.RequiresRoom), unavailable("2")), answered(room("a", ""), rollout.Yes), answered(room("b", ""), rollout.Yes)),
			[]string{"a: Draining", "b c wait: AnswerUnknown"},
		},
		"room beside a started one": {
			then(created(requiring(v1alpha1.RequiresRoom), unavailable("2")), answered(room("a", ""), rollout.Yes), answered(room("b", "a"), rollout.Yes)),
			[]string{"a: Draining", "b: Draining", "c wait: MaxUnavailable"},
		},
	})
}

func decides(w *world) { w.decide() }

// Nothing is asked while no node could start anyway, and each question once.
func TestQuestionsAreAskedOnlyIfTheyMatter(t *testing.T) {
	t.Parallel()
	other := func(w *world) { w.start("other", gated(healthy, allowed)) }
	for name, test := range map[string]struct {
		happens func(*world)
		want    []rollout.Question
		wake    time.Duration
	}{
		"gates":                       {created(gated(healthy, allowed)), []rollout.Question{isHealthy, isAllowed}, 0},
		"one is known":                {then(created(gated(healthy, allowed)), answered(isHealthy, rollout.Yes)), []rollout.Question{isAllowed}, 0},
		"one is closed":               {then(created(gated(healthy)), answered(isHealthy, rollout.No)), nil, 30 * time.Second},
		"one was closed":              {then(created(gated(healthy)), answered(isHealthy, rollout.No), passes(31*time.Second)), []rollout.Question{isHealthy}, 0},
		"two rollouts":                {then(created(gated(healthy, allowed)), other), []rollout.Question{isHealthy, isAllowed}, 0},
		"gates before requirements":   {created(gated(healthy), requiring(v1alpha1.RequiresRoom)), []rollout.Question{isHealthy}, 0},
		"loss before room":            {created(requiring(v1alpha1.RequiresRoom, v1alpha1.RequiresNoLoss)), []rollout.Question{noLoss("a"), noLoss("b"), noLoss("c")}, 0},
		"asked longest ago":           {then(created(requiring(v1alpha1.RequiresNoLoss)), answered(noLoss("b"), rollout.No), passes(time.Second), answered(noLoss("a"), rollout.No), passes(time.Minute)), []rollout.Question{noLoss("c"), noLoss("b"), noLoss("a")}, 0},
		"room beside a started node":  {then(started(requiring(v1alpha1.RequiresRoom)), answered(room("a", ""), rollout.Yes), decides, spec(unavailable("2"))), []rollout.Question{room("b", "a"), room("c", "a")}, 0},
		"paused":                      {created(gated(healthy), paused), nil, 0},
		"before the window":           {created(gated(healthy), window("22:00", "04:00")), nil, 10 * time.Hour},
		"no node is left":             {created(gated(healthy), skipping("a"), skipping("b"), skipping("c")), nil, 0},
		"too many are unavailable":    {then(created(gated(healthy)), node("a", notReady), node("b", notReady), node("c", notReady)), nil, 0},
		"the clock is wrong":          {then(created(gated(healthy)), func(w *world) { w.skewed = true }), nil, 0},
		"a start leaves no more room": {then(created(gated(healthy)), answered(isHealthy, rollout.Yes), decides), nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "a", "b", "c")
			test.happens(w)
			d := rollout.Decide(w.snapshot())
			difference.None(t, "questions", test.want, d.Questions)
			if got := max(0, d.WakeTime.Sub(w.now)); got != test.wake {
				t.Errorf("wakes after %s, want %s", got, test.wake)
			}
		})
	}
}

// 200 rollouts over 40 nodes ask about eight nodes each, and equal questions once.
func TestManyRolloutsAskABoundedNumberOfQuestions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 40 {
		w.join(fmt.Sprintf("node-%02d", i))
	}
	for i := range 200 {
		w.start(fmt.Sprintf("patch-%03d", i), requiring(v1alpha1.RequiresRoom, v1alpha1.RequiresNoLoss))
	}
	if d := rollout.Decide(w.snapshot()); len(d.Questions) != 8 {
		t.Errorf("%d questions", len(d.Questions))
	}
	for i := range 200 {
		var gates []v1alpha1.RolloutGate
		for n := range 8 {
			gates = append(gates, v1alpha1.RolloutGate{Name: fmt.Sprint("gate-", n), Prometheus: &v1alpha1.PrometheusGate{Query: fmt.Sprintf("up > bool %d", i%2*8+n)}})
		}
		w.editSpec(fmt.Sprintf("patch-%03d", i), gated(gates...))
	}
	if d := rollout.Decide(w.snapshot()); len(d.Questions) != 16 {
		t.Errorf("%d questions", len(d.Questions))
	}
}

// A status with a closed gate stays as it is while the gate is asked again and again.
func TestClosedGateWritesNoStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c")
	created(gated(healthy))(w)
	answered(isHealthy, rollout.No)(w)
	w.settle()
	for range 10 {
		w.now = w.now.Add(31 * time.Second)
		w.checkIdle()
		answered(isHealthy, rollout.No)(w)
		w.checkIdle()
	}
}

func TestInvalidGateIsRefused(t *testing.T) {
	t.Parallel()
	object := func(change func(*v1alpha1.ObjectGate)) v1alpha1.RolloutGate {
		gate := v1alpha1.RolloutGate{Name: "allowed", Object: allowed.Object.DeepCopy()}
		change(gate.Object)
		return gate
	}
	path := func(text string) v1alpha1.RolloutGate {
		return object(func(o *v1alpha1.ObjectGate) { o.JSONPath = text })
	}
	for name, test := range map[string]struct {
		gates   []v1alpha1.RolloutGate
		refused bool
	}{
		"valid ones":           {[]v1alpha1.RolloutGate{healthy, allowed}, false},
		"neither":              {[]v1alpha1.RolloutGate{healthy, {Name: "none"}}, true},
		"both":                 {[]v1alpha1.RolloutGate{{Name: "both", Prometheus: healthy.Prometheus, Object: allowed.Object}}, true},
		"no query":             {[]v1alpha1.RolloutGate{{Name: "empty", Prometheus: &v1alpha1.PrometheusGate{}}}, true},
		"a Secret":             {[]v1alpha1.RolloutGate{object(func(o *v1alpha1.ObjectGate) { o.Kind = "Secret" })}, true},
		"no value":             {[]v1alpha1.RolloutGate{object(func(o *v1alpha1.ObjectGate) { o.Value = "" })}, true},
		"nine":                 {slices.Repeat([]v1alpha1.RolloutGate{healthy}, 9), true},
		"a condition":          {[]v1alpha1.RolloutGate{path(`.status.conditions[?(@.type=="Ready")].status`)}, false},
		"an index and a label": {[]v1alpha1.RolloutGate{path(`.a[0][1].metadata.labels.example\.com/x-y`)}, false},
		"everything below":     {[]v1alpha1.RolloutGate{path(`..status`)}, true},
		"a wildcard":           {[]v1alpha1.RolloutGate{path(`.items[*].status`)}, true},
		"a slice":              {[]v1alpha1.RolloutGate{path(`.items[0:1].status`)}, true},
		"a template":           {[]v1alpha1.RolloutGate{path(`{range .items[0]}{.a}{end}`)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := rollout.Read(&v1alpha1.NodeRolloutSpec{NodeSelector: pool("a"), Gates: test.gates})
			if (err != nil) != test.refused {
				t.Fatalf("error is %v", err)
			}
			if err != nil {
				golden.Message(t, err.Error())
			}
		})
	}
}
