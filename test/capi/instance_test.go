package capi

import (
	"testing"

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
// the drain behind the bridge holds the Machine no longer then.
func TestLongAMachineWhoseInstanceGoesIsNotHeld(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		// before is true if the instance goes before the Machine is deleted, lasting if its
		// deletion takes its time.
		before, lasting bool
		want            string
	}{
		"it is being deleted in the middle of the drain": {false, true, "is being deleted"},
		"it was gone before":                             {true, false, "is gone, and with it all that ran there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, victim := blocked(t, bridged)
			host := w.hostOf(victim)
			if test.lasting {
				host.SetFinalizers(append(host.GetFinalizers(), "sandbox.ebbtide.dev/slow"))
				w.must(w.c.Client.Update(w.ctx, host))
			}
			if test.before {
				w.delete(host)
			}
			w.delete(victim)
			if !test.before {
				w.awaitEvent(victim, v1alpha1.EventBridgeDraining, "1 pod left")
				w.delete(host)
			}
			w.awaitEvent(victim, v1alpha1.EventBridgeSkipped, test.want)
			if test.lasting {
				w.must(w.c.Client.Patch(w.ctx, host, mergePatch(`{"metadata":{"finalizers":null}}`)))
			}
			w.awaitGone(victim)
		})
	}
}
