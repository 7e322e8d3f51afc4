package nodemaintenance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/test/fault"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// world is an API server and a clock that only moves when it is told to.
type world struct {
	t     *testing.T
	api   *fault.Server
	clock *testingclock.FakeClock
	told  told
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	return &world{t: t, api: fault.NewServer(t, objects...), clock: testingclock.NewFakeClock(noon), told: told{}}
}

// tell tells a manager of everything that there is, as its watches do at its start, and
// of what it was told of and is gone.
func (w *world) tell(r *reconciler) {
	w.t.Helper()
	w.must(w.told.tell(w.t.Context(), w.api, r))
}

// reconcile tells a manager of everything and has it run the passes that are due,
// until none is.
func (w *world) reconcile(r *reconciler) {
	w.t.Helper()
	w.tell(r)
	w.must(runDue(w.t.Context(), r, w.clock))
}

// told is what managers were told of nodes and maintenances.
type told map[*reconciler]map[group.Member]client.Object

func (t told) tell(ctx context.Context, reader client.Reader, r *reconciler) error {
	var maintenances v1alpha1.NodeMaintenanceList
	var nodes corev1.NodeList
	var records v1alpha1.DrainRecordList
	var evacuations v1alpha1.EvacuationList
	var agents v1alpha1.NodeAgentList
	for _, list := range []client.ObjectList{&maintenances, &nodes, &records, &evacuations, &agents} {
		if err := reader.List(ctx, list); err != nil {
			return err
		}
	}
	here := map[group.Member]client.Object{}
	touch := func(_ time.Duration, concerned []group.Member) { r.schedule.touch(r.clock.Now(), 0, concerned...) }
	for _, one := range kube.Pointers(maintenances.Items) {
		here[group.Maintenance(one.Name)] = one
		touch(r.maintenanceMatters(nil, one))
	}
	for _, one := range kube.Pointers(nodes.Items) {
		here[group.Node(one.Name)] = one
		touch(r.nodeMatters(nil, one))
	}
	for member, gone := range t[r] {
		if here[member] != nil {
			continue
		}
		switch one := gone.(type) {
		case *v1alpha1.NodeMaintenance:
			touch(r.maintenanceMatters(one, nil))
		case *corev1.Node:
			touch(r.nodeMatters(one, nil))
		}
	}
	t[r] = here
	for _, one := range kube.Pointers(records.Items) {
		touch(recordMatters(nil, one))
	}
	for _, one := range kube.Pointers(agents.Items) {
		touch(r.agentMatters(nil, one))
	}
	for _, one := range kube.Pointers(evacuations.Items) {
		touch(r.evacuationMatters(nil, one))
	}
	return nil
}

// runDue runs the passes that are due until none is.
func runDue(ctx context.Context, r *reconciler, clock *testingclock.FakeClock) error {
	for range 100 {
		due := r.dueBy(clock.Now())
		if len(due) == 0 {
			return nil
		}
		for _, member := range due {
			if _, err := r.Reconcile(ctx, member); err != nil {
				return err
			}
		}
		clock.Step(atOnce)
	}
	return errors.New("there is no end of passes that are due")
}

// dueBy are the members that are due.
func (r *reconciler) dueBy(now time.Time) []group.Member {
	r.schedule.mu.Lock()
	defer r.schedule.mu.Unlock()
	var due []group.Member
	for member, at := range r.schedule.due {
		if !at.After(now) {
			due = append(due, member)
		}
	}
	return due
}

// nextDue is when the next pass is due over anything; 0 is never.
func (w *world) nextDue(r *reconciler) time.Duration {
	r.schedule.mu.Lock()
	defer r.schedule.mu.Unlock()
	var next time.Duration
	for _, at := range r.schedule.due {
		next = kube.Soonest(next, max(at.Sub(w.clock.Now()), 1))
	}
	return next
}

// manager is a reconciler without any memory.
func (w *world) manager() *reconciler {
	r := newReconciler(w.api.Manager, w.api.Emit, w.clock, newMetrics(prometheus.NewRegistry()))
	r.namespace = ownNamespace
	return r
}

// act has a manager do what was decided, and returns what has come of it.
func (w *world) act(r *reconciler, all records, decided ...maintenance.NodeDecision) *writer {
	acting := &writer{reconciler: r, group: &group.Group{Maintenances: []string{"upgrade"}}}
	acting.act(w.t.Context(), decided, all)
	return acting
}

func (w *world) get(object client.Object, namespace, name string) {
	w.t.Helper()
	if err := w.api.Get(w.t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, object); err != nil {
		w.t.Fatalf("get %T %s: %v", object, name, err)
	}
}

func (w *world) node(name string) *corev1.Node {
	w.t.Helper()
	var node corev1.Node
	w.get(&node, "", name)
	return &node
}

func (w *world) maintenance(name string) *v1alpha1.NodeMaintenance {
	w.t.Helper()
	var maintenance v1alpha1.NodeMaintenance
	w.get(&maintenance, "", name)
	return &maintenance
}

func (w *world) evacuations() []v1alpha1.Evacuation {
	w.t.Helper()
	var list v1alpha1.EvacuationList
	if err := w.api.List(w.t.Context(), &list); err != nil {
		w.t.Fatalf("list evacuations: %v", err)
	}
	return list.Items
}

func aNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{"pool": "old"},
	}}
}

func aPod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{"app": "shop"}},
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// ownNamespace is where Ebbtide runs.
const ownNamespace = "ebbtide-system"

// aRule retains the pods of an application, on all nodes under maintenance.
func aRule(namespace, name, app string) *v1alpha1.MachineDrainRule {
	return &v1alpha1.MachineDrainRule{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.MachineDrainRuleSpec{
			Drain: v1alpha1.MachineDrainRuleDrain{Behavior: v1alpha1.DrainBehaviorSkip},
			Nodes: []v1alpha1.MachineDrainRuleNodeSelector{{Selector: &metav1.LabelSelector{}}},
			Pods: []v1alpha1.MachineDrainRulePodSelector{{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
			}},
		},
	}
}

// aMaintenance drains the nodes of the pool.
func aMaintenance(name, pool string) *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-of-" + name), Generation: 1, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
		},
		Spec: v1alpha1.NodeMaintenanceSpec{
			Stage: v1alpha1.StageDrain,
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{pool},
				}},
			}}},
		},
	}
}
