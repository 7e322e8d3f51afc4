package maintenance_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

// due is the deadline of every story, an hour after it begins.
var due = dawn.Add(2 * time.Hour)

// toBeGone gives a maintenance a deadline at due that deletes from a minute before it.
func toBeGone(m *v1alpha1.NodeMaintenance) *v1alpha1.Deadline {
	m.Spec.Deadline = &v1alpha1.Deadline{Time: metav1.NewTime(due), OnDeadline: v1alpha1.DeadlineDelete, DeleteBeforeSeconds: 60}
	return m.Spec.Deadline
}

// deadline is a world with one node that m drains until due; it has been cordoned and
// the drain is announced.
func deadline(t *testing.T) (*world, *v1alpha1.NodeMaintenance) {
	w := newWorld(t, "one")
	w.runners = maintenance.Runners{DaemonSets: true}
	m := w.maintenance("m", drain, nil, "one")
	toBeGone(m)
	w.run("one", 1, -1000)
	w.pass()
	w.pass()
	w.leave("one", -1000)
	return w, m
}

// at passes at a time and returns what is deleted, with its grace period.
func (w *world) at(now time.Time) []string {
	w.now = now
	return deleted(w.pass())
}

func deleted(d maintenance.Decision) []string {
	var all []string
	for _, node := range d.Nodes {
		for _, one := range node.Delete {
			all = append(all, fmt.Sprintf("%s %ds", one.Pod.Name, one.GracePeriodSeconds))
		}
	}
	return all
}

func grace(seconds int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = &seconds }
}

func wantDeleted(t *testing.T, when string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s, what is deleted (-want +got):\n%s", when, diff)
	}
}

func TestDeadlineDeletesLowestPriorityFirst(t *testing.T) {
	w, m := deadline(t)
	batch, web, db := w.run("one", 1, 0)[0], w.run("one", 1, 10, grace(5))[0], w.run("one", 1, 2000)[0]
	agent := w.run("one", 1, 0, ofDaemonSet, grace(10))[0]

	wantDeleted(t, "an hour before", w.at(due.Add(-time.Hour)))
	if got := conditionOf(m, v1alpha1.ConditionPastDeadline); got != "False DeadlineAhead" {
		t.Errorf("PastDeadline is %s", got)
	}
	w.now = due.Add(-61 * time.Second)
	if d := w.pass(); d.RequeueAfter != time.Second {
		t.Errorf("a second before the deletions begin it is decided again after %s", d.RequeueAfter)
	}
	wantDeleted(t, "a minute before", w.at(due.Add(-time.Minute)), batch.Name+" 30s")
	wantDeleted(t, "while that one ends", w.at(due.Add(-59*time.Second)))
	w.remove(batch.UID)
	wantDeleted(t, "when it is gone", w.at(due.Add(-50*time.Second)), web.Name+" 5s")
	wantDeleted(t, "when the next is stuck", w.at(due.Add(-33*time.Second)))
	if d := maintenance.Decide(w.snapshot()); d.RequeueAfter != time.Second {
		t.Errorf("a pod is deleted in time for its grace period, after %s", d.RequeueAfter)
	}
	wantDeleted(t, "when another one would not have its time", w.at(due.Add(-32*time.Second)), db.Name+" 30s")
	wantDeleted(t, "before DaemonSets would not", w.at(due.Add(-13*time.Second)))
	wantDeleted(t, "when they would not", w.at(due.Add(-12*time.Second)), agent.Name+" 10s")
	if kept, err := cordon.Suppressed(w.find("one")); err != nil || !kept.CoversSubject(drainplan.SubjectOf(agent)) {
		t.Errorf("the DaemonSet pod is deleted and may come back (%v)", err)
	}
	wantDeleted(t, "after the deadline", w.at(due.Add(time.Minute)))
	if got := conditionOf(m, v1alpha1.ConditionPastDeadline); got != "True DeletingPods" {
		t.Errorf("PastDeadline is %s", got)
	}
	for _, pod := range []*corev1.Pod{web, db, agent} {
		w.remove(pod.UID)
	}
	w.pass()
	if got := conditionOf(m, v1alpha1.ConditionPastDeadline); got != "False DeadlineMet" {
		t.Errorf("PastDeadline is %s", got)
	}
}

