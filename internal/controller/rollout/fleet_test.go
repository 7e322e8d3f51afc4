package rollout

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/test/fault"
)

// fleet is a world with nodes whose NodeMaintenances drain, and whose work is done, one step at a
// time.
type fleet struct {
	*world
	limit int
	// blocked are the nodes whose pods do not leave.
	blocked map[string]bool
	// failing are the nodes whose Job fails.
	failing map[string]bool
	// resting is true if no work is done on drained nodes.
	resting bool
	// provide is what the provider of machines does at each time.
	provide func()
	// gate answers the questions of gates; nil if there are none.
	gate respond
	// midway is called once, when one node is done and another is drained.
	midway func(*v1alpha1.NodeRollout)

	mu sync.Mutex
	// broken is the first moment at which too many nodes were unavailable.
	broken string
}

// newFleet returns a fleet that a rollout upgrades to v1.37.1.
func newFleet(t *testing.T, nodes, limit int) *fleet {
	t.Helper()
	rollout := aRollout("kernel")
	rollout.Spec.Target = &v1alpha1.CompleteWhen{KubeletVersion: ">=1.37.0"}
	rollout.Spec.MaxUnavailable = new(intstr.FromInt32(int32(limit)))
	rollout.Spec.Failure.DrainTimeoutSeconds = new(int32(60))
	objects := []client.Object{rollout}
	for i := range nodes {
		objects = append(objects, aNode(fmt.Sprintf("node-%03d", i)))
	}
	return &fleet{world: newWorld(t, objects...), limit: limit, blocked: map[string]bool{}}
}

func aNode(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{"rollout": "kernel"}},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: "v1.36.4"},
		},
	}
}

func nodeOf(m *v1alpha1.NodeMaintenance) string {
	return m.Spec.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values[0]
}

// advance moves each NodeMaintenance that a function picks one step further.
func (f *fleet) advance(picks func(*v1alpha1.NodeMaintenance) bool) {
	f.t.Helper()
	var all v1alpha1.NodeMaintenanceList
	f.must(f.api.List(f.t.Context(), &all))
	for _, m := range kube.Pointers(all.Items) {
		if !maintenance.Finished(m) && picks(m) {
			f.step(m)
		}
	}
	f.runJobs()
}

func all(*v1alpha1.NodeMaintenance) bool { return true }

func (f *fleet) step(m *v1alpha1.NodeMaintenance) {
	f.t.Helper()
	deadline, drained := m.Spec.Deadline, meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionDrained)
	late := deadline != nil && !drained && !deadline.Time.After(f.clock.Now())
	switch {
	case maintenance.Stage(m) == v1alpha1.StageComplete && drained:
		f.end(m, metav1.ConditionTrue, "Done")
	case maintenance.Stage(m) == v1alpha1.StageComplete && late:
		f.end(m, metav1.ConditionFalse, v1alpha1.ReasonDeadlinePassed)
	case maintenance.Stage(m) == v1alpha1.StageComplete:
		f.end(m, metav1.ConditionFalse, v1alpha1.ReasonCancelled)
	case f.awaitsJob(m):
	case late || drained && !f.resting && f.upgraded(nodeOf(m)):
		f.setStage(m, v1alpha1.StageComplete)
	case !drained && f.blocked[nodeOf(m)]:
	case !drained:
		f.conclude(m, v1alpha1.ConditionDrained, metav1.ConditionTrue, "Drained")
		f.must(f.api.Status().Update(f.t.Context(), m))
	}
}

// upgraded does the work on a drained node.
func (f *fleet) upgraded(name string) bool {
	f.t.Helper()
	node := &corev1.Node{}
	f.must(f.api.Get(f.t.Context(), client.ObjectKey{Name: name}, node))
	node.Status.NodeInfo.KubeletVersion = "v1.37.1"
	f.must(f.api.Status().Update(f.t.Context(), node))
	return true
}

// setStage is a write that may come too late.
func (f *fleet) setStage(m *v1alpha1.NodeMaintenance, stage v1alpha1.NodeMaintenanceStage) {
	f.t.Helper()
	m.Spec.Stage = stage
	f.must(kube.WithoutStale(f.t.Context(), f.api.Update(f.t.Context(), m)))
}

