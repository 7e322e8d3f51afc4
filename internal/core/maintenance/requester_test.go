package maintenance_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// led names a responder in a pod.
func led(pod *corev1.Pod) {
	pod.Spec.EvictionResponders = []corev1.EvictionResponder{{Name: "example.com/leader", Priority: new(int32(20000))}}
}

// led is a world with one pod that names a responder, on a node that is cordoned and drained.
func ledWorld(t *testing.T, with ...func(*corev1.Pod)) (*world, *corev1.Pod) {
	w := newWorld(t, "n")
	w.maintenance("upgrade", v1alpha1.StageDrain, nil, "n")
	pod := w.run("n", 1, 0, append([]func(*corev1.Pod){led}, with...)...)[0]
	w.requester = evictionrequest.Availability{Served: true, Able: true, Now: w.now}
	return w, pod
}

// ask gives a pod a request of ours that is so old.
func (w *world) ask(pod *corev1.Pod, age time.Duration) *lifecyclev1alpha1.EvictionRequest {
	request := evictionrequest.New(pod)
	request.UID, request.Generation, request.CreationTimestamp = "request", 1, metav1.NewTime(w.requester.Now.Add(-age))
	w.requests[pod.UID] = request
	return request
}

func answered(request *lifecyclev1alpha1.EvictionRequest, conditions ...metav1.Condition) {
	request.Status.ObservedGeneration, request.Status.Conditions = new(request.Generation), conditions
}

// asks tells by what the pods of a decision are asked, and what is withdrawn.
func asks(d maintenance.Decision) string {
	var words []string
	for _, node := range d.Nodes {
		for _, e := range node.Withdraw {
			words = append(words, "withdraw Evacuation of "+e.Spec.PodRef.Name)
		}
		for _, w := range node.WithdrawRequests {
			what := "withdraw EvictionRequest of " + w.Request.Spec.Target.Pod.Name
			if w.Withdrawn.Annotations[v1alpha1.UnansweredAnnotation] == "true" {
				what += ", unanswered"
			}
			words = append(words, what)
		}
		for _, r := range node.Evacuate {
			by := "Evacuation"
			if r.EvictionRequest != nil {
				by = "EvictionRequest"
			}
			words = append(words, by+" of "+r.Pod.Name)
		}
	}
	return strings.Join(words, "; ")
}

const byRequest, byEvacuation = "EvictionRequest of pod-0001", "Evacuation of pod-0001"