// lateCase is a pod that is alone on its node, and a time before or after its deadline.
type lateCase struct {
	with   []func(*corev1.Pod)
	change func(*world, *v1alpha1.NodeMaintenance)
	at     time.Duration
	// want is the grace period with which it is deleted; empty if it is not.
	want string
}

// halfBefore and halfAfter are half a minute before and after the deadline.
const halfBefore, halfAfter = -30 * time.Second, 30 * time.Second

// ends has a pod terminate until some time after the deadline.
func ends(after time.Duration, period int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = metaTime(due.Add(after)), &period
	}
}

// since has a pod made some time after the deadline.
func since(after time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.CreationTimestamp = metav1.NewTime(due.Add(after)) }
}

func latePods() map[string]lateCase {
	type with = []func(*corev1.Pod)
	return map[string]lateCase{
		"a pod":                        {at: halfBefore, want: "28s"},
		"a pod that needs little":      {with: with{grace(7)}, at: halfBefore, want: "7s"},
		"a pod that wants no time":     {with: with{grace(0)}, at: halfBefore, want: "1s"},
		"a pod that wants a day":       {with: with{grace(86400)}, at: halfBefore, want: "28s"},
		"four seconds before":          {at: -4 * time.Second, want: "2s"},
		"at the deadline":              {at: 0, want: "1s"},
		"after the deadline":           {at: halfAfter, want: "1s"},
		"a minute and a second before": {at: -61 * time.Second},
		"it is Wait":                   {change: func(_ *world, m *v1alpha1.NodeMaintenance) { m.Spec.Deadline.OnDeadline = v1alpha1.DeadlineWait }, at: halfAfter},
		"it was put off":               {change: func(_ *world, m *v1alpha1.NodeMaintenance) { m.Spec.Deadline.Time = metav1.NewTime(due.Add(time.Hour)) }, at: halfAfter},
		"it was removed":               {change: func(_ *world, m *v1alpha1.NodeMaintenance) { m.Spec.Deadline = nil }, at: halfAfter},
		"the maintenance is complete":  {change: func(_ *world, m *v1alpha1.NodeMaintenance) { m.Spec.Stage = v1alpha1.StageComplete }, at: halfAfter},
		"the maintenance is deleted":   {change: func(_ *world, m *v1alpha1.NodeMaintenance) { m.DeletionTimestamp = metaTime(due) }, at: halfAfter},
		"skip":                         {with: with{labelled(v1alpha1.DrainLabel, "skip")}, at: halfAfter},
		"wait-completed":               {with: with{labelled(v1alpha1.DrainLabel, "wait-completed")}, at: halfAfter, want: "1s"},
		"a rule says skip": {with: with{app("db")}, change: func(w *world, _ *v1alpha1.NodeMaintenance) {
			w.rules = append(w.rules, ruleFor("db", v1alpha1.DrainBehaviorSkip))
		}, at: halfAfter},
		"nobody knows what a rule says":   {with: with{app("db")}, change: func(w *world, _ *v1alpha1.NodeMaintenance) { w.rules = append(w.rules, broken("db")) }, at: halfAfter},
		"a finished pod":                  {with: with{phase(corev1.PodSucceeded)}, at: halfAfter},
		"a DaemonSet pod":                 {with: with{ofDaemonSet}, at: halfAfter, want: "1s"},
		"a DaemonSet pod below the depth": {with: with{ofDaemonSet}, change: func(_ *world, m *v1alpha1.NodeMaintenance) { m.Spec.DrainDepth = v1alpha1.PodTypeDefault }, at: halfAfter},
		"a static pod": {with: with{static}, change: func(w *world, _ *v1alpha1.NodeMaintenance) {
			w.runners.Agents = map[string]maintenance.Agent{"one": {}}
		}, at: halfAfter},
		"a pod that was made after the deadline": {with: with{since(time.Second)}, at: halfAfter},
		"a pod that was made just before":        {with: with{since(-time.Second)}, at: halfAfter, want: "1s"},
	}
}

