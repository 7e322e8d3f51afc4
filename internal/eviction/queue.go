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
	// slowWork is after how long a worker is not counted any more, and standIns how
	// many there are in all for each that is: a webhook that hangs holds up nobody.
	slowWork = time.Second
	standIns = 4
	// unreadPause is the time for which a pod rests of which something could not be read, or
	// that is not there.
	unreadPause = time.Second
)

// QueueOptions is what a Queue works with.
type QueueOptions struct {
	// Dispatcher is that of the cluster, Evictor evicts there.
	Dispatcher *Dispatcher
	Evictor    Evictor
	// Reader reads pods; it must read from a cache.
	Reader client.Reader
	// Workers is how many pods are evicted at the same time, and up to four times as
	// many while requests take long. Defaults to 16.
	Workers int
	// News is called when a status of the owner would say something else of its
	// pods: a refusal has begun or changed, or an eviction has succeeded. It comes
	// ReportAfter later, once for all that came together.
	News func(owner types.NamespacedName)
}

// Queue has pods of one cluster evicted for several owners, the owners in turn, from nodes
// that go for good. It keeps in memory who wants which pod gone. It is safe for concurrent use.
type Queue struct {
	options QueueOptions
	clock   clock.WithTickerAndDelayedExecution

	// mu is never held when the dispatcher or a work queue is called: both call back.
	mu     sync.Mutex
	claims map[types.NamespacedName]*claim
	// news are the owners that are about to be called.
	news sets.Set[types.NamespacedName]
	// items is nil until Start.
	items workqueue.TypedDelayingInterface[item]
}

// claim is what one owner wants.
type claim struct {
	caller *Caller
	// pods are those that it wants to be evicted, by their keys in the dispatcher.
	pods  map[types.NamespacedName]podRef
	grace *int64
}

type podRef struct {
	name types.NamespacedName
	uid  types.UID
}

// NewQueue returns a Queue that does nothing until it is started.
func NewQueue(options QueueOptions) *Queue {
	options.Workers = cmp.Or(options.Workers, defaultWorkers)
	return &Queue{
		options: options, clock: options.Dispatcher.options.Clock,
		claims: map[types.NamespacedName]*claim{}, news: sets.New[types.NamespacedName](),
	}
}

// Start evicts until the context ends, and then returns nil. It is called once.
func (q *Queue) Start(ctx context.Context) error {
	items := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[item]{
		Clock: q.clock,
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[item]{Clock: q.clock, Queue: newOwnerQueues(q.hasTurn)}),
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
		q.Want(t.owner, nil, nil) // Nobody waits for a turn that is never used.
	}
	return nil
}

// open has pods added to a work queue from now on, and returns those that are wanted already.
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

// slots are those of workers: all of them, and those that count.
type slots struct{ workers, busy chan struct{} }

// serve tries the next pod, while another worker waits for the one after it. Most
// clusters have nothing to evict, and so have one worker, that waits.
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

// work tries a pod, and calls free when that takes long.
func (q *Queue) work(ctx context.Context, items workqueue.TypedDelayingInterface[item], t item, free func()) {
	defer items.Done(t)
	slow := q.clock.AfterFunc(slowWork, free)
	defer slow.Stop()
	if again := q.try(ctx, t); again > 0 {
		items.AddAfter(t, again)
	}
}

// Want sets the pods that the owner wants to be evicted, all of them: those of an
// earlier call that are missing are left alone from now on. No two owners want the same
// pod. Grace overrides the pods' grace period in seconds; nil leaves it alone.
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

// add has pods of an owner tried as soon as possible.
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

// Answers returns the last refusals of the owner's pods, by the API server or a
// locked budget, that have not been evicted since. Answers that say nothing about the pod are left out
// unless they persist.
func (q *Queue) Answers(owner types.NamespacedName) map[types.UID]evacuation.Outcome {
	q.mu.Lock()
	c := q.claims[owner]
	var pods map[types.NamespacedName]podRef
	if c != nil {
		pods = c.pods
	}
	q.mu.Unlock()
	answers := map[types.UID]evacuation.Outcome{}
	for key, pod := range pods {
		if refusal := c.caller.refusal(key); refusal.Result != "" {
			answers[pod.uid] = refusal
		}
	}
	return answers
}

// wanted returns who wants a pod, and which; the claim is nil if nobody does.
func (q *Queue) wanted(t item) (c *claim, pod podRef, grace *int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c = q.claims[t.owner]
	if c == nil || c.pods[t.pod] == (podRef{}) {
		return nil, podRef{}, nil
	}
	return c, c.pods[t.pod], c.grace
}

// hasTurn reports whether others wait for a pod.
func (q *Queue) hasTurn(t item) bool {
	c, _, _ := q.wanted(t)
	return c != nil && c.caller.hasTurn(t.pod)
}

// try evicts a pod if it is its turn and returns when to try again, unless it is
// woken before; 0 is not.
func (q *Queue) try(ctx context.Context, t item) time.Duration {
	c, pod, grace := q.wanted(t)
	if c == nil || ctx.Err() != nil {
		return 0
	}
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("owner", t.owner.String()))
	defer func() {
		c.caller.Yield(t.pod)
		if now, _, _ := q.wanted(t); now != c {
			c.caller.Forget(t.pod) // It was dropped meanwhile.
		}
	}()
	before := c.caller.refusal(t.pod)
	answer, err := q.evict(ctx, c.caller, t.pod, pod, grace)
	switch {
	case ctx.Err() != nil:
		return 0
	case err != nil:
		log.FromContext(ctx).Error(err, "A pod is not evicted before more is known", "Pod", pod.name.String())
		return unreadPause
	case answer.Outcome == nil:
		return answer.Again
	}
	if answer.Outcome.Result == evacuation.Evicted || !sameWords(before, c.caller.refusal(t.pod)) {
		q.tell(t.owner)
	}
	return answer.Again
}

// evict asks the API server if it is the pod's turn. A pod that leaves is left
// alone, and so is one that has come after it under its name. One that is not
// there may be new to us: whoever wants it may have seen it elsewhere.
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

// sameWords reports whether a status would tell of both refusals alike.
func sameWords(a, b evacuation.Outcome) bool {
	return a.Result == b.Result && a.Type == b.Type && a.Message == b.Message
}

// tell has News called for an owner.
func (q *Queue) tell(owner types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.news.Has(owner) {
		return
	}
	q.news.Insert(owner)
	q.clock.AfterFunc(ReportAfter, func() {
		q.mu.Lock()
		q.news.Delete(owner)
		q.mu.Unlock()
		q.options.News(owner)
	})
}
