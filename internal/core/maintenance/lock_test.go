package maintenance_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// rebooting is a node whose database stays for maintenance m, with its record.
func rebooting(t *testing.T, with ...func(*corev1.Pod)) (*world, *v1alpha1.NodeMaintenance, *corev1.Pod) {
	w := newWorld(t, "one")
	m := inPlace(w.maintenance("m", drain, nil, "one"), 300)
	m.Spec.Reason = "kernel 7.2"
	w.budget("db")
	pod := w.run("one", 1, 0, append(with, stays, label("app", "db"))...)[0]
	w.pass()
	w.expectRecord("in the beginning", "one", "m 300s: pod-0001(db) lock db")
	return w, m, pod
}

// A node without budgets is told that it may go when its boot is recorded, and is back like
// any other: who reboots what is Drained would otherwise reboot it for ever.
func TestANodeWithoutBudgetsIsBackAfterItsReboot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "one")
	m := inPlace(w.maintenance("m", drain, nil, "one"), 300)
	w.budget("web")
	w.run("one", 1, 0, stays, label("app", "db"))
	w.pass()
	w.expectRecord("no budget protects it", "one", "m 300s: pod-0001() lock ")
	if isTrue(m.Status.Conditions, v1alpha1.ConditionDrained) {
		t.Error("the maintenance is Drained before the boot of its node is recorded")
	}
	w.take("one")
	w.pass()
	if got := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrained).Message; got !=
		"1 of 1 node drained, 0 pods left: 0 pending evacuation, 0 evacuating; 1 pod retained." {
		t.Errorf("Drained says %q", got)
	}
	if nodeCondition(w.find("one"), v1alpha1.NodeDrained).Status != corev1.ConditionTrue {
		t.Error("the node is not Drained")
	}
	w.observe("one", func(status *v1alpha1.DrainRecordStatus) { status.Boots.ReturnedTime = metaTime(w.now) })
	w.pass()
	if nodeCondition(w.find("one"), v1alpha1.NodeDrained).Status != corev1.ConditionFalse {
		t.Error("the node that is back is announced as Drained")
	}
	if got := m.Status.NodeStatuses[0].State; got != v1alpha1.NodeStateReturned {
		t.Errorf("the node is %s, want that it is back", got)
	}
}

// The locks are needed until nobody has pods stay on the node any more.
func TestWhenTheRecordIsComplete(t *testing.T) {
	t.Parallel()
	const lives, over = "m 300s: pod-0001(db) lock db", "m 300s: pod-0001(db) lock db complete"
	for name, test := range map[string]struct {
		happens func(w *world, m *v1alpha1.NodeMaintenance)
		want    string
	}{
		"it goes on":         {func(*world, *v1alpha1.NodeMaintenance) {}, lives},
		"it is completed":    {func(_ *world, m *v1alpha1.NodeMaintenance) { m.Spec.Stage = v1alpha1.StageComplete }, over},
		"it is deleted":      {func(w *world, m *v1alpha1.NodeMaintenance) { m.DeletionTimestamp = metaTime(w.now) }, over},
		"it leaves the node": {func(_ *world, m *v1alpha1.NodeMaintenance) { m.Spec.NodeSelector = named("two") }, over},
		"it is gone at once": {func(w *world, _ *v1alpha1.NodeMaintenance) { w.maintenances = nil }, over},
		"its pods leave now": {func(_ *world, m *v1alpha1.NodeMaintenance) { m.Spec.InPlace = nil }, "m 300s:  lock db complete"},
		"the node is gone":   {func(w *world, _ *v1alpha1.NodeMaintenance) { w.nodes = nil }, over},
		"the node is another one": {func(w *world, _ *v1alpha1.NodeMaintenance) {
			w.find("one").CreationTimestamp.Time = w.now.Add(time.Second)
		}, over},
		"the node is the same":    {func(w *world, _ *v1alpha1.NodeMaintenance) { w.find("one").CreationTimestamp.Time = w.now }, lives},
		"its pods are not known":  {func(w *world, _ *v1alpha1.NodeMaintenance) { w.pods = nil }, lives},
		"its spec has become odd": {func(_ *world, m *v1alpha1.NodeMaintenance) { m.Spec.DrainDepth = "Deep" }, lives},
		"its downtime has, too":   {func(_ *world, m *v1alpha1.NodeMaintenance) { inPlace(m, 0) }, lives},
		"an ordinary one comes when it is over": {func(w *world, m *v1alpha1.NodeMaintenance) {
			w.take("one", "db")
			m.Spec.Stage = v1alpha1.StageComplete
			w.pass()
			w.maintenance("n", drain, nil, "one")
		}, "m 300s:  lock db complete"},
		"an ordinary one comes": {func(w *world, _ *v1alpha1.NodeMaintenance) {
			w.maintenance("n", drain, nil, "one").Spec.DrainDepth = ""
		}, "m 300s:  lock "},
		"another one is not there": {func(w *world, m *v1alpha1.NodeMaintenance) {
			inPlace(w.maintenance("n", v1alpha1.StageCordon, nil, "one"), 60)
			m.Spec.Stage = v1alpha1.StageComplete
		}, over},
		"its pods are not known any more, and it is over": {func(w *world, m *v1alpha1.NodeMaintenance) {
			m.Spec.Stage, w.pods = v1alpha1.StageComplete, nil
		}, lives},
		"another one goes on": {func(w *world, m *v1alpha1.NodeMaintenance) {
			inPlace(w.maintenance("n", drain, nil, "one"), 60)
			m.Spec.Stage = v1alpha1.StageComplete
		}, "n 60s: pod-0001(db) lock db"},
		"one that is not understood holds the node": {func(w *world, m *v1alpha1.NodeMaintenance) {
			w.maintenance("n", drain, nil, "one")
			w.pass()
			w.maintenances[1].Spec.DrainDepth = "Deep"
			m.Spec.Stage = v1alpha1.StageComplete
		}, "m 300s:  lock "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, m, _ := rebooting(t)
			test.happens(w, m)
			for range 2 {
				w.passKnowing(w.pods != nil)
			}
			if got := needed(w.records["one"]); got != test.want {
				t.Errorf("the record is %q, want %q", got, test.want)
			}
		})
	}
}

