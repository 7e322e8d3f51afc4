package machine

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Others write what we write in between, as fast as they can: two of three of our
// writes are decided on old state. All ends nevertheless, and soon.
func TestStormOfWritesHoldsUpNoOthers(t *testing.T) {
	inWorld(t, fleet(), func(w *world) {
		asked := 0
		w.api.Refuse = func(request string) error {
			var object client.Object
			switch {
			case strings.Contains(request, "Machine one") && w.machine() != nil:
				object = w.machine()
			case strings.HasSuffix(request, "Rack one") && w.object("Rack") != nil:
				object = w.object("Rack")
			}
			if asked++; strings.HasPrefix(request, "get ") || asked%3 == 0 || object == nil {
				return nil
			}
			object.SetLabels(map[string]string{"storm": strconv.Itoa(asked)})
			return w.api.Update(w.t.Context(), object)
		}
		w.running()
		w.deleted()
	})
}

// However long the storm has lasted, the next try is never far.
func TestAStormIsNotWaitedOut(t *testing.T) {
	inWorld(t, fleet(), func(w *world) {
		w.running()
		stormy := true
		w.api.Refuse = func(request string) error {
			if !stormy || request != "patch status of Machine one" {
				return nil
			}
			m := w.machine()
			m.Labels = map[string]string{"storm": m.ResourceVersion}
			return w.api.Update(w.t.Context(), m)
		}
		w.must(w.api.Delete(w.t.Context(), w.machine()))
		for range 20 {
			w.step()
			result, err := w.manager.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: key})
			w.must(err)
			if due := result.RequeueAfter; due <= 0 || due > staleRetry {
				t.Fatalf("the next pass is due after %s, want %s at most", due, staleRetry)
			}
		}
		stormy = false
		w.steps("the Machine to go", func() bool { return w.machine() == nil })
	})
}

// A read that hangs is given up early enough to tell of it.
func TestHangingReadIsReported(t *testing.T) {
	inWorld(t, fleet(), func(w *world) {
		w.running()
		answer := w.manager.object
		w.manager.object = func(ctx context.Context, _ types.NamespacedName, _ schema.GroupVersionKind) (Found, error) {
			<-ctx.Done()
			return Found{}, ctx.Err()
		}
		w.must(w.api.Delete(w.t.Context(), w.machine()))
		for range 10 {
			ctx, cancel := context.WithTimeout(w.t.Context(), passTimeout)
			began := time.Now()
			_, err := w.manager.Reconcile(ctx, reconcile.Request{NamespacedName: key})
			w.must(err)
			if took := time.Since(began); took > passTimeout/2 {
				t.Errorf("the pass took %s", took)
			}
			cancel()
		}
		want := "Rack fleet/one could not be read: context deadline exceeded"
		if told := w.condition(v1alpha1.ConditionDeleting); !strings.Contains(told, want) {
			t.Errorf("condition Deleting is %s, want it to say %q", told, want)
		}
		w.manager.object = answer
		w.steps("the Machine to go", func() bool { return w.machine() == nil })
	})
}
