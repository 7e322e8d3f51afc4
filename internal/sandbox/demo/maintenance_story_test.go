package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// moment is a change and when it was seen.
type moment struct {
	at     time.Duration
	change watch.EventType
	object runtime.Object
}

func node(unschedulable bool) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1"},
		Spec:       corev1.NodeSpec{Unschedulable: unschedulable},
	}
}

func pod(name string, priority int32, terminating bool) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{Priority: &priority},
	}
	if terminating {
		p.DeletionTimestamp = &metav1.Time{}
	}
	return p
}

// detached is a pod that serves until it is replaced.
func detached(name string) *corev1.Pod {
	p := pod(name, 0, false)
	p.Annotations = map[string]string{v1alpha1.SurgeAnnotation: "{}"}
	return p
}

func agent(name string, terminating bool) *corev1.Pod {
	p := pod(name, 0, terminating)
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}}
	return p
}

func evacuation(pod, refusal string) *v1alpha1.Evacuation {
	e := &v1alpha1.Evacuation{Spec: v1alpha1.EvacuationSpec{PodRef: v1alpha1.LocalPodReference{Name: pod, UID: types.UID(pod)}}}
	if refusal != "" {
		e.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionEvictionRefused, Status: metav1.ConditionTrue, Reason: "PDBExhausted", Message: refusal,
		}}
	}
	return e
}

func replaced(pod string) *v1alpha1.Evacuation {
	e := evacuation(pod, "")
	e.Status.ActiveEvacuatorCompleted, e.Status.Message = true, "Pod "+pod+" is replaced."
	return e
}

func budget(healthy int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: policyv1.PodDisruptionBudgetStatus{
		CurrentHealthy: healthy, DesiredHealthy: 1, ExpectedPods: 2,
	}}
}

func drained() *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{Status: v1alpha1.NodeMaintenanceStatus{Conditions: []metav1.Condition{{
		Type: v1alpha1.ConditionDrained, Status: metav1.ConditionTrue, Message: "no pod is left",
	}}}}
}

var aDrain = []moment{
	{0, watch.Added, node(false)},
	{0, watch.Added, pod("web-a", 0, false)},
	{0, watch.Added, pod("web-b", 0, false)},
	{0, watch.Added, pod("db", 1000, false)},
	{0, watch.Added, agent("agent-1", false)},
	{0, watch.Added, budget(2)},
	{0, watch.Added, &v1alpha1.NodeMaintenance{}},
	{100 * time.Millisecond, watch.Modified, node(true)},
	{200 * time.Millisecond, watch.Added, evacuation("web-a", "")},
	{200 * time.Millisecond, watch.Added, evacuation("web-b", "")},
	{200 * time.Millisecond, watch.Modified, detached("web-a")},
	{250 * time.Millisecond, watch.Modified, replaced("web-a")},
	{250 * time.Millisecond, watch.Modified, replaced("web-a")},
	{300 * time.Millisecond, watch.Modified, pod("web-a", 0, true)},
	{300 * time.Millisecond, watch.Deleted, pod("web-a", 0, true)},
	{400 * time.Millisecond, watch.Modified, budget(1)},
	{400 * time.Millisecond, watch.Modified, evacuation("web-b", "the budget allows none")},
	{500 * time.Millisecond, watch.Modified, evacuation("web-b", "the budget allows none yet")},
	{900 * time.Millisecond, watch.Modified, budget(2)},
	{1000 * time.Millisecond, watch.Modified, pod("web-b", 0, true)},
	{1000 * time.Millisecond, watch.Deleted, pod("web-b", 0, true)},
	{1100 * time.Millisecond, watch.Added, evacuation("db", "")},
	{1200 * time.Millisecond, watch.Modified, pod("db", 1000, true)},
	{3200 * time.Millisecond, watch.Deleted, pod("db", 1000, true)},
	{3200 * time.Millisecond, watch.Added, evacuation("agent-1", "")},
	{3300 * time.Millisecond, watch.Modified, agent("agent-1", true)},
	{3300 * time.Millisecond, watch.Deleted, agent("agent-1", true)},
	{3300 * time.Millisecond, watch.Modified, drained()},
	{3400 * time.Millisecond, watch.Modified, node(false)},
	{3400 * time.Millisecond, watch.Modified, node(false)},
	{3500 * time.Millisecond, watch.Added, agent("agent-2", false)},
	{3500 * time.Millisecond, watch.Modified, agent("agent-2", false)},
}

const wantStory = `   0.1s  cordoned  node-1
   0.2s  wave 2    2 with priority up to 0
   0.2s  surges    web-a serves until it is replaced
   0.2s  replaced  Pod web-a is replaced.
   0.3s  evicted   web-a
   0.4s  waits     web-b (PDBExhausted): the budget allows none
   1.0s  evicted   web-b
   1.1s  wave 3    1 with priority up to 1000
   1.2s  evicted   db
   3.2s  gone      db, 2.0s after its eviction
   3.2s  wave 4    1 of DaemonSets
   3.3s  deleted   agent-1
   3.3s  drained   Drained=True: no pod is left
   3.4s  back      node-1 is schedulable again
   3.5s  returns   agent-2

node-1 was drained in 3.3s: 3 pods evicted (1 waited for a budget, 1 replaced before), 1 of DaemonSets deleted; pods that stay: none.
web never had fewer than 1 of 2 pods ready; its budget requires 1.
`

func TestStoryPrintsEachEventOnceWithItsTime(t *testing.T) {
	var out strings.Builder
	s := newDrain("node-1", plan, printer(&out))
	for _, m := range aDrain {
		if m.at < 3500*time.Millisecond && s.isBack() {
			t.Errorf("the node is back before %s", m.at)
		}
		if err := s.see(m.at, watch.Event{Type: m.change, Object: m.object}); err != nil {
			t.Fatal(err)
		}
	}
	if !s.isDrained() || !s.isBack() {
		t.Errorf("drained %v, back %v, want both", s.isDrained(), s.isBack())
	}
	s.printSummary(&out)
	if diff := cmp.Diff(wantStory, out.String()); diff != "" {
		t.Errorf("story (-want +got):\n%s", diff)
	}
}

func TestAStoryDoesNotGoOnWithoutItsWatches(t *testing.T) {
	s := newDrain("node-1", plan, printer(&strings.Builder{}))
	err := s.see(0, watch.Event{Type: watch.Error})
	if err == nil || !strings.Contains(err.Error(), "a watch ended early") {
		t.Errorf("error is %v, want that a watch ended early", err)
	}
}