// passKnowing is a pass that may have read no pods.
func (w *world) passKnowing(pods bool) {
	snapshot := w.snapshot()
	if !pods {
		snapshot.Pods = nil
	}
	decision := maintenance.Decide(snapshot)
	for i := range decision.Maintenances {
		w.record(&decision.Maintenances[i])
	}
	for i := range decision.Nodes {
		w.act(&decision.Nodes[i])
	}
}

// What a maintenance has given up is nothing to the next one.
func TestARecordThatHasGivenUpIsNotTakenOver(t *testing.T) {
	t.Parallel()
	w, m, _ := rebooting(t)
	w.budget("web")
	w.run("one", 1, 0, stays, label("app", "web"))
	w.expectRecord("two are needed", "one", "m 300s: pod-0001(db) pod-0002(web) lock db web")
	w.giveUp("one", "db")
	w.expectRecord("one is given up, and its pod has to leave first", "one", "m 300s: pod-0002(web) lock ")
	m.Spec.Stage = v1alpha1.StageComplete
	w.pass()
	next := inPlace(w.maintenance("next", drain, nil, "one"), 60)
	w.pass()
	w.expectRecord("the old one has to go first", "one", "m 300s: pod-0002(web) lock  complete")
	if got, want := retainedLine(next), "one 0+0 Waiting for the DrainRecord of an earlier drain to go; then 2 budgets will be locked. 2 retained"; got != want {
		t.Errorf("the next one is %q, want %q", got, want)
	}
	delete(w.records, "one")
	w.expectRecord("then there is a new one", "one", "next 60s: pod-0001(db) pod-0002(web) lock db web")
}

// A node that is made anew under the same name has nothing of the old one.
func TestTheRecordOfAnOlderNodeHasToGo(t *testing.T) {
	t.Parallel()
	w, m, _ := rebooting(t)
	w.take("one", "db")
	w.pass()
	if !isTrue(m.Status.Conditions, v1alpha1.ConditionDrained) {
		t.Fatalf("the maintenance is %+v, want it Drained", m.Status)
	}
	node := w.find("one")
	node.Annotations, node.Spec.Unschedulable, node.CreationTimestamp.Time = nil, false, w.now.Add(time.Hour)
	w.now = w.now.Add(2 * time.Hour)
	w.pods["one"] = nil
	w.run("one", 1, 0, stays, label("app", "db"))
	w.pass()
	w.expectRecord("the locks of the old one go", "one", "m 300s: pod-0001(db) lock db complete")
	if isTrue(m.Status.Conditions, v1alpha1.ConditionDrained) {
		t.Error("the maintenance is Drained by the locks of the old node")
	}
	delete(w.records, "one")
	w.expectRecord("then it has its own", "one", "m 300s: pod-0002(db) lock db")
}

// A record that is on its way out takes no change but its end, and its name is taken.
func TestARecordThatIsBeingDeletedIsWaitedFor(t *testing.T) {
	t.Parallel()
	w, m, _ := rebooting(t)
	w.take("one", "db")
	w.records["one"].DeletionTimestamp = metaTime(w.now)
	m.Spec.Reason = "another"
	w.expectRecord("its locks must not be renewed as long as somebody holds it", "one", "m 300s: pod-0001(db) lock db complete")
	if d := w.pass(); slices.ContainsFunc(d.Nodes, func(n maintenance.NodeDecision) bool { return n.DrainRecord != nil }) {
		t.Error("the record is written again")
	}
	if isTrue(m.Status.Conditions, v1alpha1.ConditionDrained) || !strings.Contains(lines(m)[0], "DrainRecord of an earlier drain") {
		t.Errorf("the node is %q, want it to wait for the record to go", lines(m))
	}
}

// Who comes while the pods of the maintenance before are not ready yet takes its
// record over, as soon as it needs one.
func TestARecordIsTakenOver(t *testing.T) {
	t.Parallel()
	w, m, _ := rebooting(t)
	w.take("one", "db")
	m.Spec.Stage = v1alpha1.StageComplete
	w.expectRecord("it is over", "one", "m 300s: pod-0001(db) lock db complete")
	w.unneeded("one")
	next := inPlace(w.maintenance("next", drain, nil, "one"), 60)
	web := w.run("one", 1, 0)[0]
	w.pass()
	w.expectRecord("another pod has to leave first", "one", "m 300s: pod-0001(db) lock db complete")
	w.remove(web.UID)
	w.expectRecord("the next one needs it", "one", "next 60s: pod-0001(db) lock db")
	w.pass()
	if isTrue(next.Status.Conditions, v1alpha1.ConditionDrained) {
		t.Error("the next one is Drained before somebody has looked at its locks")
	}
	w.unneeded("one")
	w.take("one", "db")
	w.pass()
	if !isTrue(next.Status.Conditions, v1alpha1.ConditionDrained) {
		t.Errorf("the next one is %+v, want it Drained", next.Status)
	}
}
