package lab

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func fleetPod(name, node string, ready corev1.ConditionStatus, leaves bool) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{appLabel: Singleton}}, Spec: corev1.PodSpec{NodeName: node}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	if leaves {
		pod.DeletionTimestamp = &metav1.Time{}
	}
	return pod
}

func fleetNode(name string, cordoned bool) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Unschedulable: cordoned}}
}

func TestJournalOfAPodThatMoves(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	j := newJournal(&Load{apps: []app{{name: Singleton, replicas: 1}}})
	j.seeNode(fleetNode("one", true), at(0))
	j.seeNode(fleetNode("two", false), at(0))
	j.seePod(fleetPod("a", "two", corev1.ConditionTrue, false), false, at(0))
	j.Apps[Singleton].Least = 1

	j.seeNode(fleetNode("one", false), at(10))
	j.seeNode(fleetNode("two", true), at(11))
	j.seePod(fleetPod("a", "two", corev1.ConditionTrue, true), false, at(12))
	j.seePod(fleetPod("a", "two", corev1.ConditionTrue, true), true, at(13))
	j.seePod(fleetPod("b", "one", corev1.ConditionFalse, false), false, at(14))
	j.seePod(fleetPod("b", "one", corev1.ConditionTrue, false), false, at(17))

	app := j.Apps[Singleton]
	if j.Moves != 1 || app.Least != 0 || app.Below != 5*time.Second || app.Without != 5*time.Second {
		t.Errorf("%d moves, %+v", j.Moves, app)
	}
	if len(j.Starts) != 1 || j.Starts[0] != 2*time.Second {
		t.Errorf("starts after %v, want 2s", j.Starts)
	}
}

func TestJournalOfASurgeHasNoOutage(t *testing.T) {
	j := newJournal(&Load{apps: []app{{name: Singleton, replicas: 1}}})
	now := time.Now()
	j.seePod(fleetPod("a", "one", corev1.ConditionTrue, false), false, now)
	j.Apps[Singleton].Least = 1
	j.seePod(fleetPod("b", "two", corev1.ConditionTrue, false), false, now)
	j.seePod(fleetPod("a", "one", corev1.ConditionTrue, true), false, now)
	j.seePod(fleetPod("b", "two", corev1.ConditionTrue, false), false, now.Add(time.Minute))
	if app := j.Apps[Singleton]; app.Least != 1 || app.Below != 0 || app.Without != 0 || j.Moves != 1 {
		t.Errorf("%d moves, %+v", j.Moves, app)
	}
}