// ways are by what a pod that names responders is asked, when something is otherwise.
var ways = map[string]struct {
	change func(w *world, pod *corev1.Pod)
	want   string
}{
	"a pod that names responders":           {func(*world, *corev1.Pod) {}, byRequest},
	"one that names none":                   {func(_ *world, pod *corev1.Pod) { pod.Spec.EvictionResponders = nil }, byEvacuation},
	"one of a DaemonSet":                    {func(w *world, pod *corev1.Pod) { ofDaemonSet(pod); w.runners.DaemonSets = true }, byEvacuation},
	"one of a PodGroup":                     {func(_ *world, pod *corev1.Pod) { pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{} }, byEvacuation},
	"the API is not served":                 {func(w *world, _ *corev1.Pod) { w.requester = evictionrequest.Availability{} }, byEvacuation},
	"nobody answers":                        {func(w *world, _ *corev1.Pod) { w.requester.Able = false }, byEvacuation},
	"it is not known whether anybody does":  {func(w *world, _ *corev1.Pod) { w.requester = evictionrequest.Availability{Unknown: "so"} }, ""},
	"it has an Evacuation of ours":          {func(w *world, pod *corev1.Pod) { w.evacuate(pod) }, ""},
	"it has one that somebody else asks by": {func(w *world, pod *corev1.Pod) { w.evacuate(pod).Finalizers = nil }, byRequest},
	"it is asked by a request":              {func(w *world, pod *corev1.Pod) { w.ask(pod, 0) }, ""},
	"also where nobody answers others":      {func(w *world, pod *corev1.Pod) { w.ask(pod, 0); w.requester.Able = false }, ""},
	"asked by both": {
		func(w *world, pod *corev1.Pod) { w.ask(pod, 0); w.evacuate(pod) },
		"withdraw EvictionRequest of pod-0001",
	},
	"nobody has answered for 29 seconds": {func(w *world, pod *corev1.Pod) { w.ask(pod, 29*time.Second) }, ""},
	"nobody has answered for 30 seconds": {
		func(w *world, pod *corev1.Pod) { w.ask(pod, 30*time.Second) },
		"withdraw EvictionRequest of pod-0001, unanswered",
	},
	"but we are the controller": {func(w *world, pod *corev1.Pod) { w.ask(pod, time.Hour); w.requester.Acting = true }, ""},
	"but our clock is skewed":   {func(w *world, pod *corev1.Pod) { w.ask(pod, time.Hour); w.clockSkewed = true }, ""},
	"but others have an answer": {func(w *world, pod *corev1.Pod) {
		w.ask(pod, time.Minute)
		w.requester.Answered = w.now.Add(-time.Second)
	}, ""},
	"for longer than anybody may take": {func(w *world, pod *corev1.Pod) {
		w.ask(pod, 11*time.Minute)
		w.requester.Answered = w.now.Add(-time.Second)
	}, "withdraw EvictionRequest of pod-0001, unanswered"},
	"it has an answer": {func(w *world, pod *corev1.Pod) { answered(w.ask(pod, time.Hour)) }, ""},
	"unanswered and withdrawn, by any manager": {func(w *world, pod *corev1.Pod) {
		w.requests[pod.UID] = evictionrequest.WithdrawnAt(w.ask(pod, time.Minute), w.now, true)
	}, byEvacuation},
	"withdrawn before, and to be deleted first": {func(w *world, pod *corev1.Pod) {
		w.requests[pod.UID] = evictionrequest.WithdrawnAt(w.ask(pod, time.Minute), w.now, false)
	}, ""},
	"somebody else's has the name": {func(w *world, pod *corev1.Pod) { w.ask(pod, 0).Spec.Requester = "example.com/mallory" }, byEvacuation},
	"it is about another pod":      {func(w *world, pod *corev1.Pod) { w.ask(pod, 0).Spec.Target.Pod.UID = "another" }, byEvacuation},
	"it is held while it is deleted": {func(w *world, pod *corev1.Pod) {
		w.ask(pod, 0).DeletionTimestamp = new(metav1.NewTime(w.now))
	}, byEvacuation},
	"the maintenance is complete": {func(w *world, pod *corev1.Pod) {
		w.ask(pod, 0)
		w.maintenances[0].Spec.Stage = v1alpha1.StageComplete
		w.maintenances[0].Status.StageStatuses = []v1alpha1.StageStatus{{Name: v1alpha1.StageDrain, StartTimestamp: new(metav1.NewTime(dawn))}}
	}, "withdraw EvictionRequest of pod-0001"},
	"the pod has ended": {
		func(w *world, pod *corev1.Pod) { w.ask(pod, 0); pod.Status.Phase = corev1.PodSucceeded },
		"withdraw EvictionRequest of pod-0001",
	},
	"a later wave": {
		func(w *world, pod *corev1.Pod) {
			w.run("n", 1, -10)
			pod.Spec.Priority = new(int32(5))
			w.maintenances[0].Spec.DrainPlan = []v1alpha1.DrainPlanEntry{{PodPriority: -10}, {PodPriority: 10}}
		},
		"Evacuation of pod-0002",
	},
}

func TestKindOfRequestOfAPod(t *testing.T) {
	t.Parallel()
	for name, test := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, pod := ledWorld(t)
			test.change(w, pod)
			if got := asks(maintenance.Decide(w.snapshot())); got != test.want {
				t.Errorf("the decision is %q, want %q", got, test.want)
			}
		})
	}
}

