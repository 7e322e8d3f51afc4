package preflight_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/preflight"
	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/golden"
)

// Each budget that matters says what it does and why, and those that hold pods up come first.
func TestBudgetsThatMatter(t *testing.T) {
	w := newWorld("one", "two", "three")
	w.free = roomy()
	for app, nodes := range map[string][]string{"slow": {"one", "one", "two"}, "never": {"one"}, "double": {"one"}, "idle": {"two"}, "free": {"one", "two"}} {
		w.replicas(app, nodes...)
	}
	w.budget("a-slow", "slow", atMost(1), 3, 2)
	w.budget("never", "never", atMost(0), 1, 1)
	w.budget("idle", "idle", atMost(0), 1, 1)
	w.budget("free", "free", atMost(1), 2, 1)
	w.budget("double", "double", atMost(1), 1, 0)
	w.budget("double-too", "double", atMost(1), 1, 0)
	w.replicas("locked", "one")
	w.budget("locked", "locked", atMost(1), 1, 0).Annotations = map[string]string{
		v1alpha1.LockAnnotation: `{"holder":"dba","acquiredAt":"2026-03-01T07:59:00Z","expiresAt":"2026-03-01T09:00:00Z"}`,
	}
	var lines []string
	for _, b := range w.forecast().Budgets {
		lines = append(lines, fmt.Sprintf("%s %s: %d allowed, %d pods, %d held", b.Name, b.Effect, b.Allowed, b.PodCount, b.HeldCount))
		golden.Message(t, string(b.Effect), b.Why)
		if b.Suggestion != "" {
			golden.Message(t, b.Suggestion)
		}
		if b.HeldCount > 0 && b.Suggestion == "" {
			t.Errorf("nothing is suggested for budget %s", b.Name)
		}
	}
	want := []string{
		"double Several: 1 allowed, 1 pods, 1 held",
		"double-too Several: 1 allowed, 1 pods, 1 held",
		"locked Locked: 1 allowed, 1 pods, 1 held",
		"never Never: 0 allowed, 1 pods, 1 held",
		"a-slow Slows: 1 allowed, 2 pods, 0 held",
	}
	difference.None(t, "budgets", want, lines)
}

// drains is another maintenance of these nodes.
func (w *world) drains(name string, stage v1alpha1.NodeMaintenanceStage, depth v1alpha1.PodType, nodes ...string) *v1alpha1.NodeMaintenance {
	m := &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(morning.Add(-3600e9))},
		Spec:       v1alpha1.NodeMaintenanceSpec{NodeSelector: named(nodes...), Stage: stage, DrainDepth: depth},
	}
	w.World.Maintenances = append(w.World.Maintenances, m)
	return m
}

func TestOtherMaintenancesOfTheNodes(t *testing.T) {
	w := newWorld("one", "two", "three")
	w.drain.Spec.NodeSelector = named("one", "two")
	w.pod("one", "web-0", of("ReplicaSet", "web"), priority(2000000000))
	w.pod("three", "stuck", of("ReplicaSet", "stuck"))
	w.budget("stuck", "stuck", atMost(0), 1, 1)
	w.drains("next-week", v1alpha1.StageIdle, "", "one")
	w.drains("cordoned", v1alpha1.StageCordon, "", "two")
	older := w.drains("older", v1alpha1.StageDrain, "", "one", "three")
	older.Status.StageStatuses = []v1alpha1.StageStatus{{Name: v1alpha1.StageDrain, StartTimestamp: &older.CreationTimestamp}}
	w.drains("elsewhere", v1alpha1.StageDrain, "", "three")
	f := w.forecast()
	var lines []string
	for _, m := range f.Meetings {
		lines = append(lines, fmt.Sprintf("%s (%s) on %v", m.Maintenance, m.Stage, m.Nodes))
		golden.Message(t, string(m.Stage), m.Message)
	}
	want := []string{
		"cordoned (Cordon) on [two]",
		"next-week (Idle) on [one]",
		"older (Drain) on [one]",
	}
	difference.None(t, "meetings", want, lines)
	// The pod of node three keeps the older one from the priority of the pod on node one.
	if got := f.Nodes[0]; got.LimitedBy != "older" || got.Pods[0].Outcome != preflight.OutcomeWaits {
		t.Errorf("node one is limited by %q and its pod %s, want it to wait for the older one", got.LimitedBy, got.Pods[0].Outcome)
	}
}

