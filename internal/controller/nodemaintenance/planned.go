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
	// planInterval is how long a plan is good at least, whatever happens to the pods of its
	// nodes, and planPerPod how long for each of them: looking at all of them again takes longer
	// the more there are.
	planInterval = 30 * time.Second
	planPerPod   = time.Millisecond
)

// plans are what maintenances in Idle would do, as it was last thought through. It is safe
// for concurrent use.
type plans struct {
	mu sync.Mutex
	of map[string]*planned
	// on and in are the maintenances by node, and by namespace of pods.
	on, in map[string]sets.Set[string]
}

// planned is what one maintenance would do.
type planned struct {
	// made is when it was thought through, for this generation and these nodes.
	made       time.Time
	generation int64
	nodes      []string
	// others stands for the other maintenances of its group.
	others     uint64
	namespaces sets.Set[string]
	// rest is how long it is good, and old is true if something has changed since.
	rest   time.Duration
	old    bool
	status map[string]v1alpha1.NodeMaintenanceNodeStatus
}

func newPlans() *plans {
	return &plans{of: map[string]*planned{}, on: map[string]sets.Set[string]{}, in: map[string]sets.Set[string]{}}
}

// good is the plan of a maintenance, among others of its group. Due is true if a new one is,
// and else again is when one will be; 0 is not known.
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

// among notes which others there were when a maintenance was thought through.
func (p *plans) among(maintenance string, others uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.of[maintenance]; known != nil {
		known.others = others
	}
}

// fail has a maintenance be thought through again when it is due.
func (p *plans) fail(maintenance string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.of[maintenance]; known != nil {
		known.old = true
	}
}

// begin notes that a maintenance is thought through from now on.
func (p *plans) begin(now time.Time, m *v1alpha1.NodeMaintenance, nodes []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(m.Name)
	p.of[m.Name] = &planned{made: now, generation: m.Generation, nodes: slices.Sorted(slices.Values(nodes)), rest: planInterval, namespaces: sets.New[string]()}
	for _, node := range nodes {
		note(p.on, node, m.Name)
	}
}

// end notes what has come of it. A maintenance that was forgotten meanwhile stays so.
func (p *plans) end(maintenance string, status map[string]v1alpha1.NodeMaintenanceNodeStatus, namespaces sets.Set[string], pods int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.of[maintenance]
	if known == nil {
		return
	}
	known.status, known.namespaces, known.rest = status, namespaces, max(planInterval, time.Duration(pods)*planPerPod)
	for namespace := range namespaces {
		note(p.in, namespace, maintenance)
	}
}

func (p *plans) forget(maintenance string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(maintenance)
}

// drop is forget for who has the lock.
func (p *plans) drop(maintenance string) {
	known := p.of[maintenance]
	if known == nil {
		return
	}
	delete(p.of, maintenance)
	for _, node := range known.nodes {
		unnote(p.on, node, maintenance)
	}
	for namespace := range known.namespaces {
		unnote(p.in, namespace, maintenance)
	}
}

func note(all map[string]sets.Set[string], key, name string) {
	if all[key] == nil {
		all[key] = sets.New[string]()
	}
	all[key].Insert(name)
}

func unnote(all map[string]sets.Set[string], key, name string) {
	all[key].Delete(name)
	if all[key].Len() == 0 {
		delete(all, key)
	}
}

// has returns true if the pods of a node matter to some plan.
func (p *plans) has(node string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.on[node].Len() > 0
}

// age has those plans be old that something concerns, and returns the maintenances whose
// plan was not before, and when they are due.
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

// onNode, inNamespace and every are whom a change of a node's pods, of what is in a
// namespace, and of all concerns.
func onNode(node string) func(*plans) sets.Set[string] {
	return func(p *plans) sets.Set[string] { return p.on[node] }
}

func inNamespace(namespace string) func(*plans) sets.Set[string] {
	return func(p *plans) sets.Set[string] { return p.in[namespace] }
}

func every(p *plans) sets.Set[string] { return sets.KeySet(p.of) }

// replan has plans be made again when they are old for long enough.
func (r *reconciler) replan(names func(*plans) sets.Set[string]) {
	now := r.clock.Now()
	for name, due := range r.plans.age(now, names) {
		r.schedule.touch(now, due, group.Maintenance(name))
	}
}
