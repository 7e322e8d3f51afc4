package surge

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/fault"
)

// A manager that dies behind any of its writes leaves a state from which the
// next one, which remembers nothing, comes to the same end.
func TestAManagerThatDiesBetweenAnyTwoWritesIsContinued(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		play func(*world)
		// writes are those of a manager that nobody disturbs.
		writes []string
		end    []string
	}{
		"replaced": {
			play:   func(w *world) { w.settle(true) },
			writes: []string{"patch Pod web-0", "patch status of Evacuation uid-of-web-0-web-0"},
			end:    []string{"web-1 of web-abc, map[app:web pod-template-hash:abc], map[]"},
		},
		"cancelled": {
			play: func(w *world) {
				w.settle(false)
				w.withdraw()
				w.settle(false)
				w.settle(true)
			},
			writes: []string{"patch Pod web-0", "patch Pod web-1", "patch Pod web-0", "patch Pod web-0"},
			end:    []string{"web-0 of web-abc, map[app:web pod-template-hash:abc], map[]"},
		},
		"given up": {
			play: func(w *world) {
				w.settle(false)
				w.clock.Step(11 * time.Minute)
				w.settle(false)
			},
			writes: []string{
				"patch Pod web-0", "patch status of Evacuation uid-of-web-0-web-0", "patch Pod web-1", "patch Pod web-0", "patch Pod web-0",
			},
			end: []string{"web-0 of web-abc, map[app:web pod-template-hash:abc], map[]"},
		},
		"the Deployment is deleted": {
			play: func(w *world) {
				w.settle(false)
				w.withdraw()
				w.must(w.api.Delete(w.t.Context(), aDeployment()))
				w.must(w.api.Delete(w.t.Context(), aSet()))
				w.settle(true)
			},
			writes: []string{"patch Pod web-0", "delete Pod web-0"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for dies := range len(test.writes) + 1 {
				w := newSurge(t, dies)
				test.play(w)
				difference.None(t, fmt.Sprintf("the end after dying behind write %d", dies), test.end, w.state())
				difference.None(t, fmt.Sprintf("the writes with a death behind write %d", dies), test.writes, w.api.Writes())
			}
		})
	}
}

// newSurge is a world whose manager dies after so many writes.
func newSurge(t *testing.T, dies int) *world {
	t.Helper()
	w := newWorld(t)
	w.ask(w.pod("web-0"))
	w.api.KillAfter(dies)
	return w
}

// settle lets everybody act until nothing changes any more. Replacements become
// ready if they are let.
func (w *world) settle(ready bool) {
	w.t.Helper()
	before, quiet := "", 0
	for range 50 {
		if _, err := w.reconciler.Reconcile(w.t.Context(), web); errors.Is(err, fault.ErrKilled) {
			w.restart()
		} else {
			w.must(err)
		}
		w.replicaSets()
		w.evict()
		if ready {
			w.setReady()
		}
		after := fmt.Sprint(w.state(), w.api.Writes())
		if after != before {
			before, quiet = after, 0
			continue
		}
		if quiet++; quiet == 3 {
			return
		}
	}
	w.t.Fatal("the world does not come to rest")
}

// replicaSets does what the ReplicaSet controller does.
func (w *world) replicaSets() {
	w.t.Helper()
	set := aSet()
	if w.api.Get(w.t.Context(), client.ObjectKeyFromObject(set), set) != nil {
		w.collect()
		return
	}
	var owned []*corev1.Pod
	for _, pod := range w.pods() {
		if matches := pod.Labels[hashLabel] == "abc"; matches != (pod.OwnerReferences != nil) {
			pod.OwnerReferences = nil
			if matches {
				pod.OwnerReferences = owner("ReplicaSet", "web-abc")
			}
			w.must(w.api.Update(w.t.Context(), &pod))
		}
		if pod.OwnerReferences != nil {
			owned = append(owned, &pod)
		}
	}
	switch {
	case len(owned) == 0:
		newcomer := aPod("web-1")
		newcomer.CreationTimestamp = metav1.NewTime(w.clock.Now())
		newcomer.Status.Conditions[0].Status = corev1.ConditionFalse
		w.must(w.api.Create(w.t.Context(), newcomer))
	case len(owned) > 1:
		slices.SortFunc(owned, func(a, _ *corev1.Pod) int {
			if a.Annotations[corev1.PodDeletionCost] != "" {
				return -1
			}
			return 1
		})
		w.must(w.api.Delete(w.t.Context(), owned[0]))
	}
}

// collect does what the garbage collector does.
func (w *world) collect() {
	w.t.Helper()
	for _, pod := range w.pods() {
		if pod.OwnerReferences != nil {
			w.must(w.api.Delete(w.t.Context(), &pod))
		}
	}
}

// evict does what the evacuation controller does, with a budget that wants one
// pod available.
func (w *world) evict() {
	w.t.Helper()
	list := &v1alpha1.EvacuationList{}
	w.must(w.api.List(w.t.Context(), list))
	replacement := w.pod("web-1")
	for i := range list.Items {
		if list.Items[i].Status.ActiveEvacuatorCompleted && replacement != nil && replacement.Status.Conditions[0].Status == corev1.ConditionTrue {
			w.must(client.IgnoreNotFound(w.api.Delete(w.t.Context(), aPod("web-0"))))
			w.withdraw()
		}
	}
}

func (w *world) setReady() {
	w.t.Helper()
	for _, pod := range w.pods() {
		if pod.Status.Conditions[0].Status != corev1.ConditionTrue {
			pod.Status.Conditions[0].Status = corev1.ConditionTrue
			w.must(w.api.Status().Update(w.t.Context(), &pod))
		}
	}
}

// withdraw ends the evacuation of web-0.
func (w *world) withdraw() {
	w.t.Helper()
	e := w.evacuation(aPod("web-0"))
	e.Finalizers = nil
	w.must(w.api.Update(w.t.Context(), e))
	w.must(w.api.Delete(w.t.Context(), e))
}

func (w *world) state() []string {
	w.t.Helper()
	var state []string
	for _, pod := range w.pods() {
		of := "nobody"
		if pod.OwnerReferences != nil {
			of = pod.OwnerReferences[0].Name
		}
		state = append(state, fmt.Sprintf("%s of %s, %v, %v", pod.Name, of, pod.Labels, pod.Annotations))
	}
	return state
}
