package eviction

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// lateAnswer is for how long an eviction may still be carried out that had no
// answer: that is when the API server ends a request of its own accord.
const lateAnswer = time.Minute

// traffic knows for which disruption budgets evictions are under way in one cluster,
// from before the look whether a budget is locked until the answer is there.
//
// Whoever has locked a budget sees the lock in the cache that these read, and then
// asks what is busy. What is not busy then is not evicted: a look that began earlier has
// been noted and is over, and one that begins later sees the lock.
type traffic struct {
	// looking is shared by those who look, and is had alone by who asks: nobody is
	// between a look at the budgets and the note of what was found.
	looking sync.RWMutex

	mu    sync.Mutex
	tries map[types.NamespacedName]int
}

func (t *traffic) busy() map[types.NamespacedName]bool {
	busy := map[types.NamespacedName]bool{}
	t.looking.Lock()
	defer t.looking.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	for budget := range t.tries {
		busy[budget] = true
	}
	return busy
}

// begin notes a try for the budgets that look finds, until it is ended. Look must
// not wait for anything but memory.
func (t *traffic) begin(look func() ([]types.NamespacedName, error)) (*try, error) {
	t.looking.RLock()
	defer t.looking.RUnlock()
	budgets, err := look()
	if err != nil {
		return &try{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, budget := range budgets {
		t.tries[budget]++
	}
	return &try{traffic: t, budgets: budgets}, nil
}

// try is an attempt to evict a pod. It is ended by one goroutine.
type try struct {
	// traffic is nil when there is nothing to end.
	traffic *traffic
	budgets []types.NamespacedName
}

// answered takes an answer to account: without one, it is unknown when the try ends.
func (t *try) answered(answer metav1.Status, clock clock.WithDelayedExecution) {
	if t.traffic == nil || !mayFollow(answer) {
		return
	}
	late := *t
	t.traffic = nil
	clock.AfterFunc(lateAnswer, late.end)
}

// mayFollow is true of an answer that is not the API server's last word, so that
// the pod may be evicted after it.
func mayFollow(answer metav1.Status) bool {
	const noAnswer, badGateway, unavailable, timeout = 0, 502, 503, 504
	if answer.Status == metav1.StatusSuccess {
		return false
	}
	switch answer.Code {
	case noAnswer, badGateway, unavailable, timeout:
		return true
	}
	return false
}

// end says that the try is over. Another call does nothing.
func (t *try) end() {
	if t.traffic == nil {
		return
	}
	t.traffic.mu.Lock()
	defer t.traffic.mu.Unlock()
	for _, budget := range t.budgets {
		if t.traffic.tries[budget]--; t.traffic.tries[budget] <= 0 {
			delete(t.traffic.tries, budget)
		}
	}
	t.traffic = nil
}
