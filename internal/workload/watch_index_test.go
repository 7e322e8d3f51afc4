package workload

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// A user is woken by the node that it watches and by its cluster, until it watches something
// else.
func TestWatchIndexKnowsTheUsersOfANode(t *testing.T) {
	t.Parallel()
	prod, test := types.NamespacedName{Namespace: "infra", Name: "prod"}, types.NamespacedName{Namespace: "infra", Name: "test"}
	w := NewWatchIndex[string, int]()
	woken := func(want int, at Place) {
		t.Helper()
		got := w.Users(at)
		if at.Node == "" {
			got = w.Where(func(_ string, place Place, _ int) bool { return place.Cluster == at.Cluster })
		}
		if len(got) != want {
			t.Errorf("%v: %v, want %d", at, got, want)
		}
	}
	w.Watch("a", Place{prod, "node-1"}, 1)
	w.Watch("b", Place{prod, "node-2"}, 2)
	w.Watch("c", Place{test, "node-1"}, 3)
	woken(1, Place{prod, "node-1"})
	woken(2, Place{Cluster: prod})
	woken(0, Place{test, "node-2"})

	if before, was, known := w.Watch("a", Place{prod, "node-2"}, 4); before != (Place{prod, "node-1"}) || was != 1 || !known {
		t.Errorf("before were %v and %d, known %t", before, was, known)
	}
	woken(0, Place{prod, "node-1"})
	woken(2, Place{prod, "node-2"})
	if before, was, known := w.Unwatch("a"); before.Node != "node-2" || was != 4 || !known {
		t.Errorf("at the end were %v and %d, known %t", before, was, known)
	}
	for _, user := range []string{"a", "b", "c"} {
		w.Unwatch(user)
	}
	if _, _, known := w.Of("b"); known || len(w.watched)+len(w.users) > 0 {
		t.Errorf("%v and %v are remembered", w.watched, w.users)
	}
}