func TestResultOfARequestIsReported(t *testing.T) {
	t.Parallel()
	active := func(responder, message string) *lifecyclev1alpha1.Eviction {
		e := &lifecyclev1alpha1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pod-1-pod-0001"}}
		e.Status.TargetResponders = []lifecyclev1alpha1.TargetResponder{{Name: responder, State: lifecyclev1alpha1.ResponderStateActive}}
		e.Status.Responders = []lifecyclev1alpha1.ResponderStatus{{Name: responder, StartTime: new(metav1.NewTime(dawn)), Message: &message}}
		return e
	}
	hostile := strings.Repeat("\x1b[2Jx", 1000)
	for name, test := range map[string]struct {
		change func(w *world, pod *corev1.Pod)
		want   string
	}{
		"no responder is active": {func(*world, *corev1.Pod) {}, ""},
		"a responder is active": {
			func(w *world, pod *corev1.Pod) { w.evictions[pod.UID] = active("example.com/leader", "elects another") },
			"EvacuatorRunning Responder/example.com/leader",
		},
		"the evictor begins": {func(w *world, pod *corev1.Pod) {
			w.evictions[pod.UID] = active(evictionrequest.DefaultEvictor, "Pod pod-0001 is being evicted.")
		}, ""},
		"the evictor is refused": {func(w *world, pod *corev1.Pod) {
			w.evictions[pod.UID] = active(evictionrequest.DefaultEvictor, "Eviction refused: no.")
			w.evacuate(pod).Finalizers = []string{v1alpha1.LifecycleInstigator}
			w.answer(pod, v1alpha1.BlockerEvictionError)
		}, "EvictionError Pod/default/pod-0001"},
		"no responder is left": {func(w *world, pod *corev1.Pod) {
			answered(w.requests[pod.UID], metav1.Condition{Type: "Failed", Status: metav1.ConditionTrue, Reason: "NoFurtherResponder", Message: "No responder is left."})
		}, "EvictionRequestFailed EvictionRequest/default/node-maintenance-uid-0001"},
		"it is unknown whether requests work": {func(w *world, pod *corev1.Pod) {
			delete(w.requests, pod.UID)
			w.requester = evictionrequest.Availability{Unknown: "Nobody has said so."}
		}, "EvictionRequestPending Pod/default/pod-0001"},
		"a responder that talks much": {
			func(w *world, pod *corev1.Pod) { w.evictions[pod.UID] = active("example.com/leader", hostile) },
			"EvacuatorRunning Responder/example.com/leader",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, pod := ledWorld(t)
			w.ask(pod, time.Second)
			test.change(w, pod)
			status := w.decide(w.snapshot()).Maintenances[0].Status.NodeStatuses[0]
			if _, asked := w.requests[pod.UID]; asked && (status.PodsEvacuating != 1 || status.PodsPendingEvacuation != 0) {
				t.Errorf("%d pods are evacuating and %d pending, want one evacuating", status.PodsEvacuating, status.PodsPendingEvacuation)
			}
			if got := boundedBlockers(t, status.Blockers); got != test.want {
				t.Errorf("the blocker is %q, want %q", got, test.want)
			}
		})
	}
}

// boundedBlockers are types and objects of blockers, whose messages are short and printable.
func boundedBlockers(t *testing.T, blockers []v1alpha1.Blocker) string {
	t.Helper()
	got := ""
	for _, b := range blockers {
		got += fmt.Sprintf("%s %s", b.Type, blocker.ObjectText(b.Object))
		if text := blocker.Explain(b); len(text) > 800 || strings.ContainsRune(text, '\x1b') {
			t.Errorf("the message of a responder is repeated in %d bytes: %q", len(text), text)
		}
	}
	return got
}

// Who gets no answer is told once, and the next look is when the time is over.
func TestUnansweredRequestIsReported(t *testing.T) {
	t.Parallel()
	w, pod := ledWorld(t)
	w.ask(pod, 10*time.Second)
	if d := maintenance.Decide(w.snapshot()); d.RequeueAfter != 20*time.Second {
		t.Errorf("it is looked at again after %s, want 20s", d.RequeueAfter)
	}
	w.ask(pod, 31*time.Second)
	events := w.decide(w.snapshot()).Nodes[0].WithdrawRequests[0].Events
	if diff := cmp.Diff([]string{"Pod/pod-0001 " + v1alpha1.EventEvictionRequestUnanswered}, reasons(events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
