package webhook

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A pod of a StatefulSet comes back under its name. Whoever waits for the last one
// is told that it is gone and leaves the next one alone.
func TestWaitForAPodDoesNotEvictItsSuccessor(t *testing.T) {
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
