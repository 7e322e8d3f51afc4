package maintenance_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// outcome is what becomes of the only pod of a node.
type outcome struct {
	// counts are pending/evacuating/retained after three passes.
	counts [3]int32
	// locks is true if the budget of the pod is to be locked.
	locks bool
	// says are the warnings on the pod.
	says []string
}

// stayCase is a pod, and the maintenance of its node; one without a downtime is not
// in place.
type stayCase struct {
	with     []func(*corev1.Pod)
	downtime int32
	depth    v1alpha1.PodType
	runners  maintenance.Runners
	want     outcome
}

func stayCases() map[string]stayCase {
	type with = []func(*corev1.Pod)
	var (
		kept     = outcome{counts: [3]int32{0, 0, 1}, locks: true}
		retained = outcome{counts: [3]int32{0, 0, 1}}
		leaves   = outcome{counts: [3]int32{0, 1, 0}}
		waits    = outcome{counts: [3]int32{1, 0, 0}}
	)
	telling := func(o outcome, says ...string) outcome {
		o.says = says
		return o
	}
	short := func(taint, endured string) string {
		return "TolerationTooShort: The pod does not stay on node one: the node is away for 5m0s in m, and the pod tolerates taint " + taint +
			" with effect NoExecute for " + endured + " only. Give it a toleration with tolerationSeconds 300 or more, or without."
	}
	onlyNotReady := func(pod *corev1.Pod) { pod.Spec.Tolerations = pod.Spec.Tolerations[:1] }
	forever := func(pod *corev1.Pod) {
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	return map[string]stayCase{
		"a pod that asks to stay":        {with: with{stays}, downtime: 300, want: kept},
		"it asks in capitals":            {with: with{stays, label(v1alpha1.OnUpgradeLabel, "Stay")}, downtime: 300, want: kept},
		"it endures more":                {with: with{stays, endures(301)}, downtime: 300, want: kept},
		"it endures everything":          {with: with{stays, forever}, downtime: 300, want: kept},
		"it endures a second too little": {with: with{stays, endures(299)}, downtime: 300, want: telling(leaves, short(corev1.TaintNodeUnreachable, "4m59s"))},
		"it endures nothing":             {with: with{label(v1alpha1.OnUpgradeLabel, "stay")}, downtime: 300, want: telling(leaves, short(corev1.TaintNodeUnreachable, "0s"))},
		"it endures one taint only":      {with: with{stays, onlyNotReady}, downtime: 300, want: telling(leaves, short(corev1.TaintNodeUnreachable, "0s"))},
		"it does not ask":                {with: with{endures(300)}, downtime: 300, want: leaves},
		"it asks for something else": {with: with{stays, label(v1alpha1.OnUpgradeLabel, "wait")}, downtime: 300, want: telling(leaves,
			`OnUpgradeLabelIgnored: label ebbtide.dev/on-upgrade: "wait" is ignored, use "stay"`)},
		"nobody comes back":                      {with: with{stays}, want: leaves},
		"nobody comes back, and it asks wrongly": {with: with{stays, label(v1alpha1.OnUpgradeLabel, "wait")}, want: leaves},
		"it is terminating":                      {with: with{stays, terminating}, downtime: 300, want: leaves},
		"it has finished":                        {with: with{stays, phase(corev1.PodSucceeded)}, downtime: 300},
		"it is to complete":                      {with: with{stays, label(v1alpha1.DrainLabel, "wait-completed")}, downtime: 300, want: waits},
		"it is skipped":                          {with: with{stays, label(v1alpha1.DrainLabel, "skip")}, downtime: 300, want: retained},
		"a rule that nobody understands":         {with: with{stays, label("app", "odd")}, downtime: 300, want: waits},
		"of a DaemonSet":                         {with: with{stays, ofDaemonSet}, downtime: 300, runners: maintenance.Runners{DaemonSets: true}, want: kept},
		"of a DaemonSet, and too short":          {with: with{stays, ofDaemonSet, endures(1)}, downtime: 300, runners: maintenance.Runners{DaemonSets: true}, want: telling(leaves, short(corev1.TaintNodeUnreachable, "1s"))},
		"of a DaemonSet below the depth":         {with: with{stays, ofDaemonSet}, downtime: 300, depth: v1alpha1.PodTypeDefault, runners: maintenance.Runners{DaemonSets: true}, want: kept},
		"static, and nobody could remove it":     {with: with{stays, static}, downtime: 300, want: kept},
		"static, and too short":                  {with: with{stays, static, endures(1)}, downtime: 300, want: retained},
	}
}

func TestWhichPodsStay(t *testing.T) {
	for name, test := range stayCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "one")
			w.runners, w.rules = test.runners, []*v1alpha1.MachineDrainRule{broken("odd")}
			m := w.maintenance("m", drain, nil, "one")
			m.Spec.DrainDepth = test.depth
			if test.downtime > 0 {
				inPlace(m, test.downtime)
			}
			w.budget("db")
			w.budget("odd")
			w.run("one", 1, 0, slices.Concat([]func(*corev1.Pod){label("app", "db")}, test.with)...)
			var got outcome
			for range 3 {
				got.says = append(got.says, w.warnings()...)
			}
			s := m.Status.NodeStatuses[0]
			got.counts = [3]int32{s.PodsPendingEvacuation, s.PodsEvacuating, s.PodsRetained}
			if record := w.records["one"]; record != nil {
				got.locks = len(record.Spec.Budgets) > 0
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

// warnings runs a pass and returns what it tells on pods.
func (w *world) warnings() []string {
	var said []string
	for _, node := range w.pass().Nodes {
		for _, e := range told(node) {
			if e.Regarding.Kind == "Pod" {
				said = append(said, e.Reason+": "+e.Message)
			}
		}
	}
	return said
}

func TestTheLongestDowntimeIsToldWhenSeveralAreTooLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one")
	inPlace(w.maintenance("a", drain, nil, "one"), 400)
	inPlace(w.maintenance("b", drain, nil, "one"), 900)
	inPlace(w.maintenance("c", drain, nil, "one"), 100)
	w.run("one", 1, 0, stays)
	got := w.warnings()
	if len(got) != 1 || !strings.Contains(got[0], "the node is away for 15m0s in b,") {
		t.Errorf("the pod is told %q, want the 15 minutes of b", got)
	}
}

// A pod stays only if everybody who drains its node lets it.
func TestAPodStaysOnlyIfEverybodyLetsIt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first, second int32
		depth         v1alpha1.PodType
		with          []func(*corev1.Pod)
		wantFirst     string
		wantSecond    string
		gone          bool
	}{
		"both keep it": {
			first: 300, second: 60, wantFirst: "one 0+0 Drained. 1 retained", wantSecond: "one 0+0 Drained. 1 retained",
		},
		"the longer one does not": {
			first: 600, second: 60, wantFirst: "one 0+1 Evacuating 0 retained", wantSecond: "one 0+0 Waiting for the pods that leave for first. 1 retained", gone: true,
		},
		"the shorter one does, and is older": {
			first: 60, second: 600, wantFirst: "one 0+0 Waiting for the pods that leave for second. 1 retained", wantSecond: "one 0+1 Evacuating 0 retained", gone: true,
		},
		"an ordinary one does not": {
			first: 300, wantFirst: "one 0+0 Waiting for the pods that leave for second. 1 retained", wantSecond: "one 0+1 Evacuating 0 retained", gone: true,
		},
		"an ordinary one that does not go so deep": {
			first: 300, depth: v1alpha1.PodTypeDefault, with: []func(*corev1.Pod){ofDaemonSet},
			wantFirst: "one 0+0 Drained. 1 retained", wantSecond: "one 0+0 Drained. 1 retained",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "one")
			w.runners.DaemonSets = true
			first, second := inPlace(w.maintenance("first", drain, nil, "one"), test.first), w.maintenance("second", drain, nil, "one")
			if test.second > 0 {
				inPlace(second, test.second)
			}
			second.Spec.DrainDepth = test.depth
			w.run("one", 1, 0, slices.Concat([]func(*corev1.Pod){stays}, test.with)...)
			w.passAndTell("one")
			if got := []string{retainedLine(first), retainedLine(second)}; !slices.Equal(got, []string{test.wantFirst, test.wantSecond}) {
				t.Errorf("the node is %q, want %q and %q", got, test.wantFirst, test.wantSecond)
			}
			if gone := len(w.evacuations) > 0; gone != test.gone {
				t.Errorf("the pod is asked to leave: %v, want %v", gone, test.gone)
			}
		})
	}
}

