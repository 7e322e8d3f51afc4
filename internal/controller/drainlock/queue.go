package drainlock

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/internal/kube"
)

// countInterval bounds the reuse of a count: thousands of nodes may wait for one budget, and each
// of its changes wakes all of them.
const countInterval = 10 * time.Second

// queue caches counts and heads. It only saves work.
type queue struct {
	mu sync.Mutex
	// counts holds the number of nodes ahead by node.
	counts map[string]count
	// heads holds the first node by budget.
	heads map[v1alpha1.BudgetReference]string
}

type count struct {
	earlier int
	at      time.Time
	// stale is true if the count was reused after a change.
	stale bool
}

func newQueue() *queue {
	return &queue{counts: map[string]count{}, heads: map[v1alpha1.BudgetReference]string{}}
}

// counted returns the number of nodes ahead unless it has to be counted again.
func (q *queue) counted(node string, now time.Time) (earlier int, known bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := q.counts[node]
	if last.at.IsZero() || !now.Before(last.at.Add(countInterval)) {
		return 0, false
	}
	last.stale = last.stale || now.After(last.at)
	q.counts[node] = last
	return last.earlier, true
}

// recount returns when nodes must be counted again because a stale count was used; 0 is never.
func (q *queue) recount(node string, now time.Time) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := q.counts[node]
	if !last.stale {
		return 0
	}
	return min(max(last.at.Add(countInterval).Sub(now), time.Millisecond), countInterval)
}

func (q *queue) note(record *v1alpha1.DrainRecord, earlier int, head *v1alpha1.DrainRecord, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.counts[record.Name] = count{earlier: earlier, at: now}
	if head == nil {
		return
	}
	for _, b := range head.Spec.Budgets {
		q.heads[b] = head.Name
	}
}

// headsOf returns the cached heads of the budgets of a record.
func (q *queue) headsOf(record *v1alpha1.DrainRecord) sets.Set[string] {
	q.mu.Lock()
	defer q.mu.Unlock()
	heads := sets.New[string]()
	for _, b := range record.Spec.Budgets {
		if head, known := q.heads[b]; known {
			heads.Insert(head)
		}
	}
	return heads
}

// leave drops the count of a node that no longer waits.
func (q *queue) leave(node string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.counts, node)
}

func (q *queue) forget(node string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.counts, node)
	maps.DeleteFunc(q.heads, func(_ v1alpha1.BudgetReference, head string) bool { return head == node })
}

// observeQueue finds the node ahead of one that waits for locks. It trusts the cache, since the
// order does not affect safety.
func (n *nodes) observeQueue(ctx context.Context, seen *core.Snapshot) error {
	record, now := seen.Record, n.clock.Now()
	if record.Spec.Complete || core.Held(record) {
		n.queue.leave(record.Name)
		return nil
	}
	contends := core.Contends(*seen)
	if contends {
		seen.Ahead = n.knownHead(ctx, seen)
	}
	if !contends || seen.Ahead != nil {
		if earlier, known := n.queue.counted(record.Name, now); known {
			seen.Earlier = earlier
			return nil
		}
	}
	err := n.earlier(ctx, record, func(other *v1alpha1.DrainRecord) (enough bool) {
		seen.Earlier++
		if contends && seen.Ahead == nil && n.contends(ctx, other, seen) {
			seen.Ahead = other
		}
		return seen.Earlier >= core.MaxEarlier && (!contends || seen.Ahead != nil)
	})
	n.queue.note(record, seen.Earlier, seen.Ahead, now)
	return err
}

// knownHead returns the cached node ahead of this one, if it still is.
func (n *nodes) knownHead(ctx context.Context, seen *core.Snapshot) *v1alpha1.DrainRecord {
	for head := range n.queue.headsOf(seen.Record) {
		other := &v1alpha1.DrainRecord{}
		err := n.client.Get(ctx, client.ObjectKey{Name: head}, other, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
		if err == nil && core.Precedes(other, seen.Record) && n.contends(ctx, other, seen) {
			return other
		}
	}
	return nil
}

// earlier visits the records that have waited longer, in any order, until visit returns true.
func (n *nodes) earlier(ctx context.Context, record *v1alpha1.DrainRecord, visit func(*v1alpha1.DrainRecord) (enough bool)) error {
	visited := sets.New[string]()
	for _, b := range record.Spec.Budgets {
		var others v1alpha1.DrainRecordList
		if err := n.client.List(ctx, &others, client.MatchingFields{kube.RecordBudgetField: keyOf(b).String()},
			client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
			return wrap("list the drain records that ask for budget "+keyOf(b).String(), err)
		}
		for i := range others.Items {
			other := &others.Items[i]
			if visited.Has(other.Name) || !core.Precedes(other, record) {
				continue
			}
			if visited.Insert(other.Name); visit(other) {
				return nil
			}
		}
	}
	return nil
}

// contends reports whether another node would take its locks now. One that cannot be read, or could
// not be written recently, blocks no other node.
func (n *nodes) contends(ctx context.Context, other *v1alpha1.DrainRecord, seen *core.Snapshot) bool {
	its := &core.Snapshot{Now: seen.Now, ClockSkewed: seen.ClockSkewed, Record: other, Longest: n.longest, Mutex: seen.Mutex, MutexRecord: seen.MutexRecord}
	its.Refused, _ = n.refusals.of(other.Name, n.clock.Now())
	if _, refused := its.Refused[other.UID]; refused {
		return false
	}
	return observePlace(ctx, its, n.client, n.client) == nil && observeAway(ctx, its, n.client) == nil && core.Contends(*its)
}
