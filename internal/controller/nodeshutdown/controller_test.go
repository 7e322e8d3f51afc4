package nodeshutdown

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/fault"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

type world struct {
	t     *testing.T
	api   *fault.Server
	clock *testingclock.FakeClock
	r     *reconciler
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, clock: testingclock.NewFakeClock(noon)}
	w.api = fault.NewServer(t,
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))},
		}}},
		&v1alpha1.NodeAgent{ObjectMeta: metav1.ObjectMeta{Name: "one"}})
	w.restart()
	return w
}

func (w *world) restart() {
	w.r = newReconciler(w.api.Manager, w.api.Emit, func() (time.Time, bool) { return w.clock.Now(), false }, w.clock)
}

func (w *world) says(phase v1alpha1.NodeShutdownPhase) (again time.Duration, err error) {
	w.t.Helper()
	agent := &v1alpha1.NodeAgent{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Name: "one"}, agent); err != nil {
		w.t.Fatal(err)
	}
	agent.Status.Shutdown = &v1alpha1.NodeShutdown{Phase: phase, Mode: v1alpha1.ShutdownModeDrain, Type: "reboot"}
	if err := w.api.Status().Update(w.t.Context(), agent); err != nil {
		w.t.Fatal(err)
	}
	result, err := w.r.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "one"}})
	return result.RequeueAfter, err
}

func (w *world) finish() {
	w.t.Helper()
	m := &v1alpha1.NodeMaintenance{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Name: "node-shutdown-one"}, m); err != nil {
		w.t.Fatal(err)
	}
	m.Finalizers = nil
	if err := w.api.Update(w.t.Context(), m); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) assertWrites(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.api.Writes()); diff != "" {
		w.t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestAShutdownBecomesAMaintenanceAndEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, phase := range []v1alpha1.NodeShutdownPhase{
		v1alpha1.ShutdownPreparing, v1alpha1.ShutdownPreparing, v1alpha1.ShutdownReleased, v1alpha1.ShutdownCancelled, v1alpha1.ShutdownCancelled,
	} {
		w.restart()
		if _, err := w.says(phase); err != nil {
			t.Fatal(err)
		}
	}
	w.assertWrites("create NodeMaintenance node-shutdown-one", "delete NodeMaintenance node-shutdown-one")
	if diff := cmp.Diff([]string{
		"NodeShutdownDetected on NodeMaintenance/node-shutdown-one: Node one is shutting down (reboot).",
		"NodeShutdownEnded on NodeMaintenance/node-shutdown-one: The shutdown was cancelled.",
	}, w.api.Events()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// An agent that says something else every second for ten minutes gets a maintenance a
// minute at the most.
func TestAnAgentThatFlaps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var again time.Duration
	for second := range 600 {
		phase := []v1alpha1.NodeShutdownPhase{v1alpha1.ShutdownPreparing, v1alpha1.ShutdownCancelled}[second%2]
		made := len(w.api.Writes())
		paused, err := w.says(phase)
		if err != nil {
			t.Fatal(err)
		}
		again = max(again, paused)
		if len(w.api.Writes()) > made && phase == v1alpha1.ShutdownCancelled {
			w.finish()
		}
		w.clock.Step(time.Second)
	}
	made := 0
	for _, write := range w.api.Writes() {
		made += strings.Count(write, "create")
	}
	if made < 5 || made > 16 || again != time.Minute {
		t.Errorf("%d maintenances were made in 10 minutes, with pauses of up to %s; want one a minute in the end", made, again)
	}
}

// What is refused is tried again, and what somebody else was quicker with is no error.
func TestAMaintenanceThatCannotBeMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.api.Refuse = func(string) error { return errors.New("quota exceeded") }
	if _, err := w.says(v1alpha1.ShutdownPreparing); err == nil || !strings.Contains(err.Error(), "quota exceeded") {
		t.Errorf("error is %v, want the words of the API server", err)
	}
	w.api.Refuse = nil
	if _, err := w.says(v1alpha1.ShutdownPreparing); err != nil {
		t.Errorf("tried again: %v", err)
	}
	w.assertWrites("create NodeMaintenance node-shutdown-one")
}

// A manager that dies behind any of its writes is continued by the next one.
func TestAManagerThatDies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.api.KillAfter(1)
	_, _ = w.says(v1alpha1.ShutdownPreparing) // It dies.
	w.api.Revive()
	w.restart()
	if _, err := w.says(v1alpha1.ShutdownPreparing); err != nil {
		t.Fatal(err)
	}
	w.assertWrites("create NodeMaintenance node-shutdown-one")
}

func TestObjectsThatAreObserved(t *testing.T) {
	t.Parallel()
	node := func(edit func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
		}}}
		edit(n)
		return n
	}
	plain := node(func(*corev1.Node) {})
	for name, test := range map[string]struct {
		old, now *corev1.Node
		want     int
	}{
		"a heartbeat": {plain, node(func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.Now() }), 0},
		"a boot":      {plain, node(func(n *corev1.Node) { n.Status.NodeInfo.BootID = "b" }), 1},
		"not ready":   {plain, node(func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }), 1},
		"gone":        {plain, nil, 1},
	} {
		if got := ofNode(t.Context(), test.old, test.now); len(got) != test.want {
			t.Errorf("%s concerns %v, want %d", name, got, test.want)
		}
	}
	agent := func(edit func(*v1alpha1.NodeAgentStatus)) *v1alpha1.NodeAgent {
		a := &v1alpha1.NodeAgent{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
		edit(&a.Status)
		return a
	}
	silent := agent(func(*v1alpha1.NodeAgentStatus) {})
	for name, test := range map[string]struct {
		old, now *v1alpha1.NodeAgent
		want     int
	}{
		"of static pods":     {silent, agent(func(s *v1alpha1.NodeAgentStatus) { s.HeldCount = 1 }), 0},
		"of its boot":        {silent, agent(func(s *v1alpha1.NodeAgentStatus) { s.BootID = "b" }), 1},
		"of its shutdown":    {silent, agent(func(s *v1alpha1.NodeAgentStatus) { s.Shutdown = &v1alpha1.NodeShutdown{} }), 1},
		"for the first time": {nil, silent, 1},
	} {
		if got := ofAgent(t.Context(), test.old, test.now); len(got) != test.want {
			t.Errorf("what an agent says %s concerns %v, want %d", name, got, test.want)
		}
	}
}

