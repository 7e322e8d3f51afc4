package drainlock

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// A webhook of somebody else takes away what it does not know, or puts back what it
// knew. Nothing is refused then, and nothing has come of the write: it is not made
// again at once.
func TestALockThatDoesNotLastIsNotWrittenAgainAtOnce(t *testing.T) {
	t.Parallel()
	lock := lockedBy(aBudget("web", 1), "nodemaintenance/upgrade/one", 10*time.Minute).Annotations[v1alpha1.LockAnnotation]
	over := saidBack(held(aRecord("one", "web")))
	over.Spec.Complete = true
	for name, test := range map[string]struct {
		stored []client.Object
		// mutate is what the webhook makes of the annotations.
		mutate func(map[string]string)
		want   string
	}{
		"taken away": {
			stored: []client.Object{aRecord("one", "web"), aBudget("web", 1), aPod("web", "one")},
			mutate: func(annotations map[string]string) { delete(annotations, v1alpha1.LockAnnotation) },
			want:   v1alpha1.ReasonBudgetRefused,
		},
		"put back": {
			stored: []client.Object{over, bearing(aBudget("web", 1), lock), aPod("web", "one")},
			mutate: func(annotations map[string]string) { annotations[v1alpha1.LockAnnotation] = lock },
			want:   v1alpha1.ReasonReleasing,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.stored...)
			n, writes := w.nodes(), 0
			n.client = interceptor.NewClient(w.api.Manager, interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
					writes++
					test.mutate(annotationsOf(object))
					return c.Update(ctx, object)
				},
			})
			result, err := n.Reconcile(t.Context(), requestOf("one"))
			w.must(err)
			if writes != 1 || result.RequeueAfter != firstPause {
				t.Errorf("the budget is written %d times and looked at again in %s, want once and %s", writes, result.RequeueAfter, firstPause)
			}
			w.clock.Step(firstPause)
			_, err = n.Reconcile(t.Context(), requestOf("one"))
			w.must(err)
			record, _ := read(w, aRecord("one"))
			if got := meta.FindStatusCondition(record.Status.Conditions, v1alpha1.ConditionLocked).Reason; got != test.want {
				t.Errorf("condition has reason %q, want %q", got, test.want)
			}
		})
	}
}

func annotationsOf(object client.Object) map[string]string {
	if object.GetAnnotations() == nil {
		object.SetAnnotations(map[string]string{})
	}
	return object.GetAnnotations()
}
