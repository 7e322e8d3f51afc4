package machine

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/workload"
)

func TestTurns(t *testing.T) {
	t.Parallel()
	east, west := types.NamespacedName{Name: "east"}, types.NamespacedName{Name: "west"}
	one, two, three := types.NamespacedName{Name: "1"}, types.NamespacedName{Name: "2"}, types.NamespacedName{Name: "3"}
	turns := newSlots(1)
	for range 2 {
		var said []any
		say := func(answer any) { said = append(said, answer) }
		say(turns.take(east, one))
		say(turns.take(east, two))
		say(turns.take(east, three))
		say(turns.take(east, two))
		say(turns.take(west, two))
		say(turns.take(workload.Local, two))
		say(turns.take(workload.Local, three))
		say(turns.give(west))
		say(turns.give(east))
		say(turns.take(east, two))
		say(turns.give(east))
		say(turns.take(east, three))
		say(turns.give(east))
		say(turns.give(workload.Local))
		none := []types.NamespacedName(nil)
		want := []any{
			true, false, false, false, true, true, true,
			none,
			[]types.NamespacedName{two},
			true,
			[]types.NamespacedName{three},
			true, none, none,
		}
		if diff := cmp.Diff(want, said); diff != "" {
			t.Errorf("turns (-want +got):\n%s", diff)
		}
	}
	if len(turns.taken) > 0 || len(turns.waiting) > 0 {
		t.Errorf("left behind: %v, %v", turns.taken, turns.waiting)
	}
}

// A cluster that hangs has all the passes that may be in need of it. A further
// Machine of it waits for its turn, and keeps no worker from others.
func TestAMachineOfACrowdedClusterWaitsForItsTurn(t *testing.T) {
	objects := fleet()
	objects[0].(*v1alpha1.Cluster).Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "shop", Key: "value"}
	inWorld(t, objects, func(w *world) {
		w.running()
		turns, cluster := w.manager.slots, types.NamespacedName{Namespace: key.Namespace, Name: "shop"}
		for i := range crowd {
			turns.take(cluster, types.NamespacedName{Namespace: key.Namespace, Name: fmt.Sprintf("stuck-%d", i)})
		}
		w.must(w.api.Delete(t.Context(), w.machine()))
		w.settle()
		if deletion := w.machine().Status.Deletion; deletion != nil {
			t.Errorf("the deletion goes on out of turn: %+v", deletion)
		}

		if diff := cmp.Diff([]types.NamespacedName{key}, turns.give(cluster)); diff != "" {
			t.Errorf("whose turn it is (-want +got):\n%s", diff)
		}
		w.steps("the Machine to go", func() bool { return w.machine() == nil })
		if taken := turns.taken[cluster]; taken != crowd-1 {
			t.Errorf("%d turns are taken, want those %d of the Machines that hang", taken, crowd-1)
		}
	})
}