// retainedLine is the first node of a status without its targets.
func retainedLine(m *v1alpha1.NodeMaintenance) string {
	line, _, _ := strings.Cut(lines(m)[0], " [")
	return line + " " + strconv.Itoa(int(m.Status.NodeStatuses[0].PodsRetained)) + " retained"
}

// What was asked for is taken back as soon as it is not wanted any more.
func TestAnEvacuationIsWithdrawnWhenItsPodMayStay(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before func(m *v1alpha1.NodeMaintenance, pod *corev1.Pod)
		then   func(m *v1alpha1.NodeMaintenance, pod *corev1.Pod)
	}{
		"inPlace is added": {
			before: func(_ *v1alpha1.NodeMaintenance, pod *corev1.Pod) { stays(pod) },
			then:   func(m *v1alpha1.NodeMaintenance, _ *corev1.Pod) { inPlace(m, 300) },
		},
		"the label is added": {
			before: func(m *v1alpha1.NodeMaintenance, _ *corev1.Pod) { inPlace(m, 300) },
			then:   func(_ *v1alpha1.NodeMaintenance, pod *corev1.Pod) { stays(pod) },
		},
		"the downtime gets shorter": {
			before: func(m *v1alpha1.NodeMaintenance, pod *corev1.Pod) { inPlace(m, 301); stays(pod) },
			then:   func(m *v1alpha1.NodeMaintenance, _ *corev1.Pod) { inPlace(m, 300) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "one")
			m := w.maintenance("m", drain, nil, "one")
			pod := w.run("one", 1, 0)[0]
			test.before(m, pod)
			w.expectAsked("before", []*corev1.Pod{pod})
			test.then(m, pod)
			d := w.pass()
			if len(d.Nodes) != 1 || len(d.Nodes[0].Withdraw) != 1 || len(d.Nodes[0].Evacuate) > 0 {
				t.Fatalf("decided %+v, want the evacuation withdrawn", d.Nodes)
			}
			w.passAndTell("one")
			if got, want := retainedLine(m), "one 0+0 Drained. 1 retained"; got != want {
				t.Errorf("the node is %q, want %q", got, want)
			}
			m.Spec.InPlace = nil
			w.expectAsked("without inPlace it leaves after all", []*corev1.Pod{pod})
		})
	}
}

