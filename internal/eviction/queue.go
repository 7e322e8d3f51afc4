package eviction

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

const (
	defaultWorkers = 16
	// A worker that takes longer than slowWork no longer counts, up to standIns workers for each
	// that does: a webhook that hangs does not delay other pods.
	slowWork = time.Second
	standIns = 4
	// unreadPause is the pause after a pod, or something about it, could not be read or found.
	unreadPause = time.Second
)

// QueueOptions configures a Queue.
type QueueOptions struct {
	// Dispatcher and Evictor belong to the cluster.
	Dispatcher *Dispatcher
	Evictor    Evictor
	// Reader reads pods; it must read from a cache.
	Reader client.Reader
	// Workers is the number of pods that are evicted at the same time, up to four times as many
	// while requests are slow. Defaults to 16.
	Workers int
	// Changed is called ReportAfter after a refusal of one of the owner's pods began or changed, or
	// after an eviction succeeded; once for all that happened in that time.
	Changed func(owner types.NamespacedName)
}

// Queue evicts pods of one cluster for several owners in turn, from nodes that are deleted
// afterwards. It keeps their claims in memory. It is safe for concurrent use.
type Queue struct {
	options QueueOptions
	clock   clock.WithTickerAndDelayedExecution

	// mu is never held when the dispatcher or a work queue is called: both call back.
	mu     sync.Mutex
	claims map[types.NamespacedName]*claim
	// changed are the owners for which Changed is about to be called.
	changed sets.Set[types.NamespacedName]
	// items is nil until Start.
	items workqueue.TypedDelayingInterface[item]
}

// claim holds the pods that one owner wants to be evicted.
type claim struct {
	caller *Caller
	// pods are indexed by their keys in the dispatcher.
	pods  map[types.NamespacedName]podRef
	grace *int64
}

type podRef struct {
	name types.NamespacedName
	uid  types.UID
}

// NewQueue returns a Queue that does nothing before Start.
func NewQueue(options QueueOptions) *Queue {
	options.Workers = cmp.Or(options.Workers, defaultWorkers)
	return &Queue{
		options: options, clock: options.Dispatcher.options.Clock,
		claims: map[types.NamespacedName]*claim{}, changed: sets.New[types.NamespacedName](),
	}
}

// Start evicts until the context ends, and then returns nil. It is called once.
func (q *Queue) Start(ctx context.Context) error {
	items := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[item]{
		Clock: q.clock,
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[item]{Clock: q.clock, Queue: newOwnerQueues(q.isAwaited)}),
	})
	for _, t := range q.open(items) {
		items.Add(t)
	}
	var running sync.WaitGroup
	workers := slots{workers: make(chan struct{}, q.options.Workers*standIns), busy: make(chan struct{}, q.options.Workers)}
	running.Go(func() { q.serve(ctx, items, workers, &running) })
	<-ctx.Done()
	items.ShutDown()
	running.Wait()
	for _, t := range q.open(nil) {
		q.Want(t.owner, nil, nil) // Frees their turns for other pods.
	}
	return nil
}

// open sets the work queue of later pods, and returns the pods that are wanted already.
func (q *Queue) open(items workqueue.TypedDelayingInterface[item]) (wanted []item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = items
	for owner, c := range q.claims {
		for pod := range c.pods {
			wanted = append(wanted, item{pod, owner})
		}
	}
	return wanted
}

// slots limits all workers, and those that count.
type slots struct{ workers, busy chan struct{} }

// serve evicts the next pod, while another worker waits for the one after it. A cluster with
// nothing to evict has one worker, which waits.
func (q *Queue) serve(ctx context.Context, items workqueue.TypedDelayingInterface[item], s slots, running *sync.WaitGroup) {
	s.workers <- struct{}{}
	defer func() { <-s.workers }()
	s.busy <- struct{}{}
	free := sync.OnceFunc(func() { <-s.busy })
	defer free()
	t, shutdown := items.Get()
	if shutdown {
		return
	}
	running.Go(func() { q.serve(ctx, items, s, running) })
	q.work(ctx, items, t, free)
}

// work tries to evict a pod, and calls free when that is slow.
func (q *Queue) work(ctx context.Context, items workqueue.TypedDelayingInterface[item], t item, free func()) {
	defer items.Done(t)
	slow := q.clock.AfterFunc(slowWork, free)
	defer slow.Stop()
	if again := q.try(ctx, t); again > 0 {
		items.AddAfter(t, again)
	}
}

