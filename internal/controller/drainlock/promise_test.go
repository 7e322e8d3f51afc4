package drainlock

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
)

func promised(node *corev1.Node) *corev1.Node {
	node.Annotations = map[string]string{v1alpha1.RebootPromiseAnnotation: `{"recordUID":"gone","maintenanceRef":{"name":"upgrade","uid":"upgrade"},` +
		`"bootID":"boot","expectedDowntimeSeconds":300,"time":"2026-03-01T12:00:00Z"}`}
	return node
}

// The record of a node is deleted while the node is away: its lock stays, and another record is
// created from the promise on the Node.
func TestPromiseOnANodeBringsItsRecordBack(t *testing.T) {
	t.Parallel()
	locked := lockedBy(aBudget("db", 1), budget.Holder("upgrade", "one"), time.Hour)
	w := newWorld(t, promised(aNode("one")), aPod("db", "one"), locked)
	_, err := w.keep(w.keeper(), locked)
	w.must(err)
	if stored, _ := read(w, locked); stored.Annotations[v1alpha1.LockAnnotation] == "" {
		t.Error("the lock is removed")
	}
	_, err = w.nodes().Reconcile(t.Context(), requestOf("one"))
	w.must(err)
	record, there := read(w, aRecord("one"))
	if !there || !record.Spec.Complete || len(record.Spec.Budgets) != 1 || record.Spec.MaintenanceRef.Name != "upgrade" {
		t.Errorf("the record is there: %v, with %+v", there, record.Spec)
	}
}

// A node that may be away has a pod under a budget that was created again, under another name
// and with the same selector: no other node locks it.
func TestNoNodeLocksABudgetOfANodeThatMayBeAway(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		other  *corev1.Node
		reason string
		locked bool
	}{
		"one that was promised": {promised(aNode("one")), v1alpha1.ReasonWaitingForNode, false},
		"one that was not":      {aNode("one"), v1alpha1.ReasonSettling, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			again, record := aBudget("db", 1), aRecord("two", "db")
			again.Name, again.UID = "db-again", "uid-of-db-again"
			record.Spec.Budgets[0].Name, record.Spec.Budgets[0].UID = again.Name, again.UID
			record.Spec.Pods[0].BudgetUIDs = []types.UID{again.UID}
			w := newWorld(t, test.other, aNode("two"), aPod("db", "one"), aPod("db", "two"), again, record)
			_, err := w.nodes().Reconcile(t.Context(), requestOf("two"))
			w.must(err)
			stored, _ := read(w, record)
			c := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionLocked)
			b, _ := read(w, again)
			if locked := b.Annotations[v1alpha1.LockAnnotation] != ""; c == nil || c.Reason != test.reason || locked != test.locked {
				t.Errorf("locked: %v, condition %+v", locked, c)
			}
		})
	}
}