func (w *world) until(ahead time.Duration) (again time.Duration, err error) {
	w.t.Helper()
	agent := &v1alpha1.NodeAgent{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Name: "one"}, agent); err != nil {
		w.t.Fatal(err)
	}
	agent.Status.Shutdown = &v1alpha1.NodeShutdown{
		Phase: v1alpha1.ShutdownPreparing, Mode: v1alpha1.ShutdownModeDrain, Type: "reboot",
		DeadlineTime: &metav1.Time{Time: w.clock.Now().Add(ahead)}, DelaySeconds: 60,
	}
	if err := w.api.Status().Update(w.t.Context(), agent); err != nil {
		w.t.Fatal(err)
	}
	result, err := w.r.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "one"}})
	return result.RequeueAfter, err
}

func (w *world) deadline() string {
	w.t.Helper()
	m := &v1alpha1.NodeMaintenance{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Name: "node-shutdown-one"}, m); err != nil {
		w.t.Fatal(err)
	}
	if m.Spec.Deadline == nil {
		return "none"
	}
	return m.Spec.Deadline.Time.UTC().Format(time.TimeOnly)
}

// A shutdown that is put off takes its deadline with it, though somebody else has changed
// the maintenance meanwhile.
func TestADeadlineFollowsItsNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.until(time.Minute); err != nil || w.deadline() != "12:01:00" {
		t.Fatalf("until %s, %v, want 12:01:00", w.deadline(), err)
	}
	if again, err := w.until(5 * time.Minute); err != nil || again != time.Second || w.deadline() != "12:01:00" {
		t.Errorf("put off at once: until %s, again in %s, %v; want 12:01:00 for a second", w.deadline(), again, err)
	}
	w.clock.Step(2 * time.Second)
	w.api.Refuse = func(request string) error {
		if !strings.HasPrefix(request, "patch") {
			return nil
		}
		return apierrors.NewConflict(schema.GroupResource{Resource: "nodemaintenances"}, "node-shutdown-one", errors.New("it has changed"))
	}
	if again, err := w.until(5 * time.Minute); err != nil || again != time.Second {
		t.Errorf("decided on old state: again in %s, %v; want a second", again, err)
	}
	w.api.Refuse = nil
	if _, err := w.until(5 * time.Minute); err != nil || w.deadline() != "12:05:02" {
		t.Errorf("put off: until %s, %v; want 12:05:02", w.deadline(), err)
	}
	if diff := cmp.Diff([]string{
		"NodeShutdownDetected on NodeMaintenance/node-shutdown-one: Node one is shutting down (reboot); its pods have until 2026-03-01T12:01:00Z.",
		"NodeShutdownDetected on NodeMaintenance/node-shutdown-one: Node one is shutting down (reboot); its pods have until 2026-03-01T12:05:02Z.",
	}, w.api.Events()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// An agent that names another time every second for ten minutes costs a write a minute.
func TestAnAgentThatCannotSayWhen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 600 {
		if _, err := w.until(time.Minute); err != nil {
			t.Fatal(err)
		}
		w.clock.Step(time.Second)
	}
	if writes := len(w.api.Writes()); writes < 5 || writes > 16 {
		t.Errorf("the maintenance was written %d times in 10 minutes, want once a minute in the end", writes)
	}
}

// A node that has been Ready all the time, as fast as it has booted, is given back half a
// minute after that was seen; by another manager half a minute after it looked first.
func TestANodeIsWatchedAfterItsBoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	phases := []v1alpha1.NodeShutdownPhase{v1alpha1.ShutdownPreparing, v1alpha1.ShutdownReleased, v1alpha1.ShutdownNone}
	want := []time.Duration{0, 0, 30 * time.Second}
	for i, phase := range phases {
		w.clock.Step(time.Minute)
		if again, err := w.says(phase); err != nil || again != want[i] {
			t.Fatalf("%s: again in %s, %v, want %s", phase, again, err, want[i])
		}
	}
	w.clock.Step(20 * time.Second)
	if again, err := w.says(v1alpha1.ShutdownNone); err != nil || again != 10*time.Second {
		t.Errorf("20 s later: again in %s, %v, want 10s", again, err)
	}
	w.restart()
	if again, err := w.says(v1alpha1.ShutdownNone); err != nil || again != 30*time.Second {
		t.Errorf("another manager: again in %s, %v, want 30s", again, err)
	}
	w.clock.Step(30 * time.Second)
	if _, err := w.says(v1alpha1.ShutdownNone); err != nil {
		t.Fatal(err)
	}
	w.finish()
	w.assertWrites("create NodeMaintenance node-shutdown-one", "delete NodeMaintenance node-shutdown-one")
	// What was seen does not outlive it.
	if _, err := w.says(v1alpha1.ShutdownNone); err != nil {
		t.Fatal(err)
	}
	w.r.observations.Range(func(node, _ any) bool {
		t.Errorf("the observation of %s stays", node)
		return true
	})
}
