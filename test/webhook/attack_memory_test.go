package webhook

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/heap"
	"ebbtide.dev/ebbtide/test/patience"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// mayGrow is by how many bytes the heap may grow while a namespace attacks: of this process,
// which holds the attackers as well.
const mayGrow = 192 << 20

var dryRun = metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}

// blowUp creates 150 budgets in a namespace, each as large as annotations may make it.
func blowUp(t *testing.T, c *cluster.Cluster, namespace string) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(10)
	for n := range 150 {
		group.Go(func() error {
			return c.Client.Create(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: fmt.Sprintf("budget-%d", n), Annotations: map[string]string{"blown": strings.Repeat("u", 200<<10)},
			}})
		})
	}
	must(t, group.Wait())
}

// One who may edit a namespace blows up its budgets and evicts its pods in dry runs, all at
// once. Memory stays bounded, and the lock of another namespace holds meanwhile.
func TestBudgetsOfANamespaceDoNotTakeTheManagersMemory(t *testing.T) {
	c := newAPI(t)
	attacked, other := c.Namespace(t), c.Namespace(t)
	web, locked := newPod(t, c, attacked, "web", nil), newPod(t, c, other, "web", nil)
	must(t, c.Client.Create(t.Context(), sample.LockedBudget(other, time.Hour)))
	blowUp(t, c, attacked)

	var refused atomic.Int64
	words := fmt.Sprintf("the PodDisruptionBudgets of namespace %s have more than 8388608 bytes", attacked)
	grown := heap.Grows(t, func() {
		var attack sync.WaitGroup
		defer attack.Wait()
		for range 48 {
			attack.Go(func() {
				for range 4 {
					if strings.Contains(errorText(evictWith(t, c.Client, web, dryRun)), words) {
						refused.Add(1)
					}
				}
			})
		}
		patience.Eventually(t, "the answer to an eviction of a locked pod", func(context.Context) (string, bool) {
			err := evictWith(t, c.Client, locked, dryRun)
			return errorText(err), strings.Contains(errorText(err), "is locked by dba@example.com")
		})
	})
	if grown > mayGrow {
		t.Errorf("the heap has grown by %d MiB, want at most %d MiB", grown>>20, mayGrow>>20)
	}
	if refused.Load() == 0 {
		t.Errorf("no eviction was told that %s", words)
	}
	t.Logf("the heap has grown by %d MiB; %d of 192 evictions were refused", grown>>20, refused.Load())
}

// A review that is too large to be read is refused all the same: this one grows sixfold on its
// way, since JSON escapes it.
func TestAPaddedEvictionDoesNotPassALock(t *testing.T) {
	c := newAPI(t)
	pod := newPod(t, c, c.Namespace(t), "web", nil)
	must(t, c.Client.Create(t.Context(), sample.LockedBudget(pod.Namespace, time.Hour)))
	padded := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Annotations: map[string]string{"padding": strings.Repeat("<", 1300<<10)}},
		DeleteOptions: &dryRun,
	}
	patience.Eventually(t, "the refusal of a padded eviction", func(ctx context.Context) (string, bool) {
		err := c.Client.SubResource("eviction").Create(ctx, sample.Pod(pod.Namespace, pod.Name), padded.DeepCopy())
		return errorText(err), strings.Contains(errorText(err), "7 MiB")
	})
}
