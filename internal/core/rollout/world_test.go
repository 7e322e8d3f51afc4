package rollout_test

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
	_ "time/tzdata" // as images have no zoneinfo

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/test/golden"
)

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

const (
	poolLabel         = "pool"
	zoneLabel         = "topology.kubernetes.io/zone"
	controlPlaneLabel = "node-role.kubernetes.io/control-plane"
	oldKernel         = "6.12.8"
	newKernel         = "6.12.9"
)

// world holds the objects of an API server. They are replaced and never changed, so that a
// snapshot stays what it was.
type world struct {
	t            testing.TB
	now          time.Time
	skewed       bool
	rollouts     []*v1alpha1.NodeRollout
	nodes        []*corev1.Node
	maintenances []*v1alpha1.NodeMaintenance
	budgets      []*v1alpha1.NodeBudget
	unknown      map[string]bool
	refused      map[string]string
	// jobs are those of rollouts, which namespace ops may have.
	jobs          []*batchv1.Job
	jobNamespaces map[string]bool
	refusedJobs   map[string]rollout.JobRefusal
	// refusedBudgets has the errors of writes of NodeBudgets.
	refusedBudgets map[string]string
	answers        map[rollout.Question]rollout.Answer
	// machineKinds are those that may be deleted, unreplaced the errors of deletions, and deleted the
	// nodes whose machine is deleted.
	machineKinds rollout.MachineKinds
	unreplaced   map[string]rollout.Unreplaced
	deleted      []string
	// pending are nodes that are gone and not replaced.
	pending []string
	// late are the NodeMaintenances whose deadline has given their node back.
	late map[string]bool
	// handedOver has the times when nodes were drained that come back.
	handedOver map[string]time.Time
	// version counts the writes, born the objects, and progress the writes of NodeMaintenances.
	version, born, progress int
	attempts                map[*v1alpha1.NodeMaintenance]rollout.Attempt
}

func newWorld(t testing.TB, nodes ...string) *world {
	w := &world{
		t: t, now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), // a Monday
		unknown: map[string]bool{}, refused: map[string]string{}, refusedBudgets: map[string]string{}, late: map[string]bool{}, handedOver: map[string]time.Time{}, attempts: map[*v1alpha1.NodeMaintenance]rollout.Attempt{},
		machineKinds: rollout.AllMachineKinds(), unreplaced: map[string]rollout.Unreplaced{},
		jobNamespaces: map[string]bool{"ops": true}, refusedJobs: map[string]rollout.JobRefusal{},
	}
	for _, name := range nodes {
		w.join(name)
	}
	return w
}

func (w *world) uid() types.UID {
	w.born++
	return types.UID("uid-" + strconv.Itoa(w.born))
}

func (w *world) meta(name string) metav1.ObjectMeta {
	w.version++
	return metav1.ObjectMeta{
		Name: name, UID: w.uid(), ResourceVersion: strconv.Itoa(w.version), Generation: 1, CreationTimestamp: metav1.NewTime(w.now),
		Labels: map[string]string{}, Annotations: map[string]string{},
	}
}

// join adds a Ready node with the old kernel.
func (w *world) join(name string, change ...func(*corev1.Node)) {
	node := &corev1.Node{ObjectMeta: w.meta(name)}
	node.Labels[poolLabel] = "a"
	node.Status.NodeInfo.KernelVersion, node.Status.NodeInfo.BootID = oldKernel, "boot-"+string(w.uid())
	setReady(node, true)
	for _, c := range change {
		c(node)
	}
	w.nodes = append(w.nodes, node)
}

// setReady sets the first condition of a node.
func setReady(node *corev1.Node, ready bool) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	if len(node.Status.Conditions) == 0 {
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}}
	}
	node.Status.Conditions[0].Status = status
}

func labelled(key, value string) func(*corev1.Node) {
	return func(node *corev1.Node) { node.Labels[key] = value }
}

// pool selects nodes by their pool.
func pool(names ...string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: poolLabel, Operator: corev1.NodeSelectorOpIn, Values: names}},
	}}}
}

