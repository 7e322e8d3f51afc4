package drainlock

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/drainlock"
)

// wordsInterval is the least time between two writes of a status that only tell in
// other words that the node waits: a budget that many nodes wait for may change
// many times in a second.
const wordsInterval = time.Second

// words are when the status of each node was last written.
type words struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func (w *words) wrote(node string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = map[string]time.Time{}
	}
	w.last[node] = now
}

func (w *words) forget(node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, node)
}

// postpone takes the status out of a decision if it can wait, and returns for how
// long; 0 if there is none to be written later.
func (w *words) postpone(seen *core.Snapshot, decision *core.Decision) time.Duration {
	if decision.Status == nil || len(decision.Events) > 0 || !sameDeeds(seen.Record.Status, *decision.Status) {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	left := min(w.last[seen.Record.Name].Add(wordsInterval).Sub(seen.Now), wordsInterval)
	if left <= 0 {
		return 0
	}
	decision.Status = nil
	return left
}

// sameDeeds reports whether two statuses differ in the words of conditions only.
func sameDeeds(a, b v1alpha1.DrainRecordStatus) bool {
	if len(a.Conditions) != len(b.Conditions) {
		return false
	}
	for i := range a.Conditions {
		if a.Conditions[i].Type != b.Conditions[i].Type || a.Conditions[i].Status != b.Conditions[i].Status {
			return false
		}
	}
	for _, one := range []*v1alpha1.DrainRecordStatus{&a, &b} {
		one.Conditions, one.NodesAheadCount, one.YieldStartTime = nil, 0, nil
	}
	return equality.Semantic.DeepEqual(a, b)
}
