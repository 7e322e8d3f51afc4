package nodemaintenance

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

// A manager that dies after any of its writes leaves a state from which the next
// one, which remembers nothing, comes to the same end.
func TestAManagerThatDiesBetweenAnyTwoWritesIsContinued(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ end func(*drain) }{
		"completed":             {end: (*drain).completeUpgrade},
		"deleted":               {end: (*drain).deleteUpgrade},
		"cancelled in between":  {end: (*drain).completeUpgradeEarly},
		"the node leaves early": {end: (*drain).relabelNodeEarly},
		"one is given back":     {end: (*drain).giveBackOneEarly},
		"one is late":           {end: (*drain).giveBackLate},
		"all are late":          {end: (*drain).giveBackAllLate},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			undisturbed := newDrain(t, -1)
			test.end(undisturbed)
			want := undisturbed.state()
			if len(undisturbed.api.Writes()) == 0 {
				t.Fatal("the manager wrote nothing")
			}
			for dies, write := range undisturbed.api.Writes() {
				disturbed := newDrain(t, dies+1)
				test.end(disturbed)
				if diff := cmp.Diff(want, disturbed.state()); diff != "" {
					t.Errorf("the end after dying behind write %d, %q (-undisturbed +continued):\n%s",
						dies, write, diff)
				}
			}
		})
	}
}

// drain is a world and the manager that is alive in it.
type drain struct {
	*world
	alive *reconciler
}

// newDrain is a world with two nodes to be drained, one of which a person has
// cordoned, whose manager dies after so many writes; it lives on if they are
// negative.
func newDrain(t *testing.T, dies int) *drain {
	t.Helper()
	theirs := aNode("two")
	theirs.Spec.Unschedulable = true
	w := newWorld(t, aNode("one"), theirs, aNode("three"), aMaintenance("upgrade", "old"),
		aPod("a", "one"), aPod("b", "one"), aPod("c", "two"), aDaemonSetPod("d", "two"))
	three := w.node("three")
	three.Labels = nil
	w.must(w.api.Update(w.t.Context(), three))
	w.api.KillAfter(dies)
	return &drain{world: w, alive: w.manager()}
}

// aDaemonSetPod leaves last.
func aDaemonSetPod(name, node string) *corev1.Pod {
	pod := aPod(name, node)
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "log", Controller: new(true)}}
	return pod
}

// runOnce runs one pass and returns whether it changed anything. A manager that
// died is replaced.
func (d *drain) runOnce() bool {
	d.t.Helper()
	before := len(d.api.Writes())
	d.reconcile(d.alive)
	died := d.api.Killed()
	if died {
		d.api.Revive()
		d.alive = d.manager()
	}
	d.clock.Step(2 * time.Second)
	return died || len(d.api.Writes()) > before
}

// settle runs passes, and the evacuation controller in between if it is wanted,
// until nothing changes any more.
func (d *drain) settle(evacuating bool) {
	d.t.Helper()
	for range 50 {
		changed := d.runOnce()
		if evacuating {
			changed = d.evacuateAll() || changed
		}
		if !changed {
			return
		}
	}
	d.t.Fatal("the world did not settle in 50 passes")
}

// evacuateAll does what the evacuation controller does: pods leave, and
// Evacuations that nobody asks for any more.
func (w *world) evacuateAll() bool {
	w.t.Helper()
	all := w.evacuations()
	for i := range all {
		if asked := &all[i]; len(evacuation.Instigators(asked)) > 0 {
			leaving := &corev1.Pod{}
			leaving.Namespace, leaving.Name = asked.Namespace, asked.Spec.PodRef.Name
			w.must(client.IgnoreNotFound(w.api.Delete(w.t.Context(), leaving)))
			asked.Finalizers = nil
			w.must(w.api.Update(w.t.Context(), asked))
		}
		w.must(client.IgnoreNotFound(w.api.Delete(w.t.Context(), &all[i])))
	}
	return len(all) > 0
}

func (d *drain) completeUpgrade() {
	d.settle(true)
	d.setStage(v1alpha1.StageComplete)
	d.settle(true)
}

func (d *drain) deleteUpgrade() {
	d.settle(true)
	d.must(d.api.Delete(d.t.Context(), aMaintenance("upgrade", "old")))
	d.settle(true)
}

