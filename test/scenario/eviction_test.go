package scenario

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

// evict calls the eviction API once, as drainers do that know nothing of us.
func (w *world) evict(pod *corev1.Pod, dryRun ...string) error {
	eviction := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{DryRun: dryRun}}
	return w.client.SubResource("eviction").Create(w.ctx, pod.DeepCopy(), eviction)
}

// awaitAnswer tries to evict until the API server says so. Every answer is to be
// one on which drainers try again.
func (w *world) awaitAnswer(pod *corev1.Pod, words string) {
	w.t.Helper()
	w.eventually("an eviction of "+pod.Name+" answered "+words, func() (bool, any) {
		err := w.evict(pod)
		if !apierrors.IsTooManyRequests(err) {
			w.t.Fatalf("eviction of %s: %v, want 429", pod.Name, err)
		}
		return contains(err.Error(), words), err.Error()
	})
}

// evictToTheEnd tries to evict until the pod is gone.
func (w *world) evictToTheEnd(pod *corev1.Pod) {
	w.t.Helper()
	w.eventually("the end of the evictions of "+pod.Name, func() (bool, any) {
		err := w.evict(pod)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsTooManyRequests(err) {
			w.t.Fatalf("eviction of %s: %v, want 429 or an end", pod.Name, err)
		}
		return apierrors.IsNotFound(err), err
	})
}

// forgetAttempts is what time does when nobody calls the eviction API any more.
func (w *world) forgetAttempts(pod *corev1.Pod) {
	w.t.Helper()
	e := &v1alpha1.Evacuation{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns}}
	w.change(e, evacuation.Name(pod), func() {
		e.Annotations[v1alpha1.EvictionAttemptAnnotation] = time.Now().Add(-time.Hour).Format(time.RFC3339)
	})
}

// An autoscaler that knows nothing of evacuators has to wait for them, and its
// calls end when they have moved the pod.
func TestAForeignDrainerWaitsForEvacuators(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	movable := w.movable(w.nodes("one")[0], "movable")

	w.awaitAnswer(movable, "evacuation in progress: "+mover)
	w.awaitTurn(movable, mover)
	w.awaitAnswer(movable, "evacuation in progress: "+mover+" moves pod movable (asked for at ")
	w.evacuator(movable, `{"status":{"expectedEvacuationFinishTime":"2100-01-01T00:00:00Z"}}`)
	w.awaitAnswer(movable, "expected to end at 2100-01-01T00:00:00Z")
	w.evacuator(movable, completes)
	w.awaitTurn(movable, backup)
	w.awaitAnswer(movable, "evacuation in progress: "+backup)
	w.evacuator(movable, completes)

	w.evictToTheEnd(movable)
	w.awaitNoEvacuations()
}

// Who drains waits no longer for evacuators when nobody can ask them. Evacuations,
// which could be asked for by anybody then, wait.
func TestLongEvictionsWorkWithoutTheManager(t *testing.T) {
	t.Parallel()
	w := newMortalWorld(t)
	movable := w.movable(w.nodes("one")[0], "movable")
	w.manager.Kill(t)

	err := w.client.Create(w.ctx, evacuation.New(movable, foreignInstigator, nil))
	if err == nil || !contains(err.Error(), `failed calling webhook "evacuations.ebbtide.dev"`) {
		t.Errorf("error %v, want nobody to ask for an evacuation unchecked", err)
	}
	w.must("evict while the manager is dead", w.evict(movable))

	w.awaitGone("movable")
	w.manager.Start(t)
}

// When the attempts to evict stop, the pod stays where it is.
func TestARequestThatNobodyRepeatsIsWithdrawn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	movable := w.movable(w.nodes("one")[0], "movable")
	w.awaitAnswer(movable, "evacuation in progress: "+mover)
	w.awaitTurn(movable, mover)

	w.forgetAttempts(movable)

	w.awaitNoEvacuations()
	w.awaitPod(movable.Name, "left alone", func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil })
}
