package rollout

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/test/fault"
	"ebbtide.dev/ebbtide/test/patience"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// world is an API server and a clock that only moves when a test moves it.
type world struct {
	t     *testing.T
	api   *fault.Server
	clock *testingclock.FakeClock
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	return &world{t: t, api: fault.NewServer(t, objects...), clock: testingclock.NewFakeClock(noon)}
}

// replica is a manager with a cache of its own, which shows what it had when it was synced.
type replica struct {
	*reconciler

	w *world
	// stuck are the objects whose writes hang until they are removed.
	mu    sync.Mutex
	stuck map[string]chan struct{}

	// lives is the number of writes until it is dead, of which the last one has no answer; negative is
	// without end.
	lives int
	// created is called after each creation.
	created func()
	// shown and the next three are what the cache shows.
	shown             v1alpha1.NodeRolloutList
	shownMaintenances v1alpha1.NodeMaintenanceList
	shownNodes        corev1.NodeList
	// jobsUnknown is true while the cache of Jobs is not synced.
	jobsUnknown  bool
	shownBudgets v1alpha1.NodeBudgetList
	// seen are the snapshots of its decisions.
	seen []*core.Snapshot
}

// manager returns a manager without memory, whose cache is synced. Its decisions are those of a
// function, or else of the core.
func (w *world) manager(decide func(*core.Snapshot) *core.Decision) *replica {
	w.t.Helper()
	m := &replica{w: w, stuck: map[string]chan struct{}{}, lives: -1}
	c := interceptor.NewClient(w.api.Manager, interceptor.Funcs{
		List: m.cached, Create: m.create,
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return m.write(func() error { return c.Patch(ctx, object, patch, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return m.write(func() error { return c.Delete(ctx, object, options...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			m.wait("status of " + object.GetName())
			return m.write(func() error { return c.SubResource(sub).Patch(ctx, object, patch, options...) })
		},
	})
	m.reconciler = newReconciler(c, w.api.Manager, w.clock, newMetrics(prometheus.NewRegistry()))
	m.emit = w.api.Emit
	m.jobs = []jobCache{{Reader: w.api, namespace: "ops", synced: func() bool { return !m.jobsUnknown }}}
	m.machines = core.AllMachineKinds()
	if decide == nil {
		decide = core.Decide
	}
	m.decide = func(s *core.Snapshot) *core.Decision {
		m.seen = append(m.seen, s)
		return decide(s)
	}
	m.sync()
	return m
}

// cached lists what the cache shows.
func (m *replica) cached(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
	switch into := list.(type) {
	case *v1alpha1.NodeRolloutList:
		m.shown.DeepCopyInto(into)
	case *v1alpha1.NodeMaintenanceList:
		m.shownMaintenances.DeepCopyInto(into)
	case *v1alpha1.NodeBudgetList:
		m.shownBudgets.DeepCopyInto(into)
	case *corev1.NodeList:
		m.shownNodes.DeepCopyInto(into)
	default:
		return c.List(ctx, list, options...)
	}
	return nil
}

// create hangs if the object is stuck.
func (m *replica) create(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
	m.wait(object.GetName())
	if object.GetUID() == "" { // The server gives none.
		object.SetUID(types.UID("uid-of-" + object.GetName()))
	}
	return m.write(func() error {
		err := c.Create(ctx, object, options...)
		if m.created != nil {
			m.created()
		}
		return err
	})
}

// wait returns when a write does not hang.
func (m *replica) wait(what string) {
	m.mu.Lock()
	stuck := m.stuck[what]
	m.mu.Unlock()
	if stuck != nil {
		<-stuck
	}
}

// write makes a write, unless the manager is dead.
func (m *replica) write(do func() error) error {
	m.mu.Lock()
	if m.lives == 0 {
		m.mu.Unlock()
		return fault.ErrKilled
	}
	m.lives--
	last := m.lives == 0
	m.mu.Unlock()
	if err := do(); !last {
		return err
	}
	return fault.ErrKilled
}

// dead reports whether it makes no more writes.
func (m *replica) dead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lives == 0
}

// sync has the cache show everything that there is.
func (m *replica) sync() {
	m.w.t.Helper()
	before := m.shownMaintenances.DeepCopy()
	m.shownMaintenances, m.shown, m.shownNodes = v1alpha1.NodeMaintenanceList{}, v1alpha1.NodeRolloutList{}, corev1.NodeList{}
	m.shownBudgets = v1alpha1.NodeBudgetList{}
	for _, list := range []client.ObjectList{&m.shown, &m.shownMaintenances, &m.shownNodes, &m.shownBudgets} {
		m.w.must(m.w.api.List(m.w.t.Context(), list))
	}
	here := map[types.UID]bool{}
	for i := range m.shownMaintenances.Items {
		here[m.shownMaintenances.Items[i].UID] = true
	}
	for i := range before.Items {
		if gone := &before.Items[i]; !here[gone.UID] {
			m.reconciler.maintenances.gone(gone)
		}
	}
}

// pass has it decide once and make all writes. It returns when the next decision is due.
func (m *replica) pass() time.Duration {
	m.w.t.Helper()
	due := m.decideOnce()
	m.flights.wait()
	return due
}

// decideOnce has it decide, and returns before the writes end.
func (m *replica) decideOnce() time.Duration {
	m.w.t.Helper()
	m.w.clock.Step(decisionInterval)
	result, err := m.Reconcile(m.w.t.Context(), pass{})
	m.w.must(err)
	return result.RequeueAfter
}

// last is the snapshot of its last decision.
func (m *replica) last() *core.Snapshot { return m.seen[len(m.seen)-1] }

// hang has the creation of an object, or the write of a status, hang until the function that it returns
// is called.
func (m *replica) hang(name string) (release func()) {
	stuck := make(chan struct{})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stuck[name] = stuck
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.stuck, name)
		close(stuck)
	}
}

// await waits until a condition holds.
func (w *world) await(what string, condition func() bool) {
	w.t.Helper()
	patience.Eventually(w.t, what, func(context.Context) (string, bool) { return "not yet", condition() })
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) rollout(name string) *v1alpha1.NodeRollout {
	w.t.Helper()
	found := &v1alpha1.NodeRollout{}
	w.must(w.api.Get(w.t.Context(), client.ObjectKey{Name: name}, found))
	return found
}

// maintenance returns a NodeMaintenance; nil if there is none.
func (w *world) maintenance(name string) *v1alpha1.NodeMaintenance {
	w.t.Helper()
	found := &v1alpha1.NodeMaintenance{}
	err := w.api.Get(w.t.Context(), client.ObjectKey{Name: name}, found)
	w.must(client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return found
}

func aRollout(name string) *v1alpha1.NodeRollout {
	return &v1alpha1.NodeRollout{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), Generation: 1, CreationTimestamp: metav1.NewTime(noon)},
		Spec: v1alpha1.NodeRolloutSpec{
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "rollout", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}},
			}}},
			State: v1alpha1.RolloutRunning,
		},
	}
}

func aMaintenance(name string) *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{v1alpha1.RolloutLabel: "kernel"}}}
}

// starting decides that each rollout starts one node, whose NodeMaintenance bears the name of the
// rollout, until it exists.
func starting(s *core.Snapshot) *core.Decision {
	d := &core.Decision{}
	exists := map[string]bool{}
	for _, m := range s.Maintenances {
		exists[m.Name] = true
	}
	for _, one := range s.Rollouts {
		decided := core.RolloutDecision{Rollout: one, Status: v1alpha1.NodeRolloutStatus{
			Working: []v1alpha1.RolloutNode{{Name: "node-of-" + one.Name, NodeMaintenanceName: one.Name}},
		}}
		if _, refused := s.Refused[one.Name]; !exists[one.Name] && !s.Unknown[one.Name] && !refused {
			m := aMaintenance(one.Name)
			m.UID = ""
			decided.Starts = []*v1alpha1.NodeMaintenance{m}
		}
		d.Rollouts = append(d.Rollouts, decided)
	}
	return d
}
