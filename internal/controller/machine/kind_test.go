package machine

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
)

// A kind of infrastructure that hangs keeps few workers at first, and one from
// then on; Machines of other kinds find the rest of them. It gets them back when
// it answers again.
func TestAKindThatHangsKeepsOneWorker(t *testing.T) {
	const many = 20
	objects := fleet()
	for n := range many {
		objects = append(objects, aMachine(fmt.Sprintf("stuck-%d", n)))
	}
	sound := aMachine("sound")
	sound.Spec.InfrastructureRef = v1alpha1.ObjectReference{APIVersion: boots, Kind: "Boots", Name: "other"}
	inWorld(t, append(objects, sound), func(w *world) {
		busy := &crowded{}
		w.manager.object = func(ctx context.Context, key types.NamespacedName, kind schema.GroupVersionKind) (Found, error) {
			if kind == rackKind && busy.wait(ctx) {
				return Found{}, ctx.Err()
			}
			object, err := readLive(ctx, w.api.Manager, key, kind)
			return Found{object, true}, err
		}
		passes := func(want int) {
			t.Helper()
			busy.hang(true)
			var running sync.WaitGroup
			for n := range many {
				running.Go(func() { w.pass(fmt.Sprintf("stuck-%d", n)) })
			}
			began := time.Now()
			w.pass(sound.Name)
			if took := time.Since(began); took > time.Second {
				t.Errorf("a Machine of another kind takes %s", took)
			}
			running.Wait()
			if busy.most != want {
				t.Errorf("%d passes hang at once, want %d", busy.most, want)
			}
		}
		passes(crowd)
		passes(1)
		passes(1)
		busy.hang(false)
		w.pass("stuck-0")
		passes(crowd)
		busy.hang(false)
		w.running()
	})
}

func TestAKindThatHangsInOneNamespaceIsFreeInOthers(t *testing.T) {
	t.Parallel()
	r := &reconciler{kinds: newSlots(crowd), clock: clock.RealClock{}, wake: func(...types.NamespacedName) {}}
	in := func(namespace string) *observed {
		machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m"}}
		return &observed{Snapshot: lifecycle.Snapshot{Machine: machine}}
	}
	made := false
	var beside func(hang int) error
	beside = func(hang int) error {
		if hang == 0 {
			return r.ofKind(in("good"), rackKind, func() error { made = true; return nil })
		}
		return r.ofKind(in("slow"), rackKind, func() error { return beside(hang - 1) })
	}
	if err := beside(crowd); err != nil || !made {
		t.Errorf("a request of another namespace was made: %t, %v", made, err)
	}
}

func (w *world) pass(name string) {
	of := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: name}}
	if _, err := w.manager.Reconcile(context.WithoutCancel(w.t.Context()), of); err != nil {
		w.t.Error(err)
	}
}

// crowded counts who hangs at the same time.
type crowded struct {
	mu        sync.Mutex
	hangs     bool
	now, most int
}

func (c *crowded) hang(hangs bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hangs, c.most = hangs, 0
}

// wait hangs until the end of the context; it is false if nobody hangs.
func (c *crowded) wait(ctx context.Context) bool {
	c.mu.Lock()
	if !c.hangs {
		c.mu.Unlock()
		return false
	}
	c.now++
	c.most = max(c.most, c.now)
	c.mu.Unlock()
	<-ctx.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now--
	return true
}
