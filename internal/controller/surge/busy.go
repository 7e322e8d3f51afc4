package surge

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// busy knows the Deployments that something goes on in, and their ReplicaSets,
// so that the events of all others cost nothing.
type busy struct {
	mu    sync.Mutex
	items map[types.UID]item
}

func newBusy() *busy { return &busy{items: map[types.UID]item{}} }

// with returns the Deployment that is busy with an object: itself, or one of
// its ReplicaSets.
func (b *busy) with(uid types.UID) (item, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	it, found := b.items[uid]
	return it, found
}

// note has to come before what it leads to is read, so that no event is missed
// in between.
func (b *busy) note(uid types.UID, it item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items[uid] = it
}

// forget drops a Deployment and its ReplicaSets.
func (b *busy) forget(it item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for uid, other := range b.items {
		if other == it {
			delete(b.items, uid)
		}
	}
}