func named(names ...string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: names}},
	}}}
}

// start creates a rollout of pool a to the new kernel.
func (w *world) start(name string, change ...func(*v1alpha1.NodeRolloutSpec)) {
	r := &v1alpha1.NodeRollout{ObjectMeta: w.meta(name)}
	r.Spec = v1alpha1.NodeRolloutSpec{NodeSelector: pool("a"), Target: &v1alpha1.CompleteWhen{KernelVersion: newKernel}}
	for _, c := range change {
		c(&r.Spec)
	}
	w.rollouts = append(w.rollouts, r)
}

// object is an API object.
type object[T any] interface {
	metav1.Object
	DeepCopy() T
}

func find[T metav1.Object](all []T, name string) (found T, at int) {
	at = slices.IndexFunc(all, func(o T) bool { return o.GetName() == name })
	if at >= 0 {
		found = all[at]
	}
	return found, at
}

// edit replaces an object by a changed copy.
func edit[T object[T]](w *world, all []T, name string, change func(T)) T {
	one, at := find(all, name)
	if at < 0 {
		w.t.Fatalf("there is no %s", name)
	}
	edited := one.DeepCopy()
	change(edited)
	w.version++
	edited.SetResourceVersion(strconv.Itoa(w.version))
	all[at] = edited
	return edited
}

func (w *world) editNode(name string, change func(*corev1.Node)) { edit(w, w.nodes, name, change) }

func (w *world) editSpec(name string, change func(*v1alpha1.NodeRolloutSpec)) {
	edit(w, w.rollouts, name, func(r *v1alpha1.NodeRollout) {
		change(&r.Spec)
		r.Generation++
	})
}

func (w *world) deleteNode(name string) {
	w.nodes = slices.DeleteFunc(slices.Clone(w.nodes), func(node *corev1.Node) bool { return node.Name == name })
}

// deleteRollout deletes as the API server does: an object with finalizers stays.
func (w *world) deleteRollout(name string) {
	edit(w, w.rollouts, name, func(r *v1alpha1.NodeRollout) {
		if r.DeletionTimestamp == nil {
			r.DeletionTimestamp = &metav1.Time{Time: w.now}
			r.Generation++
		}
	})
	w.collect()
}

func (w *world) deleteMaintenance(name string) {
	edit(w, w.maintenances, name, func(m *v1alpha1.NodeMaintenance) {
		if m.DeletionTimestamp == nil {
			m.DeletionTimestamp = &metav1.Time{Time: w.now}
		}
	})
	w.collect()
}

func gone(o metav1.Object) bool {
	return o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0
}

func (w *world) collect() {
	w.rollouts = slices.DeleteFunc(slices.Clone(w.rollouts), func(r *v1alpha1.NodeRollout) bool { return gone(r) })
	w.maintenances = slices.DeleteFunc(slices.Clone(w.maintenances), func(m *v1alpha1.NodeMaintenance) bool { return gone(m) })
	w.collectJobs()
}

func (w *world) snapshot() *rollout.Snapshot {
	return &rollout.Snapshot{
		Now: w.now, ClockSkewed: w.skewed, Live: true, Rollouts: slices.Clone(w.rollouts), Nodes: slices.Clone(w.nodes), Maintenances: slices.Clone(w.maintenances),
		Unknown: w.unknown, Refused: w.refused, Jobs: slices.Clone(w.jobs), JobNamespaces: w.jobNamespaces, RefusedJobs: w.refusedJobs,
		Answers: w.answers, Budgets: slices.Clone(w.budgets), RefusedBudgets: w.refusedBudgets,
		MachineKinds: w.machineKinds, Unreplaced: w.unreplaced,
	}
}

// apply writes a decision as the controller does. It ends when stop returns true, which is asked
// before each write.
func (w *world) apply(d *rollout.Decision, stop func() bool) (stopped bool) {
	ledgers := w.ledgersOf(d)
	for i := range d.Rollouts {
		if w.applyRollout(&d.Rollouts[i], ledgers, stop) {
			return true
		}
	}
	if ledgers.report(d, stop) {
		return true
	}
	for _, c := range d.Orphans {
		if stop() {
			return true
		}
		w.applyChange(c)
	}
	return false
}

