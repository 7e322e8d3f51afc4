package nodemaintenance

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/core/nodebudget"
	"ebbtide.dev/ebbtide/internal/kube"
)

// nodeBudgets tells which NodeBudgets hold nodes back. Without the part of rollouts, which admits
// nodes, there are none.
type nodeBudgets struct {
	// served tells whether the part of rollouts is served, if that is known; nil if it never runs.
	served func() (served, known bool)
	synced atomic.Bool
	// changes counts those of budgets that can let nodes go.
	changes atomic.Uint64

	mu sync.Mutex
	// held are the nodes that waited in the last decision about them.
	held sets.Set[string]
}

// watchNodeBudgets watches the NodeBudgets while they are served.
func (r *reconciler) watchNodeBudgets(mgr manager.Manager, served *kube.Served) {
	r.nodeBudgets.served = served.Asked
	served.OnAnswer(func() { r.touchHeld(nil) })
	served.Part(func(ctx context.Context) error {
		informer, err := mgr.GetCache().GetInformer(ctx, &v1alpha1.NodeBudget{})
		if err != nil {
			return fmt.Errorf("watch NodeBudgets: %w", err)
		}
		handle, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(now any) { r.nodeBudgetMatters(nil, now) },
			UpdateFunc: r.nodeBudgetMatters,
			DeleteFunc: func(any) { r.touchHeld(nil) },
		})
		if err != nil {
			return fmt.Errorf("watch NodeBudgets: %w", err)
		}
		defer func() { _ = informer.RemoveEventHandler(handle) }()
		if !cache.WaitForCacheSync(ctx.Done(), handle.HasSynced) {
			return nil
		}
		r.nodeBudgets.synced.Store(true)
		defer r.nodeBudgets.synced.Store(false)
		r.touchHeld(nil)
		<-ctx.Done()
		return nil
	})
}

// observeNodeBudgets reads the NodeBudgets. Nodes that no maintenance has cordoned wait while they are
// unknown.
func (r *reconciler) observeNodeBudgets(ctx context.Context) nodebudget.Set {
	if r.nodeBudgets.served == nil {
		return nodebudget.Set{}
	}
	served, known := r.nodeBudgets.served()
	switch {
	case known && !served:
		return nodebudget.Set{}
	case !r.nodeBudgets.synced.Load():
		return nodebudget.Unread("the manager has just started, or the API server does not answer")
	}
	var all v1alpha1.NodeBudgetList
	if err := r.list(ctx, &all); err != nil {
		return nodebudget.Unread(err.Error())
	}
	return nodebudget.Compile(kube.Pointers(all.Items))
}

// nodeBudgetMatters makes the nodes due that a budget has admitted or admits no more, and after a
// change of its spec all that wait.
func (r *reconciler) nodeBudgetMatters(old, now any) {
	before, _ := old.(*v1alpha1.NodeBudget)
	after, _ := now.(*v1alpha1.NodeBudget)
	if before == nil || before.Generation != after.Generation || !before.DeletionTimestamp.Equal(after.DeletionTimestamp) {
		r.touchHeld(nil)
		return
	}
	if equality.Semantic.DeepEqual(before.Status.Working, after.Status.Working) {
		return
	}
	was, is := nodebudget.Admitted(before), nodebudget.Admitted(after)
	r.touchHeld(func(node string) bool { return was[node] != is[node] })
}

// touchHeld makes those of the waiting nodes due that match; nil matches all.
func (r *reconciler) touchHeld(match func(node string) bool) {
	r.nodeBudgets.changes.Add(1)
	var due []group.Member
	r.nodeBudgets.mu.Lock()
	for node := range r.nodeBudgets.held {
		if match == nil || match(node) {
			due = append(due, group.Node(node))
		}
	}
	r.nodeBudgets.mu.Unlock()
	r.schedule.touch(r.clock.Now(), 0, due...)
}

// hold notes which nodes of a group wait. It returns when to decide again, because budgets have changed
// since the decision was begun, or could not be read; 0 is never.
func (b *nodeBudgets) hold(nodes, waiting []string, begun uint64, unread bool) time.Duration {
	b.mu.Lock()
	b.held.Delete(nodes...)
	b.held.Insert(waiting...)
	b.mu.Unlock()
	switch {
	case len(waiting) == 0:
		return 0
	case b.changes.Load() != begun:
		return atOnce
	case unread:
		return lastRetry
	default:
		return 0
	}
}