// Want sets all pods that the owner wants to be evicted: those of an earlier call that are missing
// are no longer evicted. Two owners must not want the same pod. Grace overrides the pods' grace
// period in seconds; nil does not.
func (q *Queue) Want(owner types.NamespacedName, pods []*corev1.Pod, grace *int64) {
	now := make(map[types.NamespacedName]podRef, len(pods))
	var added, dropped []types.NamespacedName
	q.mu.Lock()
	c := q.claims[owner]
	if c == nil {
		c = &claim{caller: q.options.Dispatcher.Caller(CallerOptions{
			Evictor: q.options.Evictor, NodesGo: true, Wake: func(keys ...types.NamespacedName) { q.add(owner, keys) },
		})}
	}
	for _, pod := range pods {
		key := types.NamespacedName{Namespace: pod.Namespace, Name: evacuation.Name(pod)}
		now[key] = podRef{client.ObjectKeyFromObject(pod), pod.UID}
		if _, known := c.pods[key]; !known {
			added = append(added, key)
		}
	}
	for key := range c.pods {
		if _, wanted := now[key]; !wanted {
			dropped = append(dropped, key)
		}
	}
	c.pods, c.grace = now, grace
	if q.claims[owner] = c; len(now) == 0 {
		delete(q.claims, owner)
	}
	q.mu.Unlock()
	for _, key := range dropped {
		c.caller.Forget(key)
	}
	q.add(owner, added)
}

// add queues pods of an owner.
func (q *Queue) add(owner types.NamespacedName, pods []types.NamespacedName) {
	q.mu.Lock()
	items := q.items
	q.mu.Unlock()
	if items == nil {
		return
	}
	for _, pod := range pods {
		items.Add(item{pod, owner})
	}
}

// Refusals returns the last refusals of the owner's pods, by the API server or a locked budget.
// Throttling and lost races are left out unless they persist.
func (q *Queue) Refusals(owner types.NamespacedName) map[types.UID]evacuation.Outcome {
	q.mu.Lock()
	c := q.claims[owner]
	var pods map[types.NamespacedName]podRef
	if c != nil {
		pods = c.pods
	}
	q.mu.Unlock()
	refusals := map[types.UID]evacuation.Outcome{}
	for key, pod := range pods {
		if refusal := c.caller.refusal(key); refusal.Result != "" {
			refusals[pod.uid] = refusal
		}
	}
	return refusals
}

// wanted returns the claim of a pod; nil if there is none.
func (q *Queue) wanted(t item) (c *claim, pod podRef, grace *int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c = q.claims[t.owner]
	if c == nil || c.pods[t.pod] == (podRef{}) {
		return nil, podRef{}, nil
	}
	return c, c.pods[t.pod], c.grace
}

// isAwaited reports whether other pods of its budget wait for a pod.
func (q *Queue) isAwaited(t item) bool {
	c, _, _ := q.wanted(t)
	return c != nil && c.caller.isTrying(t.pod)
}

// try evicts a pod if it is its turn, and returns after which time to try again unless it is woken
// before; 0 is never.
func (q *Queue) try(ctx context.Context, t item) time.Duration {
	c, pod, grace := q.wanted(t)
	if c == nil || ctx.Err() != nil {
		return 0
	}
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("owner", t.owner.String()))
	defer func() {
		c.caller.Yield(t.pod)
		if now, _, _ := q.wanted(t); now != c {
			c.caller.Forget(t.pod) // It was withdrawn meanwhile.
		}
	}()
	before := c.caller.refusal(t.pod)
	answer, err := q.evict(ctx, c.caller, t.pod, pod, grace)
	switch {
	case ctx.Err() != nil:
		return 0
	case err != nil:
		log.FromContext(ctx).Error(err, "Could not decide about an eviction", "Pod", pod.name.String())
		return unreadPause
	case answer.Outcome == nil:
		return answer.Again
	}
	if answer.Outcome.Result == evacuation.Evicted || !reportsAlike(before, c.caller.refusal(t.pod)) {
		q.notify(t.owner)
	}
	return answer.Again
}

// evict calls the API server if it is the pod's turn. A pod that is terminating, or another one
// under its name, is not evicted. A pod that is missing may be too new for the cache.
func (q *Queue) evict(ctx context.Context, caller *Caller, key types.NamespacedName, wanted podRef, grace *int64) (Answer, error) {
	pod := &corev1.Pod{}
	err := q.options.Reader.Get(ctx, wanted.name, pod, client.DisableReadYourWritesConsistency)
	if client.IgnoreNotFound(err) != nil {
		return Answer{}, fmt.Errorf("get the pod: %w", err)
	}
	if err != nil || pod.UID != wanted.uid {
		caller.Forget(key)
		return Answer{Again: unreadPause}, nil
	}
	if pod.DeletionTimestamp != nil {
		caller.Forget(key)
		return Answer{}, nil
	}
	return caller.Evict(ctx, key, pod, grace)
}

// reportsAlike reports whether a status would show both refusals alike.
func reportsAlike(a, b evacuation.Outcome) bool {
	return a.Result == b.Result && a.Type == b.Type && a.Message == b.Message
}

// notify calls Changed for an owner after ReportAfter.
func (q *Queue) notify(owner types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.changed.Has(owner) {
		return
	}
	q.changed.Insert(owner)
	q.clock.AfterFunc(ReportAfter, func() {
		q.mu.Lock()
		q.changed.Delete(owner)
		q.mu.Unlock()
		q.options.Changed(owner)
	})
}
