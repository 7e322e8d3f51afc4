package eviction

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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
	// unreadPause is how long a pod rests of which something could not be read, or
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
	caller  *Caller
	clock   clock.WithTickerAndDelayedExecution

	// mu may be held when the dispatcher is asked, never when a work queue is, which may
	// itself ask the dispatcher.
	mu         sync.Mutex
	claims     map[types.NamespacedName]claim
	candidates map[types.NamespacedName]*candidate
	// Both are nil until Start.
	items workqueue.TypedDelayingInterface[item]
	news  workqueue.TypedDelayingInterface[types.NamespacedName]
}

// NewQueue returns a Queue that does nothing until it is started.
func NewQueue(options QueueOptions) *Queue {
	options.Workers = cmp.Or(options.Workers, defaultWorkers)
	q := &Queue{
		options:    options,
		clock:      options.Dispatcher.options.Clock,
		claims:     map[types.NamespacedName]claim{},
		candidates: map[types.NamespacedName]*candidate{},
	}
	q.caller = options.Dispatcher.Caller(CallerOptions{Evictor: options.Evictor, NodesGo: true, Wake: q.wake})
	return q
}

// Start evicts until the context ends, and then returns nil. It is called once.
func (q *Queue) Start(ctx context.Context) error {
	items := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[item]{
		Clock: q.clock,
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[item]{Clock: q.clock, Queue: newOwnerQueues(q.caller.hasTurn)}),
	})
	news := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.NamespacedName]{Clock: q.clock})
	q.open(items, news)
	var running sync.WaitGroup
	workers := slots{workers: make(chan struct{}, q.options.Workers*standIns), busy: make(chan struct{}, q.options.Workers)}
	running.Go(func() { q.serve(ctx, items, workers, &running) })
	running.Go(func() {
		for q.spread(news) {
		}
	})
	<-ctx.Done()
	items.ShutDown()
	news.ShutDown()
	running.Wait()
	q.forget()
	return nil
}

// forget has nobody wait for a turn that is never used.
func (q *Queue) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for pod := range q.candidates {
		q.caller.Forget(pod)
	}
}

func (q *Queue) open(items workqueue.TypedDelayingInterface[item], news workqueue.TypedDelayingInterface[types.NamespacedName]) {
	q.mu.Lock()
	q.items, q.news = items, news
	waiting := make([]item, 0, len(q.candidates))
	for _, c := range q.candidates {
		waiting = append(waiting, c.item)
	}
	q.mu.Unlock()
	add(items, waiting)
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

// spread tells the next owner its news; false if there is none any more.
func (q *Queue) spread(news workqueue.TypedInterface[types.NamespacedName]) bool {
	owner, shutdown := news.Get()
	if shutdown {
		return false
	}
	defer news.Done(owner)
	q.options.News(owner)
	return true
}

// Want says which pods the owner wants to be evicted, all of them: those of an
// earlier call that are missing are left alone from now on. A pod that several
// owners want is evicted once. Grace overrides the pods' grace period in
// seconds; nil leaves it alone.
func (q *Queue) Want(owner types.NamespacedName, pods []*corev1.Pod, grace *int64) {
	q.mu.Lock()
	changed := q.claim(owner, pods, grace)
	items := q.items
	q.mu.Unlock()
	add(items, changed)
}

// Answers returns the last refusals of the owner's pods, by the API server or a
// locked budget, that have not been evicted since. Answers that say nothing about the pod are left out
// unless they persist.
func (q *Queue) Answers(owner types.NamespacedName) map[types.UID]evacuation.Outcome {
	q.mu.Lock()
	defer q.mu.Unlock()
	answers := map[types.UID]evacuation.Outcome{}
	for key, c := range q.claims[owner].pods {
		if refusal := q.caller.refusal(key); refusal.Result != "" {
			answers[c.uid] = refusal
		}
	}
	return answers
}

// wake has pods tried as soon as possible.
func (q *Queue) wake(keys ...types.NamespacedName) {
	if len(keys) == 0 {
		return
	}
	q.mu.Lock()
	woken := make([]item, 0, len(keys))
	for _, key := range keys {
		if c := q.candidates[key]; c != nil {
			woken = append(woken, c.item)
		}
	}
	items := q.items
	q.mu.Unlock()
	add(items, woken)
}

func add(queue workqueue.TypedDelayingInterface[item], items []item) {
	if queue == nil {
		return
	}
	for _, t := range items {
		queue.Add(t)
	}
}

// try evicts a pod if it is its turn and returns when to try again, unless it is
// woken before; 0 is not.
func (q *Queue) try(ctx context.Context, t item) time.Duration {
	c, grace := q.candidate(t)
	if c == nil || ctx.Err() != nil {
		return 0
	}
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("owner", t.payer.String()))
	defer q.caller.Yield(t.pod)
	before := q.caller.refusal(t.pod)
	answer, err := q.evict(ctx, c, grace)
	switch {
	case ctx.Err() != nil:
		return 0
	case err != nil:
		log.FromContext(ctx).Error(err, "A pod is not evicted before more is known", "Pod", c.name.String())
		return unreadPause
	case answer.Outcome == nil:
		return answer.Again
	}
	if answer.Outcome.Result == evacuation.Evicted || !sameWords(before, q.caller.refusal(t.pod)) {
		q.tell(t.pod)
	}
	return answer.Again
}

// evict asks the API server if it is the pod's turn. A pod that leaves is left
// alone, and so is one that has come after it under its name. One that is not
// there may be new to us: whoever wants it may have seen it elsewhere.
func (q *Queue) evict(ctx context.Context, c *candidate, grace *int64) (Answer, error) {
	pod := &corev1.Pod{}
	err := q.options.Reader.Get(ctx, c.name, pod, client.DisableReadYourWritesConsistency)
	if client.IgnoreNotFound(err) != nil {
		return Answer{}, fmt.Errorf("get the pod: %w", err)
	}
	if err != nil || pod.UID != c.uid {
		q.caller.Forget(c.item.pod)
		return Answer{Again: unreadPause}, nil
	}
	if pod.DeletionTimestamp != nil {
		q.caller.Forget(c.item.pod)
		return Answer{}, nil
	}
	return q.caller.Evict(ctx, c.item.pod, pod, grace)
}

// sameWords reports whether a status would tell of both refusals alike.
func sameWords(a, b evacuation.Outcome) bool {
	return a.Result == b.Result && a.Type == b.Type && a.Message == b.Message
}

// tell has the pod's owners told.
func (q *Queue) tell(pod types.NamespacedName) {
	q.mu.Lock()
	var owners []types.NamespacedName
	if c := q.candidates[pod]; c != nil {
		owners = slices.Clone(c.owners)
	}
	news := q.news
	q.mu.Unlock()
	for _, owner := range owners {
		news.AddAfter(owner, ReportAfter)
	}
}
