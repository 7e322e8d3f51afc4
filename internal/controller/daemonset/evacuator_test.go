package daemonset

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/fault"
)

const terminates = "log is terminating the pod due to node maintenance (OS upgrade)."

func TestAPodIsAnnouncedThenDeleted(t *testing.T) {
	t.Parallel()
	pod := aPod("log-a")
	e := asked(pod)
	w := newWorld(t, aNode(1000), aMaintenance(), pod, e)

	w.reconcile(w.evacuator(), e)

	stored, _ := read(w, e)
	want := e.Status.DeepCopy()
	want.EvacuationProgressTimestamp = &metav1.Time{Time: noon}
	want.ExpectedEvacuationFinishTime = &metav1.Time{Time: noon.Add(time.Minute)}
	want.Message = terminates
	difference.None(t, "status", *want, stored.Status)
	difference.None(t, "writes", []string{"patch status of Evacuation " + e.Name, "delete Pod log-a"}, w.api.Writes())
	if _, there := read(w, pod); there {
		t.Error("the pod is still there")
	}
	difference.None(t, "events", []string{"DaemonSetPodDeleted on Evacuation/" + e.Name + ": " + terminates}, w.api.Events())
}

// A manager that dies after the status is continued by the next one.
func TestAManagerThatDiesBeforeTheDeletionIsContinued(t *testing.T) {
	t.Parallel()
	pod := aPod("log-a")
	e := asked(pod)
	w := newWorld(t, aNode(1000), aMaintenance(), pod, e)
	w.api.KillAfter(1)
	_, err := w.evacuator().Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e)})
	if _, there := read(w, pod); !there || !errors.Is(err, fault.ErrKilled) {
		t.Fatalf("the pod is there: %v, the manager ends with %v; want the pod there and the manager dead", there, err)
	}
	w.api.Revive()

	w.reconcile(w.evacuator(), e)

	if _, there := read(w, pod); there || w.message(e) != terminates {
		t.Errorf("the pod is there: %v, message %q; want it gone and announced", there, w.message(e))
	}
	if len(w.api.Writes()) != 2 {
		t.Errorf("writes are %q, want one status and one deletion", w.api.Writes())
	}
}

// A refusal is told once, tried again with growing pauses, and no other pod waits
// for it.
func TestARefusedDeletionIsTriedAgain(t *testing.T) {
	t.Parallel()
	guarded, free := aPod("log-guarded"), aPod("log-free")
	e, other := asked(guarded), asked(free)
	w := newWorld(t, aNode(1000), aMaintenance(), guarded, free, e, other)
	w.api.Refuse = func(write string) error {
		if strings.HasPrefix(write, "delete") && strings.HasSuffix(write, guarded.Name) {
			return errors.New(`admission webhook "guard" denied the request`)
		}
		return nil
	}
	r := w.evacuator()

	var pauses []time.Duration
	for range 4 {
		due := w.reconcile(r, e)
		if again := w.reconcile(r, e); again == 0 {
			t.Error("its own status write makes it try again at once")
		}
		pauses = append(pauses, due)
		w.clock.Step(due)
	}
	w.reconcile(r, other)

	difference.None(t, "pauses", []time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}, pauses)
	if got, want := w.message(e), `Deleting pod log-guarded is refused and tried again: admission webhook "guard" denied the request`; got != want {
		t.Errorf("message is %q, want %q", got, want)
	}
	if _, there := read(w, free); there {
		t.Error("another pod waits for the refused one")
	}
	if len(w.api.Writes()) != 2+4+2 {
		t.Errorf("writes are %q, want two statuses and four attempts for the one, and two for the other", w.api.Writes())
	}

	w.api.Refuse = nil
	w.clock.Step(w.reconcile(r, e))
	w.reconcile(r, e)
	if _, there := read(w, guarded); there {
		t.Error("the pod is still there when nobody refuses any more")
	}
}

// What is not known is no permission to delete.
func TestNothingIsDeletedInTheDark(t *testing.T) {
	t.Parallel()
	pod := aPod("log-a")
	e := asked(pod)
	for name, known := range map[string][]client.Object{
		"no node": {pod, e}, "no pod": {aNode(1000), e}, "no evacuation": {aNode(1000), pod},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, known...)
			w.reconcile(w.evacuator(), e)
			if w.deletions() != 0 {
				t.Errorf("writes are %q, want no deletion", w.api.Writes())
			}
		})
	}
}

// A pod of the same name is another pod.
func TestAPodThatCameAgainIsLeftAlone(t *testing.T) {
	t.Parallel()
	e := asked(aPod("log-a"))
	again := aPod("log-a")
	again.UID = "another"
	w := newWorld(t, aNode(1000), aMaintenance(), again, e)
	w.reconcile(w.evacuator(), e)
	if len(w.api.Writes()) > 0 {
		t.Errorf("writes are %q, want none", w.api.Writes())
	}
}

// A status that was decided on old state is not written, and the pod stays.
func TestOldStateDeletesNothing(t *testing.T) {
	t.Parallel()
	pod := aPod("log-a")
	e := asked(pod)
	w := newWorld(t, aNode(1000), aMaintenance(), pod, e)
	w.api.Refuse = func(write string) error {
		if strings.HasPrefix(write, "patch status") {
			stored, _ := read(w, e)
			stored.Annotations[v1alpha1.EvictionAttemptAnnotation] = "now"
			w.must(w.api.Update(t.Context(), stored))
		}
		return nil
	}
	w.reconcile(w.evacuator(), e)
	if _, there := read(w, pod); !there || w.deletions() != 0 {
		t.Errorf("writes are %q, want no deletion", w.api.Writes())
	}
}
