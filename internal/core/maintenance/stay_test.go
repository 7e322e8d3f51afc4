package maintenance_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
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
	const short = "TolerationTooShort"
	onlyNotReady := func(pod *corev1.Pod) { pod.Spec.Tolerations = pod.Spec.Tolerations[:1] }
	forever := func(pod *corev1.Pod) {
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	return map[string]stayCase{
		"a pod that asks to stay":                {with: with{stays}, downtime: 300, want: kept},
		"it asks in capitals":                    {with: with{stays, label(v1alpha1.OnUpgradeLabel, "Stay")}, downtime: 300, want: kept},
		"it endures more":                        {with: with{stays, endures(301)}, downtime: 300, want: kept},
		"it endures everything":                  {with: with{stays, forever}, downtime: 300, want: kept},
		"it endures a second too little":         {with: with{stays, endures(299)}, downtime: 300, want: telling(leaves, short)},
		"it endures nothing":                     {with: with{label(v1alpha1.OnUpgradeLabel, "stay")}, downtime: 300, want: telling(leaves, short)},
		"it endures one taint only":              {with: with{stays, onlyNotReady}, downtime: 300, want: telling(leaves, short)},
		"it does not ask":                        {with: with{endures(300)}, downtime: 300, want: leaves},
		"it asks for something else":             {with: with{stays, label(v1alpha1.OnUpgradeLabel, "wait")}, downtime: 300, want: telling(leaves, "OnUpgradeLabelIgnored")},
		"nobody comes back":                      {with: with{stays}, want: leaves},
		"nobody comes back, and it asks wrongly": {with: with{stays, label(v1alpha1.OnUpgradeLabel, "wait")}, want: leaves},
		"it is terminating":                      {with: with{stays, terminating}, downtime: 300, want: leaves},
		"it has finished":                        {with: with{stays, phase(corev1.PodSucceeded)}, downtime: 300},
		"it is to complete":                      {with: with{stays, label(v1alpha1.DrainLabel, "wait-completed")}, downtime: 300, want: waits},
		"it is skipped":                          {with: with{stays, label(v1alpha1.DrainLabel, "skip")}, downtime: 300, want: retained},
		"a rule that nobody understands":         {with: with{stays, label("app", "odd")}, downtime: 300, want: waits},
		"of a DaemonSet":                         {with: with{stays, ofDaemonSet}, downtime: 300, runners: maintenance.Runners{DaemonSets: true}, want: kept},
		"of a DaemonSet, and too short":          {with: with{stays, ofDaemonSet, endures(1)}, downtime: 300, runners: maintenance.Runners{DaemonSets: true}, want: telling(leaves, short)},
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
				said = append(said, e.Reason)
			}
		}
	}
	return said
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

// What there is to tell about a pod is told once, when it is first asked to leave.
func TestRefusedStayIsReportedOnce(t *testing.T) {
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
	if said := w.warnings(); len(said) != 1 || said[0] != "TolerationTooShort" {
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
		17: {counts: [3]int32{0, 1, 0}, says: []string{"TooManyBudgets"}},
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
func TestOwnerWithMostBudgetsLeaves(t *testing.T) {
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
	want := []string{"TooManyBudgets"}
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
