package surge_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/test/tier"
)

// manage decides and writes. The world goes on between the writes, and the
// manager may die before any of them.
func (w *world) manage() {
	w.t.Helper()
	snapshot := w.snapshot()
	decision := surge.Decide(snapshot)
	w.checkCounts(snapshot, decision)
	for _, move := range decision.Moves {
		for i := range move {
			if w.rand.IntN(10) == 0 {
				return // It dies.
			}
			if w.rand.IntN(5) == 0 {
				w.controllers()
			}
			if !w.write(&move[i]) {
				break
			}
		}
	}
}

// write reports whether the API server takes the write.
func (w *world) write(write *surge.Write) bool {
	w.t.Helper()
	if write.Evacuation != nil {
		now := w.evacuations[write.Evacuation.Spec.PodRef.UID]
		if now == nil || now.ResourceVersion != write.Evacuation.ResourceVersion {
			return false
		}
		changed := now.DeepCopy()
		changed.Status = *write.Status
		w.replaceEvacuation(changed)
		w.results[write.Result]++
		return true
	}
	now := w.pods[write.Pod.Name]
	if now == nil || write.Changed != nil && now.ResourceVersion != write.Pod.ResourceVersion {
		return false
	}
	if write.Changed == nil {
		w.checkDeletion(now)
		w.delete(now)
	} else {
		w.checkChange(write)
		w.change(now, func(p *corev1.Pod) { p.Labels, p.Annotations = write.Changed.Labels, write.Changed.Annotations })
	}
	w.results[write.Result]++
	return true
}

// checkChange: only labels and annotations change, and no more pods are detached
// than may be.
func (w *world) checkChange(write *surge.Write) {
	w.t.Helper()
	as := *write.Changed
	as.Labels, as.Annotations = write.Pod.Labels, write.Pod.Annotations
	if diff := cmp.Diff(write.Pod, &as); diff != "" {
		w.fail("more than labels and annotations was changed: %s", diff)
	}
	if surge.Detached(write.Pod) || !surge.Detached(write.Changed) {
		return
	}
	detached := 1
	for _, pod := range w.pods {
		if active(pod) && surge.Detached(pod) {
			detached++
		}
	}
	if most := w.deployment.Spec.Strategy.RollingUpdate.MaxSurge.IntValue(); detached > most {
		w.fail("%d pods are detached, maxSurge is %d", detached, most)
	}
}

// checkDeletion: only a pod is deleted that no ReplicaSet can take back.
func (w *world) checkDeletion(pod *corev1.Pod) {
	w.t.Helper()
	home, detached := surge.Home(pod)
	if !detached {
		w.fail("pod %s was deleted, which is not detached", pod.Name)
	}
	for _, set := range w.sets {
		if set.UID == home.UID && set.DeletionTimestamp == nil && active(pod) {
			w.fail("pod %s was deleted, which ReplicaSet %s can take back", pod.Name, set.Name)
		}
	}
}

func (w *world) fail(format string, arguments ...any) {
	w.t.Helper()
	w.t.Fatalf("seed %d: %s", w.seed, fmt.Sprintf(format, arguments...))
}

// live is what people and misfortune do in one round.
func (w *world) live() {
	pods := w.sorted()
	if len(pods) == 0 {
		return
	}
	pod := pods[w.rand.IntN(len(pods))]
	switch w.rand.IntN(12) {
	case 0, 1, 2:
		w.ask(pod)
	case 3:
		w.withdraw(pod)
	case 4:
		if w.deployment != nil && len(w.sets) < 4 && w.rand.IntN(8) == 0 {
			w.newSet(0)
		}
	default:
		if !w.calm {
			w.suffer(pod)
		}
	}
}

func (w *world) ask(pod *corev1.Pod) {
	if w.evacuations[pod.UID] != nil || !active(pod) {
		return
	}
	e := evacuation.New(pod, v1alpha1.NodeMaintenanceInstigator, nil)
	e.CreationTimestamp = metav1.NewTime(w.now)
	w.replaceEvacuation(e)
}

func (w *world) withdraw(pod *corev1.Pod) {
	if e := w.evacuations[pod.UID]; e != nil {
		changed := e.DeepCopy()
		changed.Finalizers = nil
		w.replaceEvacuation(changed)
	}
}