// end gives the node back.
func (f *fleet) end(m *v1alpha1.NodeMaintenance, succeeded metav1.ConditionStatus, reason string) {
	f.t.Helper()
	f.conclude(m, v1alpha1.ConditionSucceeded, succeeded, reason)
	f.conclude(m, v1alpha1.ConditionReturned, succeeded, reason)
	m.Status.StageStatuses = []v1alpha1.StageStatus{{Name: v1alpha1.StageComplete}}
	f.must(kube.WithoutStale(f.t.Context(), f.api.Status().Update(f.t.Context(), m)))
}

func (f *fleet) conclude(m *v1alpha1.NodeMaintenance, condition string, status metav1.ConditionStatus, reason string) {
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(f.clock.Now()),
	})
}

// watch notes when too many nodes are under maintenance, or one is twice.
func (f *fleet) watch() {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all v1alpha1.NodeMaintenanceList
	if err := f.api.List(f.t.Context(), &all); err != nil {
		f.broken = cmp.Or(f.broken, err.Error())
		return
	}
	live := map[string]int{}
	for _, m := range kube.Pointers(all.Items) {
		if !maintenance.Finished(m) {
			live[nodeOf(m)]++
		}
	}
	for node, count := range live {
		if count > 1 || len(live) > f.limit {
			f.broken = cmp.Or(f.broken, fmt.Sprintf("%d nodes are under maintenance, %s by %d NodeMaintenances", len(live), node, count))
		}
	}
}

// complete returns true if each rollout says so, or is gone.
func (f *fleet) complete() bool {
	f.t.Helper()
	return !slices.ContainsFunc(f.rollouts(), func(r v1alpha1.NodeRollout) bool {
		return !meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionRolloutComplete)
	})
}

func (f *fleet) rollouts() []v1alpha1.NodeRollout {
	f.t.Helper()
	var list v1alpha1.NodeRolloutList
	f.must(f.api.List(f.t.Context(), &list))
	return list.Items
}

// intervene does what happens midway.
func (f *fleet) intervene() {
	f.t.Helper()
	for _, r := range f.rollouts() {
		drained := func(n v1alpha1.RolloutNode) bool { return n.Reason == v1alpha1.RolloutNodeDrained }
		if f.midway != nil && r.Status.DoneCount > 0 && slices.ContainsFunc(r.Status.Working, drained) {
			f.midway(&r)
			f.midway, f.resting = nil, true
		}
	}
}

// managed returns a new manager.
func (f *fleet) managed() *replica {
	f.t.Helper()
	m := f.manager(nil)
	if f.gate != nil {
		m.questions.gate = f.gate
	}
	return m
}

// run has managers go on, each new one when the last one was killed, until the rollout is complete.
func (f *fleet) run() {
	f.t.Helper()
	m := f.managed()
	for range 1000 {
		if f.api.Killed() {
			f.api.Revive()
			m = f.managed()
		}
		m.sync()
		f.clock.Step(decisionInterval)
		if _, err := m.Reconcile(f.t.Context(), pass{}); err != nil && !errors.Is(err, fault.ErrKilled) {
			f.t.Fatal(err)
		}
		m.flights.wait()
		m.questions.wait()
		f.watch()
		if f.complete() {
			return
		}
		f.intervene()
		f.clock.Step(5 * time.Second)
		f.advance(all)
		if f.provide != nil {
			f.provide()
		}
	}
	f.t.Fatalf("there is no end: %+v", f.rollouts())
}

// state returns everything but times.
func (f *fleet) state() []string {
	f.t.Helper()
	var state []string
	for _, r := range f.rollouts() {
		state = append(state, r.Status.Summary, fmt.Sprint(r.Finalizers))
		for _, condition := range r.Status.Conditions {
			state = append(state, fmt.Sprint(condition.Type, condition.Status, condition.Reason))
		}
		for _, node := range slices.Concat(r.Status.Working, r.Status.Failed) {
			state = append(state, fmt.Sprint(node.Name, node.NodeMaintenanceName, node.AttemptCount, node.Reason))
		}
	}
	var maintenances v1alpha1.NodeMaintenanceList
	f.must(f.api.List(f.t.Context(), &maintenances))
	for _, m := range kube.Pointers(maintenances.Items) {
		ended := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionSucceeded)
		if ended == nil {
			ended = &metav1.Condition{}
		}
		state = append(state, fmt.Sprint(m.Name, m.Spec.Stage, m.Labels, m.Finalizers, ended.Status, ended.Reason))
	}
	for _, job := range f.allJobs() {
		state = append(state, job.Name, fmt.Sprint(job.Status.Conditions))
	}
	return state
}
