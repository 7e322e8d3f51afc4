package capi

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// hostOf is what stands for the instance of a Machine.
func (w *world) hostOf(machine *unstructured.Unstructured) *unstructured.Unstructured {
	w.t.Helper()
	name, _, _ := unstructured.NestedString(machine.Object, "spec", "infrastructureRef", "name")
	host := w.named(hostKind, name)
	w.must(w.c.Client.Get(w.ctx, client.ObjectKeyFromObject(host), host))
	return host
}

// Cluster API alone drains no node whose instance is gone or being deleted. A budget that holds
// the drain behind the bridge holds the Machine no longer then, and no longer than there.
func TestLongAMachineWhoseInstanceGoesIsNotHeld(t *testing.T) {
	t.Parallel()
	t.Run("it was gone before", func(t *testing.T) {
		t.Parallel()
		w, p := blockedPair(t, bridged)
		for _, m := range p.both() {
			host := w.hostOf(m)
			w.delete(host)
			w.await("host "+host.GetName()+" to be gone", func() (string, bool) {
				err := w.c.Client.Get(w.ctx, client.ObjectKeyFromObject(host), host)
				return fmt.Sprint(err), apierrors.IsNotFound(err)
			})
		}
		w.race(p, func(m *unstructured.Unstructured) { w.delete(m) })
		w.awaitEvent(p.behind, v1alpha1.EventBridgeSkipped, "is gone, and with it all that ran there")
		w.awaitGone(p.behind)
	})
	t.Run("it is being deleted in the middle of the drain", func(t *testing.T) {
		t.Parallel()
		w, p := blockedPair(t, bridged)
		for _, m := range p.both() {
			host := w.hostOf(m)
			host.SetFinalizers(append(host.GetFinalizers(), "sandbox.ebbtide.dev/slow"))
			w.must(w.c.Client.Update(w.ctx, host))
			w.delete(m)
		}
		w.awaitDraining(p.alone)
		w.awaitEvent(p.behind, v1alpha1.EventBridgeDraining, "1 pod left")
		w.race(p, func(m *unstructured.Unstructured) { w.delete(w.hostOf(m)) })
		w.awaitEvent(p.behind, v1alpha1.EventBridgeSkipped, "is being deleted")
		for _, m := range p.both() {
			w.must(w.c.Client.Patch(w.ctx, w.hostOf(m), mergePatch(`{"metadata":{"finalizers":null}}`)))
		}
		w.awaitGone(p.behind)
	})
}