func (d *drain) completeUpgradeEarly() {
	d.settle(false)
	d.setStage(v1alpha1.StageComplete)
	d.settle(false)
}

func (d *drain) relabelNodeEarly() {
	d.settle(false)
	node := d.node("one")
	node.Labels = nil
	d.must(d.api.Update(d.t.Context(), node))
	d.settle(false)
	d.settle(true)
}

func (d *drain) giveBackOneEarly() {
	d.settle(false)
	m := d.maintenance("upgrade")
	m.Spec.CompletedNodes, m.Generation = []v1alpha1.NodeReference{{Name: "one"}}, m.Generation+1
	d.must(d.api.Update(d.t.Context(), m))
	d.settle(false)
	d.settle(true)
}

// giveBackLate has a deadline pass when the second node is drained.
func (d *drain) giveBackLate() {
	d.giveBackAt(noon.Add(time.Hour))
	d.settle(false)
	d.must(d.api.Delete(d.t.Context(), aPod("c", "two")))
	d.must(d.api.Delete(d.t.Context(), aDaemonSetPod("d", "two")))
	d.settle(false)
	d.clock.Step(time.Hour)
	d.settle(false)
	d.settle(true)
	d.setStage(v1alpha1.StageComplete)
	d.settle(true)
}

func (d *drain) giveBackAllLate() {
	d.giveBackAt(noon.Add(time.Hour))
	d.settle(false)
	d.clock.Step(time.Hour)
	d.settle(false)
	d.settle(true)
}

func (d *drain) giveBackAt(deadline time.Time) {
	m := d.maintenance("upgrade")
	m.Spec.Deadline, m.Generation = &v1alpha1.Deadline{Time: metav1.NewTime(deadline), OnDeadline: v1alpha1.DeadlineGiveBack}, m.Generation+1
	d.must(d.api.Update(d.t.Context(), m))
}

func (w *world) setStage(stage v1alpha1.NodeMaintenanceStage) {
	w.t.Helper()
	m := w.maintenance("upgrade")
	m.Spec.Stage, m.Generation = stage, m.Generation+1
	w.must(w.api.Update(w.t.Context(), m))
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// state is everything that is left in the world but times.
func (w *world) state() []string {
	w.t.Helper()
	var state []string
	for _, name := range []string{"one", "two", "three"} {
		node := w.node(name)
		state = append(state, fmt.Sprintf("node %s: unschedulable %t, annotations %v, taints %v, conditions %v",
			name, node.Spec.Unschedulable, node.Annotations, node.Spec.Taints, trueConditions(node)))
	}
	var pods corev1.PodList
	w.must(w.api.List(w.t.Context(), &pods))
	for i := range pods.Items {
		state = append(state, "pod "+pods.Items[i].Name)
	}
	for _, left := range w.evacuations() {
		state = append(state, fmt.Sprintf("evacuation of %s: %v", left.Spec.PodRef.Name, left.Finalizers))
	}
	return append(state, w.maintenanceState()...)
}

func (w *world) maintenanceState() []string {
	w.t.Helper()
	var m v1alpha1.NodeMaintenance
	err := w.api.Get(w.t.Context(), client.ObjectKey{Name: "upgrade"}, &m)
	if apierrors.IsNotFound(err) {
		return []string{"no maintenance"}
	}
	w.must(err)
	state := []string{fmt.Sprintf("maintenance: %s, %q, %v", m.Spec.Stage, m.Status.Summary, m.Finalizers)}
	for _, stage := range m.Status.StageStatuses {
		state = append(state, "started "+string(stage.Name))
	}
	for _, condition := range m.Status.Conditions {
		state = append(state, fmt.Sprintf("%s=%s because %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message))
	}
	for _, node := range m.Status.NodeStatuses {
		state = append(state, fmt.Sprintf("%s: %s %v", node.NodeRef.Name, node.DrainMessage, node.DrainTargets))
	}
	return state
}

func trueConditions(node *corev1.Node) []string {
	var kinds []string
	for _, condition := range node.Status.Conditions {
		if condition.Status == corev1.ConditionTrue {
			kinds = append(kinds, string(condition.Type))
		}
	}
	slices.Sort(kinds)
	return kinds
}
