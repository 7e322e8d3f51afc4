package nodemaintenance

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

const (
	// slowWrite bounds the time that a pass waits for one write, slowCordon for a cordon, because
	// pods of other nodes must not land on that node.
	slowWrite, slowCordon = 250 * time.Millisecond, 2 * time.Second
	// maxSlow bounds the concurrent writes of one namespace while one of them is slow.
	maxSlow = 64
)

// change is a write that belongs to a node. The request may outlast its pass, so it logs itself.
type change struct {
	maintenance.Write

	namespace string // of the pod; empty for a node
	request   func() error
}

func longest(kind maintenance.WriteKind) <-chan time.Time {
	if kind == maintenance.WriteCordon {
		return time.After(slowCordon)
	}
	return time.After(slowWrite)
}

// attempt makes a write unless it rests after a refusal, or is still under way, and returns true if
// it was made. A slow write goes on without its pass, and another pass follows when it has ended.
func (w *writer) attempt(ctx context.Context, owner group.Member, c change) bool {
	if w.rests(owner, c.Write) || !w.flights.begin(owner, c) {
		return false
	}
	ended := make(chan error, 1)
	go func() { ended <- c.request() }()
	select {
	case err := <-ended:
		w.reconciler.schedule.touch(w.clock.Now(), coalesce, w.flights.end(owner, c, false)...)
		return w.settle(owner, c.Write, err)
	case <-w.longest(c.Kind):
		w.flights.leave(c)
		go w.reconciler.outlast(ctx, owner, c, ended)
		return false
	}
}

// outlast waits for a write whose pass is over.
func (r *reconciler) outlast(ctx context.Context, owner group.Member, c change, ended <-chan error) {
	switch err := <-ended; {
	case err == nil:
		r.refusals.forget(owner, c.Write)
	case !stale(err):
		r.refusals.add(r.clock.Now(), owner, c.Write, err)
		log.FromContext(ctx).Error(err, "Slow write refused, retrying by its own back-off", "kind", c.Kind)
	}
	r.schedule.touch(r.clock.Now(), coalesce, append(r.flights.end(owner, c, true), owner)...)
}

// flights holds the writes of nodes that are under way. It is safe for concurrent use.
type flights struct {
	mu sync.Mutex
	of map[group.Member]sets.Set[maintenance.Write]
	// count and slow count them by namespace, slow those that go on without their passes; waiting
	// are the nodes with more of them.
	count, slow map[string]int
	waiting     map[string]sets.Set[group.Member]
}

func newFlights() *flights {
	return &flights{of: map[group.Member]sets.Set[maintenance.Write]{}, count: map[string]int{}, slow: map[string]int{}, waiting: map[string]sets.Set[group.Member]{}}
}

// begin returns false if the write is under way, or its namespace has a slow one and maxSlow in all.
func (f *flights) begin(owner group.Member, c change) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of[owner].Has(c.Write) {
		return false
	}
	if f.slow[c.namespace] > 0 && f.count[c.namespace] >= maxSlow {
		if f.waiting[c.namespace] == nil {
			f.waiting[c.namespace] = sets.New[group.Member]()
		}
		f.waiting[c.namespace].Insert(owner)
		return false
	}
	if f.of[owner] == nil {
		f.of[owner] = sets.New[maintenance.Write]()
	}
	f.of[owner].Insert(c.Write)
	f.count[c.namespace]++
	return true
}

// leave notes that a write goes on without its pass.
func (f *flights) leave(c change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.namespace != "" {
		f.slow[c.namespace]++
	}
}

// end ends a write, and returns the nodes that waited for one to end.
func (f *flights) end(owner group.Member, c change, slow bool) []group.Member {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of[owner].Delete(c.Write); f.of[owner].Len() == 0 {
		delete(f.of, owner)
	}
	if f.count[c.namespace]--; f.count[c.namespace] == 0 {
		delete(f.count, c.namespace)
	}
	if slow && c.namespace != "" {
		if f.slow[c.namespace]--; f.slow[c.namespace] == 0 {
			delete(f.slow, c.namespace)
		}
	}
	waiting := f.waiting[c.namespace].UnsortedList()
	delete(f.waiting, c.namespace)
	return waiting
}

// has returns true if a write of a node is under way.
func (f *flights) has(node string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of[group.Node(node)].Len() > 0
}