// An entry of a plan that selects pods which stay is passed at once, and orders
// those of them that have to leave.
func TestAPlanThatSelectsPodsThatStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one", "two")
	m := inPlace(w.maintenance("m", drain, []v1alpha1.DrainPlanEntry{entryFor("db", "Default", 1000), entry("Default", 1000)}, "one", "two"), 300)
	w.run("one", 2, 1000, stays, label("app", "db"))
	short := w.run("two", 1, 1000, stays, label("app", "db"), endures(10))
	web := w.run("one", 1, 1000, label("app", "web"))
	w.expectAsked("the one that does not endure it comes first", short)
	w.expectLines("it holds the plan up", m,
		"one 1+0 Waiting for node two. [Default 1000 app=db]", "two 0+1 Evacuating [Default 1000 app=db]")
	w.remove(short[0].UID)
	w.expectAsked("those that stay do not", web)
}

// A downtime that the API refuses is no downtime: nobody stays for it.
func TestADowntimeThatNobodyMeant(t *testing.T) {
	t.Parallel()
	for _, seconds := range []int32{0, -1, 3601, 100_000} {
		w := newWorld(t, "one")
		m := inPlace(w.maintenance("m", drain, nil, "one"), seconds)
		w.run("one", 1, 0, stays, endures(1_000_000))
		d := w.pass()
		want := "spec.inPlace.expectedDowntimeSeconds: must be from 1 to 3600, is " + strconv.Itoa(int(seconds))
		if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionBlocked); c == nil || c.Reason != v1alpha1.ReasonInvalidSpec || c.Message != want {
			t.Errorf("Blocked is %+v, want %q", c, want)
		}
		if len(d.Nodes) > 0 {
			t.Errorf("decided %+v, want nothing", d.Nodes)
		}
	}
}

// What there is to tell about a pod is told once, when it is first asked to leave.
func TestWhyAPodDoesNotStayIsToldOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one")
	m := w.maintenance("m", drain, []v1alpha1.DrainPlanEntry{entry("Default", 10)}, "one")
	inPlace(m, 600)
	first := w.run("one", 1, 0)
	w.run("one", 1, 5000, stays)
	if said := w.warnings(); len(said) > 0 {
		t.Errorf("told %q before it is its turn", said)
	}
	w.remove(first[0].UID)
	if said := w.warnings(); len(said) != 1 || !strings.HasPrefix(said[0], "TolerationTooShort: ") {
		t.Errorf("told %q, want why it does not stay", said)
	}
	w.now = w.now.Add(time.Hour)
	if said := w.warnings(); len(said) > 0 {
		t.Errorf("told %q again", said)
	}
}

