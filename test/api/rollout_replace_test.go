package api

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Who has the manager's token deletes Machines only as the manager does: by the state that was read,
// and none without a node.
func TestTheManagersAccountDeletesMachinesAsItHasReadThem(t *testing.T) {
	t.Parallel()
	admin, manager := takenOver(t)
	const refused = "Ebbtide's manager deletes machines one by one, those that have a node, as it has read them"
	without := create(t, admin, machine("without-a-node", bare))
	m := create(t, admin, machine("with-a-node", bare))
	if err := unstructured.SetNestedMap(m.Object, map[string]any{"name": "node-1", "uid": "u"}, "status", "nodeRef"); err != nil {
		t.Fatal(err)
	}
	if err := manager.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	asRead := func(o client.Object) client.Preconditions {
		return client.Preconditions{UID: new(o.GetUID()), ResourceVersion: new(o.GetResourceVersion())}
	}
	background := client.PropagationPolicy(metav1.DeletePropagationBackground)
	wantRefusal(t, "without preconditions", manager.Delete(t.Context(), m, background), refused)
	wantRefusal(t, "whatever its state", manager.Delete(t.Context(), m, client.Preconditions{UID: new(m.GetUID())}, background), refused)
	wantRefusal(t, "without a node", manager.Delete(t.Context(), without, asRead(without), background), refused)
	wantRefusal(t, "as read", manager.Delete(t.Context(), m, asRead(m), background))
}
