package machine

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// A manager that dies behind any of its writes, from the creation of a Machine to
// its end, is continued by one that remembers nothing, and all comes to the same.
func TestAManagerThatDiesBehindAnyWriteIsContinued(t *testing.T) {
	t.Parallel()
	var want, writes []string
	t.Run("undisturbed", func(t *testing.T) {
		inWorldNow(t, fleet(), func(w *world) {
			want = w.life()
			writes = w.api.Writes()
		})
	})
	if len(writes) < 10 {
		t.Fatalf("a whole life took only the writes %q", writes)
	}
	for dies, write := range writes {
		t.Run(fmt.Sprintf("%d behind %s", dies, write), func(t *testing.T) {
			inWorld(t, fleet(), func(w *world) {
				w.api.KillAfter(dies + 1)
				if diff := cmp.Diff(want, w.life()); diff != "" {
					t.Errorf("the end after dying (-undisturbed +continued):\n%s", diff)
				}
			})
		})
	}
}

// life is that of a Machine from its beginning to its end, and what is left then.
func (w *world) life() []string {
	w.t.Helper()
	w.running()
	m := w.machine()
	left := []string{fmt.Sprintf("ran as %s on %s", m.Spec.ProviderID, m.Status.NodeRef.Name)}
	for _, kind := range []string{"Rack", "Boots"} {
		for _, owner := range w.object(kind).GetOwnerReferences() {
			left = append(left, fmt.Sprintf("%s was of %s %s, controller %t", kind, owner.Kind, owner.Name, *owner.Controller))
		}
	}
	w.deleted()
	w.settle()
	slices.Sort(w.evicted)
	left = append(left, fmt.Sprintf("evicted %v", slices.Compact(w.evicted)))
	var nodes corev1.NodeList
	w.must(w.api.List(w.t.Context(), &nodes))
	left = append(left, fmt.Sprintf("Nodes %d, Rack %t, Boots %t, users %v",
		len(nodes.Items), w.object("Rack") != nil, w.object("Boots") != nil, w.users))
	return left
}
