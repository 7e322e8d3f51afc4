package nodemaintenance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// slowly has each read of a list take a while.
func (w *world) slowly(reading time.Duration) {
	w.api.Refuse = func(request string) error {
		if strings.HasPrefix(request, "list ") {
			w.clock.Step(reading)
		}
		return nil
	}
}

func TestAGroupThatTakesLongToThinkAboutRestsAsLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aMaintenance("upgrade", "old"), aNode("one"))
	r := w.manager()
	w.reconcile(r)
	w.slowly(10 * time.Millisecond)
	r.schedule.touch(w.clock.Now(), 0, group.Node("one"))

	before := w.clock.Now()
	if _, err := r.Reconcile(w.t.Context(), group.Node("one")); err != nil {
		t.Fatalf("reconcile: %v", err)
	}
	thought := w.clock.Since(before)
	r.schedule.touch(w.clock.Now(), 0, group.Node("one"))
	w.clock.Step(20 * time.Millisecond)

	result, err := r.Reconcile(w.t.Context(), group.Node("one"))

	if want := thought - 20*time.Millisecond; err != nil || result.RequeueAfter != want {
		t.Errorf("20ms after a pass that thought for %s the next one begins in %s (%v), want %s", thought, result.RequeueAfter, err, want)
	}
	w.clock.Step(thought)
	if _, err := r.Reconcile(w.t.Context(), group.Node("one")); err != nil {
		t.Fatalf("reconcile: %v", err)
	}
	if due := r.dueBy(w.clock.Now()); len(due) > 0 {
		t.Errorf("after the rest %v still wait", due)
	}
}

func TestAGroupHasOnePassAtATime(t *testing.T) {
	t.Parallel()
	now := noon
	s := newSchedule()
	var woken []group.Member
	s.attach(func(member group.Member, _ time.Duration) { woken = append(woken, member) })
	s.setNode(aNode("one"))
	s.setNode(aNode("two"))
	s.setMaintenance(aMaintenance("upgrade", "old"))
	s.touch(now, 0, group.Node("one"), group.Node("two"))

	first, _ := s.begin(now, group.Node("one"))
	if first == nil {
		t.Fatal("nothing is due")
	}
	if second, again := s.begin(now, group.Node("two")); second != nil || again != 0 {
		t.Error("the other node of the group has a pass of its own")
	}
	s.touch(now, 0, group.Node("two"))
	if second, _ := s.begin(now, group.Node("two")); second != nil {
		t.Error("two passes over one group run at the same time")
	}
	woken = nil
	s.end(now, first, 0, 0)
	if len(woken) != 1 || woken[0] != group.Node("two") {
		t.Errorf("after the pass %v come again, want node two, which came meanwhile", woken)
	}
	if second, _ := s.begin(now, group.Node("two")); second == nil {
		t.Error("what came during a pass is forgotten")
	}
}

// Groups may meet while one of them has a pass.
func TestGroupsThatMeetWaitForEachOther(t *testing.T) {
	t.Parallel()
	s := newSchedule()
	one, two := aNode("one"), aNode("two")
	one.Labels["pool"], two.Labels["pool"] = "a", "b"
	s.setNode(one)
	s.setNode(two)
	s.setMaintenance(aMaintenance("first", "a"))
	s.setMaintenance(aMaintenance("second", "b"))
	s.touch(noon, 0, group.Node("one"), group.Node("two"))
	first, _ := s.begin(noon, group.Node("one"))
	if got := len(first.group.Nodes); got != 1 {
		t.Fatalf("the first group has %d nodes, want 1", got)
	}

	joined := aNode("two")
	joined.Labels["pool"] = "a"
	s.setNode(joined)
	if second, _ := s.begin(noon, group.Node("two")); second != nil {
		t.Error("a pass over a node that joined begins before the group's own ends")
	}
	s.end(noon, first, 0, 0)
	second, _ := s.begin(noon, group.Node("two"))
	if second == nil || len(second.group.Nodes) != 2 {
		t.Errorf("the next pass is over %v, want both nodes", second)
	}
}

