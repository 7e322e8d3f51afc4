package webhook

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A pod of a StatefulSet comes back under its name. Whoever waits for the last one
// is told that it is gone and leaves the next one alone.
func TestWhoWaitsForAPodDoesNotEvictTheNextOfItsName(t *testing.T) {
	c := newAPI(t)
	namespace := c.Namespace(t)
	first := newPod(t, c, namespace, "db-0", registered("mover.example.com", "20"))
	wantToWait(t, evict(t, c, first), "mover.example.com is asked to move pod db-0")
	must(t, c.Client.Delete(t.Context(), first, client.GracePeriodSeconds(0)))
	second := newPod(t, c, namespace, "db-0", registered("mover.example.com", "20"))

	err := evict(t, c, second)
	for range 100 { // until the cache has seen that the first one is gone
		if !apierrors.IsTooManyRequests(err) {
			break
		}
		err = evict(t, c, second)
	}
	wantWords(t, err, "pod db-0 with UID "+string(first.UID)+" is gone; the pod of this name on node node-one has come after it")
	if !apierrors.IsNotFound(err) {
		t.Errorf("error %v, want the pod not to be found", err)
	}
	if e := evacuationOf(t, c, second); e != nil {
		t.Errorf("the evacuators of the next pod are asked: %+v", e)
	}
	wantLeftAlone(t, c, second)

	wantToWait(t, evict(t, c, second), "mover.example.com is asked to move pod db-0")
}

func TestCallersAreRememberedForAMoment(t *testing.T) {
	t.Parallel()
	known, now := newCallers(), time.Now()
	jane := caller{"jane", types.NamespacedName{Namespace: "shop", Name: "db-0"}}
	joe := caller{"joe", jane.pod}
	known.note(jane, "first", now)
	for name, tc := range map[string]struct {
		who  caller
		at   time.Time
		want types.UID
	}{
		"a moment later": {jane, now.Add(20 * time.Second), "first"},
		"much later":     {jane, now.Add(40 * time.Second), ""},
		"another user":   {joe, now, ""},
	} {
		if got := known.recall(tc.who, tc.at); got != tc.want {
			t.Errorf("%s: waits for %q, want %q", name, got, tc.want)
		}
	}
	known.note(joe, "second", now.Add(time.Minute))
	if len(known.known) != 1 {
		t.Errorf("remembered: %v, want only who has called last", known.known)
	}
	known.forget(joe)
	if got := known.recall(joe, now.Add(time.Minute)); got != "" {
		t.Errorf("joe waits for %q after being told", got)
	}
}
