package drainlock

import (
	"context"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	core "ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/internal/kube"
)

// +kubebuilder:rbac:groups=ebbtide.dev,resources=drainrecords,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch

// observe reads the snapshot of a node, or nil if it has no record. Lists do not wait for own
// writes, as one that hangs would block them. What must not be older than our writes is read on its
// own.
func (n *nodes) observe(ctx context.Context, name string) (*core.Snapshot, error) {
	record, err := recordOf(ctx, n.client, name)
	if err != nil || record == nil {
		return nil, err
	}
	seen := &core.Snapshot{Record: record, Longest: n.longest}
	seen.Now, seen.ClockSkewed = n.now()
	seen.Refused, _ = n.refusals.of(name, n.clock.Now())
	if err := n.observeTraffic(ctx, seen); err != nil {
		return nil, err
	}
	if err := n.observeMutex(ctx, seen); err != nil {
		return nil, err
	}
	cached, err := nodeOf(ctx, n.client, name)
	if err != nil {
		return nil, err
	}
	seen.Node = cached
	seen.Live = core.NeedsLive(record, seen.Now) || core.Booted(record, cached)
	if err := n.observeBody(ctx, seen); err != nil {
		return nil, err
	}
	if !seen.Live && core.Wavers(*seen) {
		seen.Live, seen.Budgets = true, nil
		if err := n.observeBody(ctx, seen); err != nil {
			return nil, err
		}
	}
	seen.Watched = core.SamePromise(cached, seen.Node)
	if err := observeAway(ctx, seen, n.client); err != nil {
		return nil, err
	}
	return seen, n.observeQueue(ctx, seen)
}

// observeTraffic reads the budgets with own evictions in flight. The evictor reads from the cache,
// which must therefore show our lock first. Evictions that end later are visible in the budget,
// which is read afterwards.
func (n *nodes) observeTraffic(ctx context.Context, seen *core.Snapshot) error {
	var unseen []client.ObjectKey
	for _, lock := range seen.Record.Status.Locks {
		if lock.ConfirmedTime != nil {
			continue
		}
		key := keyOf(lock.BudgetReference)
		cached := &policyv1.PodDisruptionBudget{}
		if err := n.client.Get(ctx, key, cached, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get budget %s: %w", key, err)
		}
		hold, locked := budget.LockOf(cached, seen.Now, n.longest)
		if _, node, _ := hold.Drain(); !locked || node != seen.Record.Name {
			unseen = append(unseen, key)
		}
	}
	seen.Busy = n.traffic.Busy()
	for _, key := range unseen {
		seen.Busy[key] = true
	}
	return nil
}

func (n *nodes) observeMutex(ctx context.Context, seen *core.Snapshot) error {
	mutex := &coordinationv1.Lease{}
	err := n.client.Get(ctx, client.ObjectKey{Namespace: n.namespace, Name: v1alpha1.DrainLockMutex}, mutex)
	if err != nil {
		return wrap("get Lease "+v1alpha1.DrainLockMutex, client.IgnoreNotFound(err))
	}
	seen.Mutex = mutex
	if mutex.Spec.HolderIdentity == nil {
		return nil
	}
	if _, node, ok := strings.Cut(*mutex.Spec.HolderIdentity, "/"); ok {
		seen.MutexRecord, err = recordOf(ctx, n.client, node, client.DisableReadYourWritesConsistency)
	}
	return err
}

// nodeOf reads a node; nil if it is gone.
func nodeOf(ctx context.Context, reader client.Reader, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return nil, wrap("get node "+name, client.IgnoreNotFound(err))
	}
	return node, nil
}

// observeBody reads the node before its budgets and pods, whose status could otherwise be older
// than the boot.
func (n *nodes) observeBody(ctx context.Context, seen *core.Snapshot) (err error) {
	reader := client.Reader(n.client)
	if seen.Live {
		select {
		case n.reading <- struct{}{}:
			defer func() { <-n.reading }()
		case <-ctx.Done():
			return ctx.Err()
		}
		reader = n.live
		if seen.Node, err = nodeOf(ctx, reader, seen.Record.Name); err != nil {
			return err
		}
	}
	return observePlace(ctx, seen, n.client, reader)
}

// observePlace reads the budgets that concern the record, and then the pods of the node.
func observePlace(ctx context.Context, seen *core.Snapshot, cached, reader client.Reader) error {
	keys, err := observeStrays(ctx, seen, cached)
	if err != nil {
		return err
	}
	for _, key := range keys {
		one := &policyv1.PodDisruptionBudget{}
		switch err := reader.Get(ctx, key, one); {
		case err == nil:
			seen.Budgets = append(seen.Budgets, one)
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("get budget %s: %w", key, err)
		}
	}
	var pods corev1.PodList
	err = reader.List(ctx, &pods, client.MatchingFields{kube.PodNodeField: seen.Record.Name},
		client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	seen.Pods = kube.Pointers(pods.Items)
	return wrap("list the pods of node "+seen.Record.Name, err)
}

// maxStrays limits the budgets in a snapshot that only an annotation relates to the record.
const maxStrays = 16

// observeStrays adds a few locked budgets that the record does not ask for, and returns the keys of
// those that it does.
func observeStrays(ctx context.Context, seen *core.Snapshot, cached client.Reader) ([]client.ObjectKey, error) {
	keys := sets.New[client.ObjectKey]()
	for _, needed := range seen.Record.Spec.Budgets {
		keys.Insert(keyOf(needed))
	}
	for _, lock := range seen.Record.Status.Locks {
		keys.Insert(keyOf(lock.BudgetReference))
	}
	for _, given := range seen.Record.Status.GivenUp {
		keys.Insert(keyOf(given.BudgetReference))
	}
	var budgets policyv1.PodDisruptionBudgetList
	if err := cached.List(ctx, &budgets, client.MatchingFields{kube.LockNodeField: seen.Record.Name},
		client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
		return nil, fmt.Errorf("list budgets: %w", err)
	}
	for i := range budgets.Items {
		one := &budgets.Items[i]
		stray := !keys.Has(client.ObjectKeyFromObject(one)) && seen.Refused[one.UID] == "" && core.Concerns(seen.Record, one)
		if stray && len(seen.Budgets) < maxStrays {
			seen.Budgets = append(seen.Budgets, one)
		}
	}
	return keys.UnsortedList(), nil
}

func keyOf(b v1alpha1.BudgetReference) client.ObjectKey {
	return client.ObjectKey{Namespace: b.Namespace, Name: b.Name}
}

// recordOf reads the record of a node; nil if there is none.
func recordOf(ctx context.Context, c client.Reader, node string, options ...client.GetOption) (*v1alpha1.DrainRecord, error) {
	record := &v1alpha1.DrainRecord{}
	if err := c.Get(ctx, client.ObjectKey{Name: node}, record, options...); err != nil {
		return nil, wrap("get the drain record of node "+node, client.IgnoreNotFound(err))
	}
	return record, nil
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
