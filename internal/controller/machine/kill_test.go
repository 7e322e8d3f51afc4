package machine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// A manager that dies behind any of its writes, from the creation of a Machine to
// its end, is continued by one that remembers nothing, and all comes to the same.
func TestAManagerThatDiesBehindAnyWriteIsContinued(t *testing.T) {
	t.Parallel()
	var want, writes []string
	t.Run("undisturbed", func(t *testing.T) {
		inWorldNow(t, laden(), func(w *world) {
			want = w.life()
			writes = w.api.Writes()
			for _, told := range []string{"HeldByHooks", "DrainCompleted", "VolumesAttached", "VolumesDetached", "InfrastructureDeleted", "NodeDeleted"} {
				if !strings.Contains(strings.Join(w.api.Events(), "\n"), told+" on Machine/one") {
					t.Errorf("the events tell nothing of %s: %q", told, w.api.Events())
				}
			}
		})
	})
	if len(writes) < 20 {
		t.Fatalf("a whole life took only the writes %q", writes)
	}
	for dies, write := range writes {
		t.Run(fmt.Sprintf("%d behind %s", dies, write), func(t *testing.T) {
			inWorld(t, laden(), func(w *world) {
				w.api.KillAfter(dies + 1)
				if diff := cmp.Diff(want, w.life()); diff != "" {
					t.Errorf("the end after dying (-undisturbed +continued):\n%s", diff)
				}
			})
		})
	}
}

// laden is a fleet whose Machine is held by hooks at every point of its life, and
// has pods that leave one after the other, of which one has a volume.
func laden() []client.Object {
	objects := fleet()
	for _, object := range objects {
		if m, ok := object.(*v1alpha1.Machine); ok {
			hooks := []v1alpha1.LifecycleHook{{Name: "Typed", Owner: "somebody"}}
			m.Spec.LifecycleHooks = v1alpha1.LifecycleHooks{PreCreate: hooks, PreDrain: hooks, PreTerminate: hooks}
			m.Annotations = map[string]string{
				v1alpha1.PreDrainHookAnnotationPrefix + "/annotated":     "somebody",
				v1alpha1.PreTerminateHookAnnotationPrefix + "/annotated": "somebody",
			}
		}
	}
	last := aPod("z")
	last.Labels = map[string]string{"leaves": "last"}
	order := int32(10)
	return append(objects, last,
		&v1alpha1.MachineDrainRule{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "last"},
			Spec: v1alpha1.MachineDrainRuleSpec{
				Drain: v1alpha1.MachineDrainRuleDrain{Behavior: v1alpha1.DrainBehaviorDrain, Order: &order},
				Pods:  []v1alpha1.MachineDrainRulePodSelector{{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"leaves": "last"}}}},
			},
		},
		&storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: "disk"},
			Spec:       storagev1.VolumeAttachmentSpec{NodeName: "node", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("disk")}},
			Status:     storagev1.VolumeAttachmentStatus{Attached: true},
		})
}

// serve does what those do who hold a Machine: hooks are removed when the Machine
// waits for them, the volume is detached when it does.
func (w *world) serve() {
	w.t.Helper()
	m := w.machine()
	if m == nil {
		return
	}
	hooks, annotation := &m.Spec.LifecycleHooks, ""
	waits := func(condition, reason string) bool {
		c := meta.FindStatusCondition(m.Status.Conditions, condition)
		return c != nil && c.Reason == reason
	}
	switch {
	case waits(v1alpha1.ConditionDeleting, v1alpha1.ReasonWaitingForPreDrainHook):
		hooks.PreDrain, annotation = nil, v1alpha1.PreDrainHookAnnotationPrefix
	case waits(v1alpha1.ConditionDeleting, v1alpha1.ReasonWaitingForPreTerminateHook):
		hooks.PreTerminate, annotation = nil, v1alpha1.PreTerminateHookAnnotationPrefix
	case waits(v1alpha1.ConditionVolumeDetachSucceeded, v1alpha1.ReasonWaitingForVolumeDetach):
		w.must(client.IgnoreNotFound(w.api.Delete(w.t.Context(), &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "disk"}})))
	case waits(v1alpha1.ConditionCreatable, v1alpha1.ReasonHookPresent):
		hooks.PreCreate = nil
	}
	delete(m.Annotations, annotation+"/annotated")
	w.must(w.api.Update(w.t.Context(), m))
}

func (w *world) life() []string {
	w.t.Helper()
	w.others = w.serve
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
	last := w.evicted[len(w.evicted)-1]
	slices.Sort(w.evicted)
	left = append(left, fmt.Sprintf("evicted %v, %s last", slices.Compact(w.evicted), last))
	var nodes corev1.NodeList
	w.must(w.api.List(w.t.Context(), &nodes))
	left = append(left, fmt.Sprintf("Nodes %d, Rack %t, Boots %t, users %v",
		len(nodes.Items), w.object("Rack") != nil, w.object("Boots") != nil, w.users))
	return left
}
