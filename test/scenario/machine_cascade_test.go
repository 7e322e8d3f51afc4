package scenario

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Machine that is deleted in the foreground would lose its infrastructure at
// once, whatever holds it: the garbage collector begins with what it owns. That is
// refused. Deleted in any other way it goes step by step.
func TestAMachineIsNotDeletedInTheForeground(t *testing.T) {
	w := newMachineWorld(t)
	for short, policy := range map[string]metav1.DeletionPropagation{
		"back": metav1.DeletePropagationBackground, "orphan": metav1.DeletePropagationOrphan,
	} {
		name := w.runningAs(short, stays())
		err := w.admitted(func() error {
			return w.client.Delete(w.ctx, w.machineOf(name), client.PropagationPolicy(metav1.DeletePropagationForeground))
		})
		if !apierrors.IsForbidden(err) || !contains(err.Error(), "cannot be deleted in the foreground") {
			t.Fatalf("the answer to a deletion in the foreground is %v, want it refused", err)
		}
		w.must("delete "+name, w.client.Delete(w.ctx, w.machineOf(name), client.PropagationPolicy(policy)))
		w.awaitEmptied(name)
		w.get(w.instance(), name)
		w.edit(name, preTerminate())
		w.awaitNothingLeft(name)
	}
}