func lateNodes() map[string]lateCase {
	type with = []func(*corev1.Pod)
	return map[string]lateCase{
		"it stays in place": {with: with{stays}, change: func(_ *world, m *v1alpha1.NodeMaintenance) {
			m.Spec.InPlace = &v1alpha1.InPlace{ExpectedDowntimeSeconds: 60}
		}, at: halfAfter},
		"it asks to stay, and is drained": {with: with{stays}, at: halfAfter, want: "1s"},
		"it stays for another maintenance": {with: with{stays}, change: func(w *world, _ *v1alpha1.NodeMaintenance) {
			w.maintenance("reboot", drain, nil, "one").Spec.InPlace = &v1alpha1.InPlace{ExpectedDowntimeSeconds: 60}
		}, at: halfAfter},
		"it ends in time":                             {with: with{ends(0, 60)}, at: halfBefore},
		"it ends too late":                            {with: with{ends(time.Minute, 600)}, at: halfBefore, want: "28s"},
		"it ends too late, and has little left":       {with: with{ends(2*time.Second, 32)}, at: halfBefore},
		"it ends at once":                             {with: with{ends(halfAfter, 1)}, at: halfAfter},
		"it was deleted after the deadline":           {with: with{ends(time.Minute, 30)}, at: halfAfter, want: "1s"},
		"the clock is skewed":                         {change: func(w *world, _ *v1alpha1.NodeMaintenance) { w.clockSkewed = true }, at: halfAfter},
		"the node was made schedulable by somebody":   {change: func(w *world, _ *v1alpha1.NodeMaintenance) { w.find("one").Spec.Unschedulable = false }, at: halfAfter},
		"the drain began after the deadline":          {change: func(_ *world, m *v1alpha1.NodeMaintenance) { beganAt(m, due.Add(time.Second)) }, at: halfAfter},
		"the drain of this node began after it":       {change: func(w *world, _ *v1alpha1.NodeMaintenance) { announcedAt(w, due.Add(time.Second)) }, at: halfAfter},
		"the drain of this node is not announced yet": {change: func(w *world, _ *v1alpha1.NodeMaintenance) { w.find("one").Status.Conditions = nil }, at: halfAfter},
		"the announcement is refused": {change: func(w *world, _ *v1alpha1.NodeMaintenance) {
			w.find("one").Status.Conditions = nil
			w.refused = map[maintenance.Write]maintenance.Refusal{{Kind: maintenance.WriteConditions, Node: "one"}: {Again: due.Add(time.Hour)}}
		}, at: halfAfter, want: "1s"},
		"the announcement is somebody else's": {change: func(w *world, _ *v1alpha1.NodeMaintenance) {
			w.find("one").Status.Conditions = []corev1.NodeCondition{{Type: v1alpha1.NodeDrainInProgress, Status: corev1.ConditionTrue, Reason: "Theirs"}}
		}, at: halfAfter, want: "1s"},
		"the announcement is what is left of somebody else's drain": {change: func(w *world, _ *v1alpha1.NodeMaintenance) {
			w.find("one").Status.Conditions = []corev1.NodeCondition{{Type: v1alpha1.NodeDrainInProgress, Status: corev1.ConditionFalse, Reason: "Theirs"}}
		}, at: halfAfter},
		"another one drains the node without a deadline": {change: func(w *world, _ *v1alpha1.NodeMaintenance) { w.maintenance("n", drain, nil, "one") }, at: halfAfter, want: "1s"},
		"another one is earlier": {change: func(w *world, _ *v1alpha1.NodeMaintenance) {
			toBeGone(w.maintenance("n", drain, nil, "one")).Time = metav1.NewTime(due.Add(-10 * time.Second))
		}, at: halfBefore, want: "18s"},
		"another one is earlier, and only cordons": {change: func(w *world, _ *v1alpha1.NodeMaintenance) {
			toBeGone(w.maintenance("n", v1alpha1.StageCordon, nil, "one")).Time = metav1.NewTime(due.Add(-10 * time.Second))
		}, at: halfBefore, want: "28s"},
		"another one is earlier, and leaves DaemonSets alone": {with: with{ofDaemonSet}, change: func(w *world, _ *v1alpha1.NodeMaintenance) {
			n := w.maintenance("n", drain, nil, "one")
			n.Spec.DrainDepth = v1alpha1.PodTypeDefault
			toBeGone(n).Time = metav1.NewTime(due.Add(-10 * time.Second))
		}, at: halfBefore, want: "28s"},
	}
}