func TestASpecThatIsNotUnderstoodDoesNothing(t *testing.T) {
	w := newWorld("one")
	w.replicas("web", "one")
	w.drain.Spec.DrainDepth = "Everything"
	f := w.forecast()
	assertTold(t, f, "Unknown")
	w.drain.Spec.DrainDepth, w.drain.Spec.NodeSelector = "", named("nowhere")
	assertTold(t, w.forecast(), "Unknown")
}

func TestUnreadObjectsAreListed(t *testing.T) {
	w := newWorld("one", "two")
	w.replicas("web", "one")
	delete(w.World.Pods, "one")
	w.Unread = []preflight.Unread{{Kind: "Pod", Why: "forbidden"}}
	f := w.forecast()
	assertTold(t, f, "Unknown")
	if want := []preflight.Unread{{Kind: "Pod", Why: "forbidden", Consequence: "which pods there are"}}; !cmp.Equal(want, f.Unread) {
		t.Errorf("unread is %v, want %v", f.Unread, want)
	}
}

// The order in which objects were read makes no difference, and none of them is changed.
func TestTheOrderMakesNoDifference(t *testing.T) {
	w := newWorld("one", "two", "three", "four")
	w.free = map[string]int{"three": 3, "four": 1}
	w.drain.Spec.NodeSelector = named("one", "two")
	w.replicas("web", "one", "one", "two", "three")
	w.replicas("api", "one", "two", "two")
	w.pod("two", "db-0", of("StatefulSet", "db"))
	w.pod("one", "db-1", of("StatefulSet", "db"), finalizer)
	w.budget("web", "web", atMost(1), 4, 3)
	w.budget("api", "api", atLeast(2), 3, 2)
	w.budget("api-too", "api", atLeast(1), 3, 1)
	w.drains("older", v1alpha1.StageDrain, v1alpha1.PodTypeDefault, "one", "three")
	w.drains("later", v1alpha1.StageIdle, "", "two")
	unchanged := w.remember()
	want := w.forecast()
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 18))
		shuffle(r, w.World.Nodes)
		shuffle(r, w.World.Maintenances)
		shuffle(r, w.World.Budgets["shop"])
		for _, pods := range w.World.Pods {
			shuffle(r, pods)
		}
		if diff := cmp.Diff(want, w.forecast()); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
	if len(want.Budgets) != 3 || want.Total.MayBeBlocked == 0 || want.Total.Blocked == 0 {
		t.Errorf("the forecast is too simple to show anything: %+v", want.Total)
	}
	unchanged(t)
}

// remember returns a check that nothing has changed since.
func (w *world) remember() func(*testing.T) {
	before := map[runtime.Object]runtime.Object{}
	note := func(object runtime.Object) { before[object] = object.DeepCopyObject() }
	for i := range w.World.Nodes {
		note(w.World.Nodes[i])
	}
	for _, m := range append(w.World.Maintenances, w.drain) {
		note(m)
	}
	for _, b := range w.World.Budgets["shop"] {
		note(b)
	}
	for _, pods := range w.World.Pods {
		for i := range pods {
			note(pods[i].Object)
		}
	}
	return func(t *testing.T) {
		t.Helper()
		for now, was := range before {
			if diff := cmp.Diff(was, now); diff != "" {
				t.Errorf("an object that was given has changed (-was +is):\n%s", diff)
			}
		}
	}
}

func shuffle[T any](r *rand.Rand, all []T) {
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
}
