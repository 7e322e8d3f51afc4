package eviction

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// lateAnswer bounds how long an eviction without a response may still be carried out: the API server's
// own time limit of a request.
const lateAnswer = time.Minute

// traffic counts the evictions that are under way for each disruption budget, from before its lock is
// read until the response.
//
// A locker waits until its lock is in the cache that these reads use, and then calls busy. Pods of a
// budget that is not busy are not evicted: an earlier read is counted or over, a later one sees the
// lock.
type traffic struct {
	// reading is shared by reads and exclusive to busy, so that no read is finished but not counted.
	reading sync.RWMutex

	mu    sync.Mutex
	tries map[types.NamespacedName]int
}

func (t *traffic) busy() map[types.NamespacedName]bool {
	busy := map[types.NamespacedName]bool{}
	t.reading.Lock()
	defer t.reading.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	for budget := range t.tries {
		busy[budget] = true
	}
	return busy
}

// begin counts a try for the budgets that read returns, until its end. Read must not block.
func (t *traffic) begin(read func() ([]types.NamespacedName, error)) (*try, error) {
	t.reading.RLock()
	defer t.reading.RUnlock()
	budgets, err := read()
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
	// traffic is nil after the end.
	traffic *traffic
	budgets []types.NamespacedName
}

// answered delays the end of the try if the response leaves open whether the pod will be evicted.
func (t *try) answered(answer metav1.Status, clock clock.WithDelayedExecution) {
	if t.traffic == nil || !mayFollow(answer) {
		return
	}
	late := *t
	t.traffic = nil
	clock.AfterFunc(lateAnswer, late.end)
}

// mayFollow reports whether the pod may still be evicted after a response.
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

// end ends the try. Another call does nothing.
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
