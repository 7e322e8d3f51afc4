package rollout

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/kube"
)

// trusted is the time for which the answer of the API server counts while the cache has no such
// object. The cache shows a write within milliseconds.
const trusted = 5 * time.Second

// newest holds the newest known states of objects until the cache has them. It is safe for
// concurrent use.
type newest[T client.Object] struct {
	clock clock.PassiveClock

	mu  sync.Mutex
	all map[string]known[T]
}

// known is the state of an object, as the API server returned it.
type known[T client.Object] struct {
	object T
	// absent is true if there was no such object.
	absent bool
	at     time.Time
}

func newNewest[T client.Object](clk clock.PassiveClock) *newest[T] {
	return &newest[T]{clock: clk, all: map[string]known[T]{}}
}

// note remembers an object that the API server returned. One whose last finalizer was removed is
// gone.
func (n *newest[T]) note(object T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 {
		delete(n.all, object.GetName())
		return
	}
	if before := n.all[object.GetName()]; before.at.IsZero() || before.absent || !newer(before.object, object) {
		n.all[object.GetName()] = known[T]{object: object, at: n.clock.Now()}
	}
}

// noteAbsent remembers that there is no object of a name.
func (n *newest[T]) noteAbsent(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all[name] = known[T]{absent: true, at: n.clock.Now()}
}

func (n *newest[T]) forget(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.all, name)
}

// gone forgets an object that the cache has seen go.
func (n *newest[T]) gone(object T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if one := n.all[object.GetName()]; !one.absent && !one.at.IsZero() && one.object.GetUID() == object.GetUID() {
		delete(n.all, object.GetName())
	}
}

// isAbsent reports whether there was no object of a name recently.
func (n *newest[T]) isAbsent(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.all[name]
	return one.absent && n.clock.Since(one.at) < trusted
}

// over returns the objects of the cache with the states that it does not have yet, by name, and when
// one of them is no longer trusted; 0 is never.
func (n *newest[T]) over(cached []T) (all map[string]T, due time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	all = make(map[string]T, len(cached))
	for _, object := range cached {
		name := object.GetName()
		all[name] = object
		one, remembered := n.all[name]
		switch {
		case !remembered:
		case !one.absent && one.object.GetUID() == object.GetUID() && newer(one.object, object):
			all[name] = one.object
		default:
			delete(n.all, name)
		}
	}
	for name, one := range n.all {
		left := trusted - n.clock.Since(one.at)
		if _, shown := all[name]; shown {
			continue
		}
		if left <= 0 {
			delete(n.all, name)
			continue
		}
		if !one.absent {
			all[name] = one.object
			due = kube.Soonest(due, left)
		}
	}
	return all, due
}

// newer reports whether a state is newer than another one of the same object.
func newer(a, b client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0
}