func (w *world) applyRollout(d *rollout.RolloutDecision, ledgers *ledgers, stop func() bool) (stopped bool) {
	name := d.Rollout.Name
	if counted, stopped := ledgers.count(d, stop); !counted {
		return stopped
	}
	hasFinalizer, hasStatus := d.AddFinalizer || d.RemoveFinalizer, !equality.Semantic.DeepEqual(d.Status, d.Rollout.Status)
	if current, _ := find(w.rollouts, name); current != d.Rollout && (hasFinalizer || hasStatus || len(d.Starts) > 0) {
		return false // a conflict
	}
	var writes []func()
	if hasFinalizer {
		writes = append(writes, func() { w.writeFinalizer(d) })
	}
	if hasStatus && !d.RemoveFinalizer {
		writes = append(writes, func() {
			edit(w, w.rollouts, name, func(r *v1alpha1.NodeRollout) { r.Status = *d.Status.DeepCopy() })
		})
	}
	for _, m := range d.Starts {
		writes = append(writes, func() { w.create(m) })
	}
	for _, c := range d.Changes {
		writes = append(writes, func() { w.applyChange(c) })
	}
	writes = append(writes, w.jobWrites(d)...)
	for _, one := range d.Replacements {
		writes = append(writes, func() { w.deleteMachine(one) })
	}
	for _, write := range writes {
		if stop() {
			return true
		}
		write()
	}
	return false
}

func (w *world) writeFinalizer(d *rollout.RolloutDecision) {
	edit(w, w.rollouts, d.Rollout.Name, func(r *v1alpha1.NodeRollout) {
		r.Finalizers = slices.DeleteFunc(r.Finalizers, func(f string) bool { return f == v1alpha1.RolloutFinalizer })
		if d.AddFinalizer {
			r.Finalizers = append(r.Finalizers, v1alpha1.RolloutFinalizer)
		}
	})
	w.collect()
}

// create creates a NodeMaintenance of a rollout, unless there is one.
func (w *world) create(m *v1alpha1.NodeMaintenance) {
	if _, at := find(w.maintenances, m.Name); at >= 0 {
		return
	}
	created := m.DeepCopy()
	of := w.meta(m.Name)
	created.UID, created.ResourceVersion, created.CreationTimestamp, created.Generation = of.UID, of.ResourceVersion, of.CreationTimestamp, 1
	w.maintenances = append(w.maintenances, created)
	w.progress++
}

func (w *world) applyChange(c rollout.Change) {
	current, at := find(w.maintenances, c.Before.Name)
	if at < 0 || current != c.Before {
		return // a conflict
	}
	if w.progress++; c.Delete {
		w.deleteMaintenance(c.Before.Name)
		return
	}
	edit(w, w.maintenances, c.Before.Name, func(m *v1alpha1.NodeMaintenance) {
		m.Spec, m.Labels, m.Annotations, m.Finalizers = c.After.Spec, c.After.Labels, c.After.Annotations, c.After.Finalizers
	})
	w.collect()
}

func never() bool { return false }

// decide decides and writes the decision.
func (w *world) decide() *rollout.Decision {
	d := rollout.Decide(w.snapshot())
	w.apply(d, never)
	return d
}

// attempt is the record in a NodeMaintenance of a rollout.
func (w *world) attempt(m *v1alpha1.NodeMaintenance) (a rollout.Attempt) {
	if a, known := w.attempts[m]; known {
		return a
	}
	if err := json.Unmarshal([]byte(m.Annotations[v1alpha1.RolloutAttemptAnnotation]), &a); err != nil {
		w.t.Fatal(err)
	}
	w.attempts[m] = a
	return a
}

func nodeOf(m *v1alpha1.NodeMaintenance) string {
	return m.Spec.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values[0]
}

func setCondition(w *world, m *v1alpha1.NodeMaintenance, kind string, is bool, reason string) {
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: "As " + reason + " says.", LastTransitionTime: metav1.NewTime(w.now),
	})
}
