package rollout

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/kube"
)

// flights holds the rollouts that are being written. It is safe for concurrent use.
type flights struct {
	mu sync.Mutex
	of map[string]*writing
	// unanswered holds when the creations without an answer have ended for certain. Those of the
	// former manager have at former, except those that are settled.
	unanswered map[string]time.Time
	former     time.Time
	settled    sets.Set[string]
	ended      sync.WaitGroup
}

func newFlights(now time.Time) *flights {
	return &flights{
		of: map[string]*writing{}, unanswered: map[string]time.Time{}, former: now.Add(kube.RequestTimeout), settled: sets.New[string](),
	}
}

// begin returns false if the rollout is being written, or too many are.
func (f *flights) begin(w *writing) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of[w.before.Name] != nil || len(f.of) >= maxFlights && !w.reports {
		return false
	}
	f.of[w.before.Name] = w
	f.ended.Add(1)
	return true
}

func (f *flights) end(w *writing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, w.before.Name)
	f.ended.Done()
}

// wait returns when no rollout is being written.
func (f *flights) wait() { f.ended.Wait() }

// under returns the rollouts that are being written, by name.
func (f *flights) under() map[string]*writing {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.of)
}

// leave notes that a creation had no answer at a time.
func (f *flights) leave(name string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.unanswered, func(_ string, until time.Time) bool { return !now.Before(until) })
	f.unanswered[name] = now.Add(kube.RequestTimeout)
}

// settle notes that a creation had an answer at a time.
func (f *flights) settle(name string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.unanswered, name)
	if now.Before(f.former) {
		f.settled.Insert(name)
	}
}

// mayCreate reports whether a request of this manager or of the former one may still create a
// NodeMaintenance.
func (f *flights) mayCreate(name string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return now.Before(f.unanswered[name]) || now.Before(f.former) && !f.settled.Has(name)
}

// startsOf returns the names of the NodeMaintenances that are being created.
func startsOf(flying map[string]*writing) sets.Set[string] {
	names := sets.New[string]()
	for _, w := range flying {
		for _, m := range w.starts {
			names.Insert(m.Name)
		}
	}
	return names
}

// over returns a rollout as other rollouts have to see it: its nodes that are being recorded count
// as started. It returns the rollout itself if it is not being written.
func (w *writing) over(rollout *v1alpha1.NodeRollout) *v1alpha1.NodeRollout {
	if w == nil {
		return rollout
	}
	recorded := sets.New[string]()
	seen := rollout.DeepCopy()
	for i := range seen.Status.Working {
		recorded.Insert(seen.Status.Working[i].Name)
	}
	for _, one := range w.decision.Status.Working {
		if !recorded.Has(one.Name) {
			seen.Status.Working = append(seen.Status.Working, one)
		}
	}
	return seen
}