func TestPodsThatADeadlineDeletes(t *testing.T) {
	cases := latePods()
	maps.Copy(cases, lateNodes())
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			w, m := deadline(t)
			pod := w.run("one", 1, 0, test.with...)[0]
			if test.change != nil {
				test.change(w, m)
			}
			got := w.at(due.Add(test.at))
			var want []string
			if test.want != "" {
				want = []string{pod.Name + " " + test.want}
			}
			wantDeleted(t, name, got, want...)
			if want != nil {
				wantDeleted(t, name+", once more", w.at(due.Add(test.at)))
			}
		})
	}
}

func beganAt(m *v1alpha1.NodeMaintenance, at time.Time) {
	for i := range m.Status.StageStatuses {
		m.Status.StageStatuses[i].StartTimestamp = metaTime(at)
	}
}

func announcedAt(w *world, at time.Time) {
	conditions := w.find("one").Status.Conditions
	for i := range conditions {
		conditions[i].LastTransitionTime = metav1.NewTime(at)
	}
}

// The plan of a maintenance waits for all of its nodes; a deadline does not.
func TestADeadlineWaitsForNoOtherNode(t *testing.T) {
	w := newWorld(t, "one", "two")
	m := w.maintenance("m", drain, nil, "one", "two")
	toBeGone(m)
	stuck := w.run("two", 1, -1000, labelled(v1alpha1.DrainLabel, "wait-completed"))[0]
	pod := w.run("one", 1, 2000)[0]
	beside := w.node("three")
	w.run(beside.Name, 1, 0)
	w.pass()
	w.pass()
	wantDeleted(t, "before", w.at(due.Add(-61*time.Second)))
	wantDeleted(t, "at the deadline", w.at(due.Add(-time.Minute)), pod.Name+" 30s", stuck.Name+" 30s")
	delete(w.pods, "two")
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = nil, nil
	wantDeleted(t, "with a node that cannot be read", w.at(due.Add(-30*time.Second)), pod.Name+" 28s")
}