// Of many groups that come together none has pods leave while others still cordon
// nodes on which they would land; a group that is alone waits for nobody.
func TestPodsStayWhileACrowdCordons(t *testing.T) {
	t.Parallel()
	s := newSchedule()
	first, second := &group.Group{Maintenances: []string{"first"}}, &group.Group{Maintenances: []string{"second"}}
	s.cordons(noon, first, true)
	if got := s.crowd(noon, first); got != 0 {
		t.Errorf("alone the pods of a group wait for %s", got)
	}
	s.cordons(noon, first, true)
	s.cordons(noon.Add(30*time.Millisecond), second, false)
	if got, want := s.crowd(noon.Add(50*time.Millisecond), first), 80*time.Millisecond; got != want {
		t.Errorf("beside a group that cordons the pods wait for %s, want %s", got, want)
	}
	if got := s.crowd(noon.Add(50*time.Millisecond), second); got != 0 {
		t.Errorf("the pods of a group that did not ask to wait do so for %s", got)
	}
	for at := 100 * time.Millisecond; at < 5*time.Second; at += 50 * time.Millisecond {
		s.cordons(noon.Add(at), second, false)
		if got := s.crowd(noon.Add(at), first); got > 0 != (at < longestCrowd) {
			t.Fatalf("after %s of cordons the pods wait for %s more, want them to wait for %s at the most", at, got, longestCrowd)
		}
	}
}

// A defect that one group meets is told, and stops that group alone.
func TestAPanicStopsOneGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aMaintenance("bad", "a"), aMaintenance("good", "b"), inPool("one", "a"), inPool("two", "b"))
	r := w.manager()
	r.decide = func(snapshot maintenance.Snapshot) maintenance.Decision {
		if snapshot.Maintenances[0].Name == "bad" {
			panic("nil map")
		}
		return maintenance.Decide(snapshot)
	}
	w.reconcile(r)

	if got := w.node("one").Spec.Unschedulable; got {
		t.Error("the node of the group that panics is cordoned")
	}
	if got := w.node("two").Spec.Unschedulable; !got {
		t.Error("the node of the other group is not cordoned")
	}
	if !slices.ContainsFunc(w.api.Events(), func(e string) bool { return strings.HasPrefix(e, "DecisionFailed on NodeMaintenance/bad: ") }) {
		t.Errorf("events are %q, want DecisionFailed", w.api.Events())
	}
	if got := testutil.ToFloat64(r.metrics.panics); got != 1 {
		t.Errorf("%v panics are counted, want 1", got)
	}
	if due := w.nextDue(r); due == 0 || due > lastRetry {
		t.Errorf("the group that panics is due in %s, want it tried again within a minute", due)
	}
}

func inPool(name, pool string) *corev1.Node {
	node := aNode(name)
	node.Labels["pool"] = pool
	return node
}

// Requests to all groups but the last are refused for ever: that one is not kept waiting.
func TestNobodyPaysForRefusedNeighbours(t *testing.T) {
	t.Parallel()
	var objects []client.Object
	for i := range 20 {
		pool, node := fmt.Sprintf("p%02d", i), fmt.Sprintf("node-%02d", i)
		objects = append(objects, aMaintenance(fmt.Sprintf("m%02d", i), pool), inPool(node, pool), aPod("pod-"+node, node))
	}
	w := newWorld(t, objects...)
	asked := map[string]int{}
	var mu sync.Mutex
	w.api.Refuse = func(request string) error {
		if !strings.HasPrefix(request, "create Evacuation") {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		asked[request]++
		if strings.Contains(request, "node-19") {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "evacuations"}, "x", errors.New("exceeded quota: none"))
	}
	r := w.manager()
	w.reconcile(r)
	// They came together, so their pods wait until all are cordoned.
	w.clock.Step(crowdGap)
	w.must(runDue(t.Context(), r, w.clock))

	if diff := cmp.Diff([]string{"pod-node-19"}, w.evacuatedPods()); diff != "" {
		t.Errorf("evacuated pods (-want +got):\n%s", diff)
	}
	w.clock.Step(2 * statusInterval)
	w.must(runDue(t.Context(), r, w.clock))
	m := w.maintenance("m00")
	blocked := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionBlocked)
	if blocked == nil || blocked.Status != metav1.ConditionTrue || !strings.Contains(blocked.Message, "exceeded quota: none") {
		t.Errorf("the maintenance of the first node says %+v after two seconds, want what the API server said", blocked)
	}
	for range 300 {
		w.clock.Step(time.Second)
		w.must(runDue(t.Context(), r, w.clock))
	}
	for request, times := range asked {
		if times > 11 {
			t.Fatalf("%d times in five minutes: %s", times, request)
		}
		if times < 7 && !strings.Contains(request, "node-19") {
			t.Fatalf("only %d times in five minutes, want once in a minute at least: %s", times, request)
		}
	}
}
