package surge

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// pausePerPod is the time for which a Deployment is left alone after an event, for each of
	// its pods: to look at one takes about a tenth of it. Without that, pods that
	// change all the time would have a large Deployment looked at without end.
	pausePerPod = 200 * time.Microsecond
	// longestPause applies to the largest Deployments.
	longestPause = 2 * time.Second
)

// busy knows the Deployments that something goes on in, and their ReplicaSets,
// so that the events of all others cost nothing.
type busy struct {
	mu    sync.Mutex
	items map[types.UID]item
	// known holds the observations of each Deployment.
	known map[item]*known
}

type known struct {
	// uids lists the UIDs that lead to it in items, now or earlier.
	uids []types.UID
	// pods counts its pods at the last observation.
	pods int
}

func newBusy() *busy { return &busy{items: map[types.UID]item{}, known: map[item]*known{}} }

// with returns the Deployment that is busy with an object: itself, or one of
// its ReplicaSets.
func (b *busy) with(uid types.UID) (item, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	it, found := b.items[uid]
	return it, found
}

// none reports whether nobody is busy.
func (b *busy) none() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.known) == 0
}

// note has to come before what it leads to is read, so that no event is missed
// in between.
func (b *busy) note(uid types.UID, it item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known[it] == nil {
		b.known[it] = &known{}
	}
	if other, noted := b.items[uid]; !noted || other != it {
		b.items[uid] = it
		b.known[it].uids = append(b.known[it].uids, uid)
	}
}

// observed returns how many pods there are to look at.
func (b *busy) observed(it item, pods int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known[it] != nil {
		b.known[it].pods = pods
	}
}

// pause returns how long after an event an item is looked at.
func (b *busy) pause(it item) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known[it] == nil {
		return 0
	}
	return min(time.Duration(b.known[it].pods)*pausePerPod, longestPause)
}

// forget drops a Deployment and its ReplicaSets.
func (b *busy) forget(it item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known[it] == nil {
		return
	}
	for _, uid := range b.known[it].uids {
		if b.items[uid] == it {
			delete(b.items, uid)
		}
	}
	delete(b.known, it)
}
