package drainlock

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/drainlock"
)

// messageInterval is the minimal time between two writes of a status that only change messages: a
// budget that many nodes wait for may change many times in a second.
const messageInterval = time.Second

// lastWrites holds the last write of the status of each node.
type lastWrites struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func (w *lastWrites) wrote(node string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = map[string]time.Time{}
	}
	w.last[node] = now
}

func (w *lastWrites) forget(node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, node)
}

// postpone removes a status that can wait from a decision and returns for how long; 0 if there is
// none.
func (w *lastWrites) postpone(seen *core.Snapshot, decision *core.Decision) time.Duration {
	if decision.Status == nil || len(decision.Events) > 0 || !sameFacts(seen.Record.Status, *decision.Status) {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	left := min(w.last[seen.Record.Name].Add(messageInterval).Sub(seen.Now), messageInterval)
	if left <= 0 {
		return 0
	}
	decision.Status = nil
	return left
}

// sameFacts reports whether two statuses differ only in messages and counts.
func sameFacts(a, b v1alpha1.DrainRecordStatus) bool {
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
