package machine

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Whoever managed to write the status of a Machine in spite of our policy does
// not get a Node drained that has not its provider ID: the Machine's own goes.
func TestAForgedNodeIsNotTouched(t *testing.T) {
	victim := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "victim", UID: "victim"}, Spec: corev1.NodeSpec{ProviderID: "rack:///victim"},
	}
	server := aPod("serves")
	server.Spec.NodeName = victim.Name
	for forged, ref := range map[string]v1alpha1.MachineNodeReference{
		"with its UID": {Name: "victim", UID: "victim"}, "without a UID": {Name: "victim"},
	} {
		t.Run(forged, func(t *testing.T) {
			inWorld(t, append(fleet(), victim.DeepCopy(), server.DeepCopy()), func(w *world) {
				w.running()
				m := w.machine()
				m.Status.NodeRef = &ref
				w.must(w.api.Status().Update(t.Context(), m))
				w.deleted()
				var found corev1.Node
				if !w.find(&found, "", victim.Name) || found.Spec.Unschedulable || slices.Contains(w.evicted, server.Name) {
					t.Errorf("the Node of somebody else is %+v, and %v were evicted", found, w.evicted)
				}
				if left := w.left(); slices.Contains(left, "Node") || !slices.Contains(w.evicted, "a") {
					t.Errorf("there is %v left and %v were evicted, want the Machine's own Node drained and gone", left, w.evicted)
				}
			})
		})
	}
}

// counted counts how often all nodes were asked for.
type counted struct {
	client.Reader
	nodes atomic.Int32
}

func (c *counted) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, ok := list.(*corev1.NodeList); ok {
		c.nodes.Add(1)
	}
	return c.Reader.List(ctx, list, options...)
}

// That a Machine has no Node is asked of the API server once, however many passes
// its deletion takes: every answer is all nodes of the cluster.
func TestAllNodesAreAskedForOnce(t *testing.T) {
	inWorld(t, fleet(), func(w *world) {
		w.running()
		asked := &counted{Reader: w.api.Manager}
		w.live = asked
		m := w.machine()
		m.Spec.LifecycleHooks.PreTerminate = []v1alpha1.LifecycleHook{{Name: "Backup", Owner: "somebody"}}
		w.must(w.api.Update(t.Context(), m))
		w.must(w.api.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}))
		w.must(w.api.Delete(t.Context(), m))
		w.settle()
		for range 5 {
			w.step()
		}
		if told := w.condition(v1alpha1.ConditionDeleting); !strings.Contains(told, v1alpha1.ReasonWaitingForPreTerminateHook) {
			t.Fatalf("condition Deleting is %s, want the hook waited for", told)
		}
		m = w.machine()
		m.Spec.LifecycleHooks.PreTerminate = nil
		w.must(w.api.Update(t.Context(), m))
		w.steps("the Machine to go", func() bool { return w.machine() == nil })
		if times := asked.nodes.Load(); times != 1 {
			t.Errorf("all nodes were asked for %d times, want once", times)
		}
	})
}

// A Node that the cache does not show yet is drained all the same.
func TestANodeIsFoundMissingByTheAPIServer(t *testing.T) {
	inWorld(t, fleet(), func(w *world) {
		w.steps("the infrastructure to be there", func() bool { return w.machine().Spec.ProviderID != "" })
		w.connect = &withoutNodes{Client: w.api.Manager}
		w.deleted()
		if left := w.left(); slices.Contains(left, "Node") || !slices.Contains(w.evicted, "a") {
			t.Errorf("there is %v left and %v were evicted, want the Node drained and gone", left, w.evicted)
		}
	})
}

type withoutNodes struct{ client.Client }

func (s *withoutNodes) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, ok := list.(*corev1.NodeList); ok {
		return nil
	}
	return s.Client.List(ctx, list, options...)
}
