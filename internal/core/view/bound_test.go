package view_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/view"
	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/goal"
)

func many(maintenances, nodes int) *view.Snapshot {
	s := &view.Snapshot{Now: noon, Nodes: map[string]*corev1.Node{}}
	for i := range maintenances {
		var all []v1alpha1.NodeMaintenanceNodeStatus
		for j := range nodes {
			one := waiting(fmt.Sprintf("n-%d-%d", i, j), 20, fmt.Sprintf("n-%d-%d", i, (j+1)%nodes))
			for b := range 10 {
				one.Blockers = append(one.Blockers, exhausted(fmt.Sprintf("web-%d-%d", j, b), 1))
			}
			all = append(all, one)
		}
		s.Maintenances = append(s.Maintenances, named(fmt.Sprintf("m-%04d", i), all...))
	}
	return s
}

// BenchmarkOf is a view of a maintenance of 5,000 nodes.
func BenchmarkOf(b *testing.B) {
	s := many(1, 5000)
	goal.Time(b, 2500*time.Millisecond)
	for b.Loop() {
		view.Of(s)
	}
}

func TestAViewOfALargeClusterIsBounded(t *testing.T) {
	t.Parallel()
	got := view.Of(many(100, 10))
	one := view.Of(many(1, 5000))
	if len(got.Items) != 100 || len(got.Circles) != 10 || len(one.Items[0].Nodes) != 5000 || len(one.Items[0].Blockers) != 50 || len(one.Items[0].Waits) != 200 {
		t.Errorf("%d maintenances, %d circles, %d nodes, %d blockers, %d waits", len(got.Items), len(got.Circles),
			len(one.Items[0].Nodes), len(one.Items[0].Blockers), len(one.Items[0].Waits))
	}
	if len(one.Circles) != 1 || !strings.HasSuffix(one.Circles[0], "; and so on.") || len(one.Circles[0]) > 1000 {
		t.Errorf("a circle of 5,000 nodes is told as %.300q", one.Circles)
	}
	if more := view.Of(many(300, 1)); len(more.Items) != 200 || more.OmittedCount != 100 {
		t.Errorf("%d are shown, %d left out", len(more.Items), more.OmittedCount)
	}
}

// Two who read the same see the same.
func TestTheOrderOfObjectsMakesNoDifference(t *testing.T) {
	t.Parallel()
	s := many(20, 5)
	s.Maintenances = append(s.Maintenances, over(named("a")), staged(named("b"), v1alpha1.StageIdle))
	first := view.Of(s)
	slices.Reverse(s.Maintenances)
	for _, m := range s.Maintenances {
		slices.Reverse(m.Status.NodeStatuses)
	}
	if diff := cmp.Diff(first, view.Of(s), cmp.Comparer(func(a, b view.Blocker) bool { return fmt.Sprint(a) == fmt.Sprint(b) })); diff != "" {
		t.Errorf("(-first +reversed):\n%s", diff)
	}
	if last := len(first.Items) - 1; first.Items[last].Name != "a" || first.Items[last-1].Name != "b" || first.Items[0].Name != "m-0000" {
		t.Errorf("first %s, last %s", first.Items[0].Name, first.Items[last].Name)
	}
}

// Reasons, messages and names are written by others, and read in a terminal.
func TestAStatusIsNoCommandOfATerminal(t *testing.T) {
	t.Parallel()
	evil := strings.Repeat("\x1b]0;owned\x07\n\u202e", 5000)
	b := v1alpha1.Blocker{Type: v1alpha1.BlockerType(evil), Message: evil, Suggestion: evil, PodCount: -5, Object: v1alpha1.BlockerObject{Kind: evil, Name: evil}}
	m := kernel(node("node-1", -3, b), waiting("node-2", 1, evil))
	m.Spec.Reason, m.Status.Summary = evil, evil
	leaving := view.Leaving{
		Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-0"}},
		Evacuation: &v1alpha1.Evacuation{Status: v1alpha1.EvacuationStatus{Message: evil, ActiveEvacuatorClass: evil, Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionEvictionRefused, Status: metav1.ConditionTrue, Reason: evil, Message: evil,
		}}}},
	}
	got := view.Of(&view.Snapshot{Now: noon, Maintenances: []*v1alpha1.NodeMaintenance{m}, Pods: map[string][]view.Leaving{"node-1": {leaving, {}}}})
	text, err := json.Marshal(got)
	if err != nil || len(text) > 20_000 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if strings.ContainsAny(string(text), "\x1b\n\x07\u202e") || strings.Contains(string(text), `\u001b`) {
		t.Errorf("shown: %.500s", text)
	}
	if one := got.Items[0]; one.PodsLeft != 1 || one.Blockers[0].PodCount != 0 {
		t.Errorf("%d pods are left, %d are blocked", one.PodsLeft, one.Blockers[0].PodCount)
	}
}

