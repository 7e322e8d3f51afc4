package drainlock

import (
	"context"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/internal/kube"
)

// observeQueue finds out who has their turn before a node that waits for locks. All
// goes by the cache: who is first is not a matter of right and wrong.
func (n *nodes) observeQueue(ctx context.Context, seen *core.Snapshot) error {
	record := seen.Record
	if record.Spec.Complete || core.Held(record) {
		return nil
	}
	contends := core.Contends(*seen)
	return n.earlier(ctx, record, func(other *v1alpha1.DrainRecord) (enough bool) {
		seen.Earlier++
		if contends && seen.Ahead == nil && n.contends(ctx, other, seen) {
			seen.Ahead = other
		}
		return seen.Earlier >= core.MaxEarlier && (!contends || seen.Ahead != nil)
	})
}

// earlier visits the records that wait for longer than one, in any order, until it has
// seen enough.
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

// contends reports whether the node of another record would take its locks now. One of
// which that cannot be read, or that could not be written lately, holds up nobody.
func (n *nodes) contends(ctx context.Context, other *v1alpha1.DrainRecord, seen *core.Snapshot) bool {
	its := &core.Snapshot{Now: seen.Now, Doubt: seen.Doubt, Record: other, Longest: n.longest, Mutex: seen.Mutex, MutexRecord: seen.MutexRecord}
	its.Refused, _ = n.refusals.of(other.Name, n.clock.Now())
	if _, refused := its.Refused[other.UID]; refused {
		return false
	}
	return observePlace(ctx, its, n.client, n.client) == nil && core.Contends(*its)
}