func (w *world) suffer(pod *corev1.Pod) {
	switch w.rand.IntN(40) {
	case 0:
		w.change(pod, func(p *corev1.Pod) { setReady(p, !ready(p), w.now) })
	case 1:
		w.change(pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
	case 2:
		w.delete(pod)
	case 3:
		if w.deployment != nil {
			w.deployment = w.deployment.DeepCopy()
			w.deployment.Spec.Replicas = new(int32(w.rand.IntN(5)))
		}
	case 4:
		if w.rand.IntN(6) == 0 {
			w.deployment = nil
		}
	case 5:
		if surge.Detached(pod) { // By hand.
			for _, set := range w.sets {
				w.change(w.pods[pod.Name], func(p *corev1.Pod) { p.Labels[hashLabel] = set.Labels[hashLabel] })
			}
		}
	case 6:
		w.now = w.now.Add(11 * time.Minute)
	}
}

// rest lets the world come to rest: nobody asks for anything any more.
func (w *world) rest() {
	w.t.Helper()
	w.calm = true
	for range 400 {
		for _, pod := range w.sorted() {
			w.withdraw(pod)
			if pod.DeletionTimestamp == nil && !ready(pod) && pod.Status.Phase == corev1.PodRunning {
				w.change(pod, func(p *corev1.Pod) { setReady(p, true, w.now) })
			}
		}
		w.controllers()
		w.manage()
		w.now = w.now.Add(time.Second)
	}
}

// checkRest: nothing of ours is left, and nobody is left to nobody.
func (w *world) checkRest() {
	w.t.Helper()
	count := 0
	for _, pod := range w.sorted() {
		ref := metav1.GetControllerOf(pod)
		switch {
		case len(pod.Annotations) > 0:
			w.fail("pod %s is left with annotations: %v", pod.Name, pod.Annotations)
		case ref == nil:
			w.fail("pod %s belongs to nobody, labels %v, %s", pod.Name, pod.Labels, pod.Status.Phase)
		case ref.Name != "web-"+pod.Labels[hashLabel]:
			w.fail("pod %s of %s has labels %v", pod.Name, ref.Name, pod.Labels)
		}
		if active(pod) {
			count++
		}
	}
	want := 0
	if w.deployment != nil {
		want = int(*w.deployment.Spec.Replicas)
	}
	if count != want {
		w.fail("%d pods are left, want %d: %v", count, want, slices.Sorted(maps.Keys(w.pods)))
	}
}

// second lets everybody act once.
func (w *world) second() {
	w.live()
	w.controllers()
	w.manage()
	w.now = w.now.Add(time.Second)
}

// seeds is how many worlds live, manySeeds how many in the second tier.
const seeds, manySeeds = 40, 200

func TestWhateverHappensNothingIsLeft(t *testing.T) { nothingIsLeft(t, seeds) }

func TestLongWhateverHappensNothingIsLeft(t *testing.T) {
	tier.Long(t)
	nothingIsLeft(t, manySeeds)
}

func nothingIsLeft(t *testing.T, seeds uint64) {
	t.Helper()
	results := map[surge.Result]int{}
	for seed := range seeds {
		w := newWorld(t, seed, false)
		for range 80 {
			w.second()
		}
		w.rest()
		w.checkRest()
		for result, times := range w.results {
			results[result] += times
		}
	}
	for _, result := range []surge.Result{surge.Completed, surge.GaveUp, surge.Cancelled, surge.Refused} {
		if results[result] == 0 {
			t.Errorf("no surge ends %s: %v", result, results)
		}
	}
}

func TestDrainOfAServiceLosesNoRequest(t *testing.T) { nobodyMissesAPod(t, seeds) }

func TestLongDrainOfAServiceLosesNoRequest(t *testing.T) {
	tier.Long(t)
	nobodyMissesAPod(t, manySeeds)
}

func nobodyMissesAPod(t *testing.T, seeds uint64) {
	t.Helper()
	completed, counted := 0, 0
	for seed := range seeds {
		w := newWorld(t, seed, true)
		for range 80 {
			w.second()
			if serving, want := w.serving(), int(*w.deployment.Spec.Replicas); serving < want {
				w.fail("%d pods serve, want %d", serving, want)
			}
		}
		w.rest()
		w.checkRest()
		completed += w.results[surge.Completed]
		counted += w.counted
	}
	if counted == 0 {
		t.Error("no message says how many pods are available")
	}
	if completed == 0 {
		t.Error("no pod was ever replaced")
	}
}