func TestThePodsThatWereAskedToLeave(t *testing.T) {
	t.Parallel()
	pod := func(name string, change func(*view.Leaving)) view.Leaving {
		one := view.Leaving{
			Pod:        &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}},
			Evacuation: &v1alpha1.Evacuation{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: *ago(time.Minute)}, Status: v1alpha1.EvacuationStatus{Message: "It is told."}},
		}
		change(&one)
		return one
	}
	pods := []view.Leaving{
		pod("going", func(l *view.Leaving) {
			l.Pod.DeletionTimestamp, l.Pod.DeletionGracePeriodSeconds = ago(-30*time.Second), new(int64(30))
		}),
		pod("moved", func(l *view.Leaving) { l.Evacuation.Status.ActiveEvacuatorClass = "mover.example.com" }),
		pod("asked", func(*view.Leaving) {}),
		pod("refused", func(l *view.Leaving) { l.Evacuation.Status = refusal("db", metav1.ConditionTrue) }),
		{Pod: &corev1.Pod{}},
	}
	for i := range 20 {
		pods = append(pods, pod(fmt.Sprintf("z-%02d", i), func(*view.Leaving) {}))
	}
	got := view.One(&view.Snapshot{Now: noon, Maintenances: []*v1alpha1.NodeMaintenance{kernel(node("node-1", 4))}, Pods: map[string][]view.Leaving{"node-1": pods}}).Nodes[0]
	var told []string
	for _, p := range got.Pods {
		if !strings.HasPrefix(p.Name, "z-") {
			told = append(told, fmt.Sprintf("%s %s: %s", p.Name, p.State, p.Message))
		}
	}
	want := []string{"refused refused: PDBExhausted: The budget db needs 2 pods.", "asked asked: It is told."}
	difference.None(t, "pods", want, told)
	if len(got.Pods) != 10 || got.OmittedPodsCount != 14 {
		t.Errorf("%d pods are shown, and %d more", len(got.Pods), got.OmittedPodsCount)
	}
	// A budget that never allows anything is that of the pod, too.
	never := kernel(node("node-1", 4, held1(v1alpha1.BlockerPDBUnsatisfiable, "web", 1), held1(v1alpha1.BlockerPDBUnsatisfiable, "db", 1)))
	got = view.One(&view.Snapshot{Now: noon, Maintenances: []*v1alpha1.NodeMaintenance{never}, Pods: map[string][]view.Leaving{"node-1": pods[3:4]}}).Nodes[0]
	if got.Pods[0].Reason != string(v1alpha1.BlockerPDBUnsatisfiable) || got.Pods[0].Message != "PDBUnsatisfiable: db is used up." {
		t.Errorf("%+v", got.Pods[0])
	}
	got = view.One(&view.Snapshot{Now: noon, Maintenances: []*v1alpha1.NodeMaintenance{kernel(node("node-1", 4))}, Pods: map[string][]view.Leaving{"node-1": pods[:2]}}).Nodes[0]
	if got.Pods[0].Message != "by mover.example.com: It is told." || got.Pods[1].Message != "grace period ends at 12:00:30 UTC" {
		t.Errorf("%q, %q", got.Pods[0].Message, got.Pods[1].Message)
	}
}
