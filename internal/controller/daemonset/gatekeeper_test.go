package daemonset

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/difference"
)

const theirs = "example.com/theirs"

// gates are the names of the gates that hold a pod back.
func gates(pod *corev1.Pod) []string {
	var names []string
	for _, gate := range pod.Spec.SchedulingGates {
		names = append(names, gate.Name)
	}
	return names
}

func suppressing(node *corev1.Node) *corev1.Node {
	node.Spec.Taints = []corev1.Taint{{Key: v1alpha1.DaemonSetTaint, Effect: corev1.TaintEffectNoSchedule}}
	return node
}

func TestStatesOfAPodThatIsHeldBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		node  *corev1.Node
		gates []string
		want  []string
		gone  bool
		event []string
	}{
		"the maintenance goes on": {node: aNode(1000), gates: []string{v1alpha1.MaintenanceGate}, want: []string{v1alpha1.MaintenanceGate}},
		"the maintenance is complete": {
			node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, gates: []string{v1alpha1.MaintenanceGate},
			event: []string{"DaemonSetPodReleased on Pod/log-held: No maintenance keeps the pod away from node one."},
		},
		"somebody else holds it too": {
			node: aNode(999), gates: []string{theirs, v1alpha1.MaintenanceGate}, want: []string{theirs},
			event: []string{"DaemonSetPodReleased on Pod/log-held: No maintenance keeps the pod away from node one."},
		},
		"only somebody else holds it": {node: aNode(999), gates: []string{theirs}, want: []string{theirs}},
		"the node is gone": {
			gates: []string{v1alpha1.MaintenanceGate},
			event: []string{"DaemonSetPodReleased on Pod/log-held: The node that the pod was held back from does not exist."},
		},
		"the node takes no DaemonSet at all": {node: suppressing(aNode(1000)), gates: []string{v1alpha1.MaintenanceGate}, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := held(test.gates...)
			w := newWorld(t, pod)
			if test.node != nil {
				w.must(w.api.Create(t.Context(), test.node))
			}
			w.reconcile(w.gatekeeper(), pod)
			stored, there := read(w, pod)
			if there == test.gone {
				t.Fatalf("the pod is there: %v, want %v", there, !test.gone)
			}
			if diff := cmp.Diff(test.want, gates(stored)); there && diff != "" {
				t.Errorf("gates (-want +got):\n%s", diff)
			}
			difference.None(t, "events", test.event, w.api.Events())
		})
	}
}

// The cache is behind: the API server knows already that the pod must not start.
func TestAPodIsNotReleasedOnOldState(t *testing.T) {
	t.Parallel()
	pod := held(v1alpha1.MaintenanceGate)
	w, behind := newWorld(t, pod, aNode(1000)), newWorld(t, pod)
	r := behind.gatekeeper()
	r.live = w.api
	w.reconcile(r, pod)
	if len(behind.api.Writes()) > 0 {
		t.Errorf("writes are %q, want none", behind.api.Writes())
	}
}

// Somebody makes a removed pod again and again: that is no race.
func TestRemovalsOfOneDaemonSetAreSpacedOut(t *testing.T) {
	t.Parallel()
	pod := held(v1alpha1.MaintenanceGate)
	w := newWorld(t, suppressing(aNode(1000)))
	r := w.gatekeeper()
	var pauses []time.Duration
	for range 4 {
		w.must(w.api.Create(t.Context(), pod.DeepCopy()))
		due := w.reconcile(r, pod)
		pauses = append(pauses, due)
		w.clock.Step(due)
		w.reconcile(r, pod)
		if _, there := read(w, pod); there {
			t.Fatalf("the pod is still there after %s", due)
		}
	}
	difference.None(t, "pauses", []time.Duration{0, 1 * time.Second, 2 * time.Second, 4 * time.Second}, pauses)
}

// A node that changes brings the pods that it held back, and those that may leave.
func TestANodeThatChangesBringsItsPods(t *testing.T) {
	t.Parallel()
	pod, waiting := aPod("log-a"), held(v1alpha1.MaintenanceGate)
	e := asked(pod)
	w := newWorld(t, pod, waiting, e)
	free := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	cordoned := free.DeepCopy()
	cordoned.Spec.Unschedulable = true
	for name, test := range map[string]struct {
		old, now *corev1.Node
		want     bool
	}{
		"other targets":        {old: aNode(1), now: aNode(2), want: true},
		"no targets any more":  {old: aNode(1), now: free, want: true},
		"the taint":            {old: aNode(1), now: suppressing(aNode(1)), want: true},
		"gone":                 {old: aNode(1), want: true},
		"nothing that matters": {old: free, now: cordoned},
	} {
		t.Run(name, func(t *testing.T) {
			for _, one := range []struct {
				enqueue func(context.Context, *corev1.Node, queue)
				want    client.Object
			}{
				{w.evacuator().enqueueNode, e},
				{w.gatekeeper().enqueueNode, waiting},
			} {
				var want []string
				if test.want {
					want = []string{one.want.GetName()}
				}
				difference.None(t, "brought", want, enqueued(t, onSuppression(one.enqueue), test.old, test.now))
			}
		})
	}
}

// enqueued are the names of what a change of a node brings.
func enqueued(t *testing.T, handler handler.TypedFuncs[*corev1.Node, reconcile.Request], old, now *corev1.Node) []string {
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	if now == nil {
		handler.Delete(t.Context(), event.TypedDeleteEvent[*corev1.Node]{Object: old}, q)
	} else {
		handler.Update(t.Context(), event.TypedUpdateEvent[*corev1.Node]{ObjectOld: old, ObjectNew: now}, q)
	}
	var names []string
	for range q.Len() {
		request, _ := q.Get()
		names = append(names, request.Name)
	}
	return names
}