func TestPastDeadlineShowsWhetherPodsAreDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*world, *v1alpha1.NodeMaintenance)
		want   string
	}{
		"it is Wait":            {func(_ *world, m *v1alpha1.NodeMaintenance) { m.Spec.Deadline.OnDeadline = v1alpha1.DeadlineWait }, "True WaitingForPods"},
		"the clock is skewed":   {func(w *world, _ *v1alpha1.NodeMaintenance) { w.clockSkewed = true }, "Unknown ClockSkewed"},
		"the drain began later": {func(_ *world, m *v1alpha1.NodeMaintenance) { beganAt(m, due.Add(time.Second)) }, "False DeadlineTooEarly"},
		"the node came later":   {func(w *world, _ *v1alpha1.NodeMaintenance) { announcedAt(w, due.Add(time.Second)) }, "True WaitingForPods"},
		"one stays for another": {func(w *world, _ *v1alpha1.NodeMaintenance) {
			stays(w.pods["one"][0])
			w.maintenance("reboot", drain, nil, "one").Spec.InPlace = &v1alpha1.InPlace{ExpectedDowntimeSeconds: 60}
		}, "True DeletingPods"},
		"the node cannot be read": {func(w *world, _ *v1alpha1.NodeMaintenance) { delete(w.pods, "one") }, "Unknown WaitingForPods"},
		"a deletion is refused": {func(w *world, _ *v1alpha1.NodeMaintenance) {
			w.pods["one"] = w.pods["one"][:1]
			w.refused = map[maintenance.Write]maintenance.Refusal{
				{Kind: maintenance.WriteDeletion, Pod: w.pods["one"][0].UID}: {Message: "webhook says no", Again: due.Add(time.Hour)},
			}
		}, "True DeletingPods"},
	} {
		t.Run(name, func(t *testing.T) {
			w, m := deadline(t)
			w.run("one", 4, 0)
			w.pass()
			w.now = due
			test.change(w, m)
			w.pass()
			if got := conditionOf(m, v1alpha1.ConditionPastDeadline); got != test.want {
				t.Errorf("PastDeadline is %s, want %s", got, test.want)
			}
		})
	}
}

// What has to be in the API before the first pod is deleted, and what is told of.
func TestDeadlineIsRecordedAndReported(t *testing.T) {
	w, m := deadline(t)
	w.run("one", 150, 0)
	w.pass()
	w.now = due.Add(-time.Minute)
	d := w.pass()
	if !d.Maintenances[0].Record {
		t.Error("pods are deleted before the status says so")
	}
	if diff := cmp.Diff([]string{"NodeMaintenance/m PastDeadline"}, reasons(d.Maintenances[0].Events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	told := 0
	for _, one := range d.Nodes[0].Delete {
		told += len(one.Events)
	}
	if len(d.Nodes[0].Delete) != 150 || told != 100 {
		t.Errorf("%d pods are deleted and %d events say so, want 150 and 100", len(d.Nodes[0].Delete), told)
	}
	d = w.pass()
	if d.Maintenances[0].Record || len(d.Maintenances[0].Events) > 0 {
		t.Errorf("it is recorded or told of again: %+v", d.Maintenances[0].Events)
	}
	m.Spec.Stage = v1alpha1.StageComplete
	w.pass()
	if got := conditionOf(m, v1alpha1.ConditionPastDeadline); got != "none" {
		t.Errorf("when the maintenance is complete, PastDeadline is %q", got)
	}
}

func TestInvalidDeadlineDeletesNothing(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.Deadline){
		"no time":      func(d *v1alpha1.Deadline) { d.Time = metav1.Time{} },
		"2 seconds":    func(d *v1alpha1.Deadline) { d.DeleteBeforeSeconds = 2 },
		"over a day":   func(d *v1alpha1.Deadline) { d.DeleteBeforeSeconds = 86401 },
		"other action": func(d *v1alpha1.Deadline) { d.OnDeadline = "Sooner" },
		"negative":     func(d *v1alpha1.Deadline) { d.DeleteBeforeSeconds = -999999 },
	} {
		t.Run(name, func(t *testing.T) {
			w, m := deadline(t)
			w.run("one", 1, 0)
			change(m.Spec.Deadline)
			wantDeleted(t, name, w.at(due))
			if got := conditionOf(m, v1alpha1.ConditionBlocked); got != "True InvalidSpec" {
				t.Errorf("Blocked is %s", got)
			}
		})
	}
	w, m := deadline(t)
	pod := w.run("one", 1, 0)[0]
	m.Spec.Deadline.DeleteBeforeSeconds = 0
	wantDeleted(t, "without a default", w.at(due.Add(-time.Minute)), pod.Name+" 30s")
}
