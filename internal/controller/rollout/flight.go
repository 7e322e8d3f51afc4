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
	// creatable holds until when a recorded NodeMaintenance may still be created: by a request without
	// an answer, or by another manager, which has recorded it. Zero is no longer.
	creatable map[string]time.Time
	ended     sync.WaitGroup
}

func newFlights() *flights {
	return &flights{of: map[string]*writing{}, creatable: map[string]time.Time{}}
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
	f.creatable[name] = now.Add(kube.RequestTimeout)
}

// settle notes that a creation had an answer.
func (f *flights) settle(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.creatable[name] = time.Time{}
}

// own notes that this manager alone has recorded NodeMaintenances, unless it has seen them recorded
// before.
func (f *flights) own(starts []*v1alpha1.NodeMaintenance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range starts {
		if _, seen := f.creatable[m.Name]; !seen {
			f.creatable[m.Name] = time.Time{}
		}
	}
}

// mayCreate reports whether a request of this manager or of another one may still create a recorded
// NodeMaintenance.
func (f *flights) mayCreate(name string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, seen := f.creatable[name]; !seen {
		f.creatable[name] = now.Add(kube.RequestTimeout)
	}
	return now.Before(f.creatable[name])
}

// keep forgets all but the NodeMaintenances that are recorded or being created.
func (f *flights) keep(names sets.Set[string]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.creatable, func(name string, _ time.Time) bool { return !names.Has(name) })
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
