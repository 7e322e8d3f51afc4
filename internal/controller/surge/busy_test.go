package surge

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// The more pods a Deployment has, the more of their events are looked at together.
func TestALargeDeploymentIsNotLookedAtForEachEvent(t *testing.T) {
	t.Parallel()
	for pods, want := range map[int]time.Duration{1: 200 * time.Microsecond, 500: 100 * time.Millisecond} {
		var others []client.Object
		for n := 1; n < pods; n++ {
			others = append(others, aPod(fmt.Sprint("web-", n)))
		}
		w := newWorld(t, others...)
		q := &queue{}
		handler := handlerOf(w.reconciler.busy, w.reconciler.ofPod)
		w.ask(w.pod("web-0"))
		w.reconcile(web)
		handler.Update(t.Context(), event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: aPod("web-0"), ObjectNew: aPod("web-0")}, q)
		if len(q.added) == 0 || q.added[0] != web || q.after != want {
			t.Errorf("a Deployment of %d pods: %v is looked at in %s, want it in %s", pods, q.added, q.after, want)
		}
	}
	b := newBusy()
	b.note("uid-of-web", web)
	b.observed(web, 1_000_000)
	if pause := b.pause(web); pause != longestPause {
		t.Errorf("a Deployment of a million pods is looked at in %s, want %s", pause, longestPause)
	}
}

func TestForgetRemovesOneMember(t *testing.T) {
	t.Parallel()
	b := newBusy()
	db := item{types.NamespacedName{Namespace: "shop", Name: "db"}, "uid-of-db"}
	b.note("uid-of-web", web)
	b.note("adopted", web)
	b.note("uid-of-db", db)
	b.note("adopted", db)
	b.observed(web, 500)
	b.forget(web)
	b.forget(web)
	if _, known := b.with("uid-of-web"); known || b.pause(web) != 0 {
		t.Error("the Deployment is still known")
	}
	if it, _ := b.with("adopted"); it != db {
		t.Errorf("the ReplicaSet is that of %v, want that of db", it)
	}
	b.forget(db)
	if len(b.items)+len(b.known) > 0 {
		t.Errorf("%v and %v are left", b.items, b.known)
	}
}
