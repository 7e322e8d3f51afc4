package webhook

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/test/patience"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

func errorText(err error) string {
	if err == nil {
		return "admitted"
	}
	return err.Error()
}

// A lock counts from the moment in which it is written.
func TestWhoEvictsAPodWaitsWhileItsBudgetIsLocked(t *testing.T) {
	c := newAPI(t)
	namespace := c.Namespace(t)
	moved, bare := newPod(t, c, namespace, "web", registered("mover.example.com", "20")), newPod(t, c, namespace, "bare", nil)
	locked := sample.LockedBudget(namespace, time.Hour)
	must(t, c.Client.Create(t.Context(), locked))
	hold, _ := budget.LockOf(locked, time.Now(), 0)
	words := "PodDisruptionBudget " + namespace + "/all is locked by dba@example.com until " +
		hold.ExpiresAt.UTC().Format(time.RFC3339) + ": defragmentation; try again when it is free"
	for _, pod := range []*corev1.Pod{moved, bare} {
		wantToWait(t, evict(t, c, pod), words)
		wantToWait(t, evictWith(t, c.Client, pod, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}), words)
		wantLeftAlone(t, c, pod)
		if e := evacuationOf(t, c, pod); e != nil {
			t.Errorf("the evacuators of a pod are asked under a lock: %+v", e)
		}
	}
	err := evictWith(t, c.Client, bare, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(types.UID("beef"))}})
	wantWords(t, err, "the UID in the precondition (beef) does not match the UID in record")

	must(t, c.Client.Delete(t.Context(), locked))
	eventuallyEvicted(t, c, bare)
	wantToWait(t, evict(t, c, moved), "evacuation in progress: mover.example.com is asked to move pod web")
}

// A pod that goes anyway goes.
func TestALockDoesNotKeepWhatIsOver(t *testing.T) {
	c := newAPI(t)
	namespace := c.Namespace(t)
	going, done := sample.Pod(namespace, "going"), newPod(t, c, namespace, "done", nil)
	going.Finalizers = []string{"example.com/keep"}
	must(t, c.Client.Create(t.Context(), going))
	must(t, c.Client.Delete(t.Context(), going))
	done.Status.Phase = corev1.PodSucceeded
	must(t, c.Client.Status().Update(t.Context(), done))
	must(t, c.Client.Create(t.Context(), sample.LockedBudget(namespace, time.Hour)))

	patience.Eventually(t, "the eviction of a pod that has finished", func(context.Context) (string, bool) {
		err := evict(t, c, done)
		return errorText(err), err == nil
	})
	wantEvicted(t, c, done)
	if err := evict(t, c, going); err != nil && strings.Contains(err.Error(), "is locked by") {
		t.Errorf("error %v for a pod that terminates", err)
	}
	must(t, c.Client.Get(t.Context(), client.ObjectKeyFromObject(going), going))
	going.Finalizers = nil
	must(t, c.Client.Update(t.Context(), going))
}

// What evicts for a Machine asks like anybody else; what evicts for an Evacuation
// looks at locks itself.
func TestTheManagerIsAskedAboutLocksOnlyForMachines(t *testing.T) {
	c := newAPI(t)
	namespace := c.Namespace(t)
	pod := newPod(t, c, namespace, "web", nil)
	must(t, c.Client.Create(t.Context(), sample.LockedBudget(namespace, time.Hour)))
	evictor := evictorOfTheManager(t, c)
	outcome := evacuation.Classify(evictor.ForMachines().Evict(t.Context(), pod, nil))
	if outcome.Result != evacuation.Postponed || !strings.Contains(outcome.Message, "is locked by dba@example.com") {
		t.Errorf("an eviction for a Machine is answered %+v, want it postponed by the lock", outcome)
	}
	wantLeftAlone(t, c, pod)
	if outcome := evacuation.Classify(evictor.Evict(t.Context(), pod, nil)); strings.Contains(outcome.Message, "is locked by") {
		t.Errorf("an eviction for an Evacuation is answered %+v", outcome)
	}
}
