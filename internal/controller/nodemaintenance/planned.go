package nodemaintenance

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/group"
)

const (
	// planInterval is the least time that a plan lasts, and planPerPod that for each pod, because a
	// larger plan takes longer.
	planInterval = 30 * time.Second
	planPerPod   = time.Millisecond
)

// plans holds the last plans of maintenances in Idle. It is safe for concurrent use.
type plans struct {
	mu     sync.Mutex
	of     map[string]*planned
	on, in index // by node, and by namespace of pods
}

// index holds sets of names by a key.
type index map[string]sets.Set[string]

func (x index) insert(key, name string) {
	if x[key] == nil {
		x[key] = sets.New[string]()
	}
	x[key].Insert(name)
}

func (x index) remove(key, name string) {
	x[key].Delete(name)
	if x[key].Len() == 0 {
		delete(x, key)
	}
}

// planned is the plan of one maintenance.
type planned struct {
	// made is the time of the plan, for this generation and these nodes.
	made       time.Time
	generation int64
	nodes      []string
	others     uint64 // versionOf its group
	namespaces sets.Set[string]
	rest       time.Duration // it lasts that long
	old        bool          // something has changed since
	status     map[string]v1alpha1.NodeMaintenanceNodeStatus
}

func newPlans() *plans {
	return &plans{of: map[string]*planned{}, on: index{}, in: index{}}
}

// good returns the plan of a maintenance. Due is true if a new one is needed, otherwise again is when
// one will be; 0 is not known.
func (p *plans) good(now time.Time, m *v1alpha1.NodeMaintenance, nodes []string, among uint64) (status map[string]v1alpha1.NodeMaintenanceNodeStatus, due bool, again time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.of[m.Name]
	if known == nil || known.generation != m.Generation || !slices.Equal(known.nodes, slices.Sorted(slices.Values(nodes))) {
		return nil, true, 0
	}
	known.old = known.old || known.others != among
	if !known.old {
		return known.status, false, 0
	}
	if left := known.made.Add(known.rest).Sub(now); left > 0 {
		return known.status, false, left
	}
	return nil, true, 0
}

// among notes the version of the group for which a plan was made.
func (p *plans) among(maintenance string, others uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.of[maintenance]; known != nil {
		known.others = others
	}
}

// fail notes that a plan has to be made again.
func (p *plans) fail(maintenance string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.of[maintenance]; known != nil {
		known.old = true
	}
}

// begin notes that a plan is being made.
func (p *plans) begin(now time.Time, m *v1alpha1.NodeMaintenance, nodes []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(m.Name)
	p.of[m.Name] = &planned{made: now, generation: m.Generation, nodes: slices.Sorted(slices.Values(nodes)), rest: planInterval, namespaces: sets.New[string]()}
	for _, node := range nodes {
		p.on.insert(node, m.Name)
	}
}

// end stores a plan, unless its maintenance was forgotten meanwhile.
func (p *plans) end(maintenance string, status map[string]v1alpha1.NodeMaintenanceNodeStatus, namespaces sets.Set[string], pods int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.of[maintenance]
	if known == nil {
		return
	}
	known.status, known.namespaces, known.rest = status, namespaces, max(planInterval, time.Duration(pods)*planPerPod)
	for namespace := range namespaces {
		p.in.insert(namespace, maintenance)
	}
}

func (p *plans) forget(maintenance string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(maintenance)
}

// drop is forget for callers that hold the mutex.
func (p *plans) drop(maintenance string) {
	known := p.of[maintenance]
	if known == nil {
		return
	}
	delete(p.of, maintenance)
	for _, node := range known.nodes {
		p.on.remove(node, maintenance)
	}
	for namespace := range known.namespaces {
		p.in.remove(namespace, maintenance)
	}
}

// has returns true if a plan depends on the pods of a node.
func (p *plans) has(node string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.on[node].Len() > 0
}

// age marks plans as old, and returns the maintenances whose plan was not, with when they are due.
func (p *plans) age(now time.Time, names func(*plans) sets.Set[string]) map[string]time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := map[string]time.Duration{}
	for name := range names(p) {
		if known := p.of[name]; !known.old {
			known.old = true
			due[name] = max(coalesce, known.made.Add(known.rest).Sub(now))
		}
	}
	return due
}

// onNode, inNamespace and every return the maintenances that a change concerns.
func onNode(node string) func(*plans) sets.Set[string] {
	return func(p *plans) sets.Set[string] { return p.on[node] }
}

func inNamespace(namespace string) func(*plans) sets.Set[string] {
	return func(p *plans) sets.Set[string] { return p.in[namespace] }
}

func every(p *plans) sets.Set[string] { return sets.KeySet(p.of) }

// replan schedules new plans for these maintenances.
func (r *reconciler) replan(names func(*plans) sets.Set[string]) {
	now := r.clock.Now()
	for name, due := range r.plans.age(now, names) {
		r.schedule.touch(now, due, group.Maintenance(name))
	}
}