// Budgets of a pod cannot make its node wait for a record that nobody can write: a
// pod under too many leaves like any other, and is told why.
func TestAPodUnderTooManyBudgetsLeaves(t *testing.T) {
	t.Parallel()
	for budgets, want := range map[int]outcome{
		16: {counts: [3]int32{0, 0, 1}, locks: true},
		17: {counts: [3]int32{0, 1, 0}, says: []string{
			"TooManyBudgets: The pod does not stay on node one: it is under 17 PodDisruptionBudgets, and a pod under more than 16 is not kept. Let fewer budgets select it.",
		}},
	} {
		t.Run(strconv.Itoa(budgets), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "one")
			m := inPlace(w.maintenance("m", drain, nil, "one"), 300)
			for i := range budgets {
				w.budget("db").Name = "db-" + strconv.Itoa(i)
				w.budgets[i].UID = types.UID(w.budgets[i].Name)
			}
			w.run("one", 1, 0, stays, label("app", "db"))
			var got outcome
			for range 3 {
				got.says = append(got.says, w.warnings()...)
			}
			s := m.Status.NodeStatuses[0]
			got.counts, got.locks = [3]int32{s.PodsPendingEvacuation, s.PodsEvacuating, s.PodsRetained}, w.records["one"] != nil
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

// Somebody has pods under 16 budgets each, more than a node can have locks for. It is
// their pods that leave, and not those of others; and who stays already goes on.
func TestWhoHasTheMostBudgetsLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one")
	inPlace(w.maintenance("m", drain, nil, "one"), 300)
	greedy := func(app string) {
		w.run("one", 1, 0, stays, label("app", app))
		for i := range 16 {
			w.budget(app).Name = app + "-" + strconv.Itoa(i)
			w.budgets[len(w.budgets)-1].UID = types.UID(app + "-" + strconv.Itoa(i))
		}
	}
	for i := range 16 {
		greedy("greedy-" + strconv.Itoa(i))
	}
	w.run("one", 1, 0, stays, label("app", "modest"))
	w.budget("modest")
	var said []string
	for range 3 {
		said = append(said, w.warnings()...)
	}
	want := []string{"TooManyBudgets: The pod does not stay on node one: more pods ask to stay there than the 512 pods under 256 PodDisruptionBudgets for which a node can have locks."}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("who leaves is told (-want +got):\n%s", diff)
	}
	for _, leaving := range w.evacuations {
		w.remove(leaving.Spec.PodRef.UID)
	}
	w.pass()
	spec := w.records["one"].Spec
	if len(spec.Pods) != 16 || len(spec.Budgets) != 15*16+1 || !slices.ContainsFunc(spec.Budgets, func(b v1alpha1.BudgetReference) bool { return b.Name == "modest" }) {
		t.Errorf("%d pods stay, under %d budgets", len(spec.Pods), len(spec.Budgets))
	}

	for i := range 16 {
		w.run("one", 1, 0, stays, label("app", "late-"+strconv.Itoa(i)))
		w.budget("late-" + strconv.Itoa(i))
	}
	w.pass()
	staying := w.records["one"].Spec.Pods
	greedyOnes := slices.DeleteFunc(slices.Clone(staying), func(pod v1alpha1.StayingPod) bool { return len(pod.BudgetUIDs) == 1 })
	if len(staying) != 16+15 || len(greedyOnes) != 15 {
		t.Errorf("%d pods stay, %d of them under many budgets; want those that did and the 15 that have room", len(staying), len(greedyOnes))
	}
}

// A record names at most 512 pods, those under budgets first.
func TestPodsWithoutBudgetsAreLeftOutOfALongRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one")
	inPlace(w.maintenance("m", drain, nil, "one"), 300)
	w.budget("db")
	w.run("one", 600, 0, stays)
	w.run("one", 3, 0, stays, label("app", "db"))
	w.pass()
	w.pass()
	if staying := w.records["one"].Spec.Pods; len(staying) != 3 || len(staying[0].BudgetUIDs) != 1 {
		t.Errorf("%d pods are recorded, want the 3 under a budget", len(staying))
	}
}
