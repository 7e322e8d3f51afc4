package nodemaintenance

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/group"
)

const (
	// crowdGap is the time without cordons of other groups before the pods of a group that has just
	// cordoned nodes leave, longestCrowd bounds their wait.
	crowdGap, longestCrowd = 100 * time.Millisecond, 2 * time.Second
)

// schedule holds the groups and when each is due, which is when one of its members is. At most one
// pass at a time runs over a member, also while groups merge and split.
type schedule struct {
	mu    sync.Mutex
	index group.Index
	due   map[group.Member]time.Time
	// running holds the passes under way by each member of their groups.
	running map[group.Member]*run
	// rests holds the time of the next pass over groups that took long to decide, by their key.
	rests map[group.Member]time.Time
	// latest are the two groups that have cordoned nodes last; crowded is since when the pods of
	// groups wait for others to do so, by their key.
	latest  [2]cordoned
	crowded map[group.Member]time.Time
	// queue is nil before the first event.
	queue func(member group.Member, after time.Duration)
}

type cordoned struct {
	key group.Member
	at  time.Time
}

// run is a pass under way over a group.
type run struct {
	group *group.Group
	// waiting are the members that came meanwhile and have to come again.
	waiting sets.Set[group.Member]
}

func newSchedule() *schedule {
	return &schedule{
		due:     map[group.Member]time.Time{},
		running: map[group.Member]*run{},
		rests:   map[group.Member]time.Time{},
		crowded: map[group.Member]time.Time{},
	}
}

func (s *schedule) attach(queue func(member group.Member, after time.Duration)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = queue
}

func (s *schedule) enqueue(after time.Duration, members ...group.Member) {
	s.mu.Lock()
	queue := s.queue
	s.mu.Unlock()
	if queue == nil {
		return
	}
	for _, member := range members {
		queue(member, after)
	}
}

// touch makes members due after a time, unless they are due earlier.
func (s *schedule) touch(now time.Time, after time.Duration, members ...group.Member) {
	if len(members) == 0 {
		return
	}
	s.mu.Lock()
	keys := sets.New[group.Member]()
	for _, member := range members {
		at := now.Add(after)
		if known, waits := s.due[member]; !waits || at.Before(known) {
			s.due[member] = at
		}
		keys.Insert(s.index.Key(member))
	}
	s.mu.Unlock()
	s.enqueue(after, keys.UnsortedList()...)
}

// begin starts the pass over the group of a member, which end ends; nil if nothing of the group is
// due. Again is when something will be, 0 is not known.
func (s *schedule) begin(now time.Time, member group.Member) (begun *run, again time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.index.Of(member)
	at, waits := s.earliest(g)
	if !waits {
		return nil, 0
	}
	if rest := s.rests[g.Key()]; rest.After(at) {
		at = rest
	}
	if at.After(now) {
		return nil, at.Sub(now)
	}
	for one := range g.Members {
		if busy := s.running[one]; busy != nil {
			busy.waiting.Insert(member)
			return nil, 0
		}
	}
	begun = &run{group: g, waiting: sets.New[group.Member]()}
	for one := range g.Members {
		s.running[one] = begun
		delete(s.due, one)
	}
	delete(s.rests, g.Key())
	return begun, 0
}

// earliest returns when the first member of a group is due.
func (s *schedule) earliest(g *group.Group) (at time.Time, waits bool) {
	for member := range g.Members {
		if due, known := s.due[member]; known && (!waits || due.Before(at)) {
			at, waits = due, true
		}
	}
	return at, waits
}

// end ends a pass. The next one over its group is due after a time, 0 is not known, and not before
// the rest is over.
func (s *schedule) end(now time.Time, ended *run, due, rest time.Duration) {
	key := ended.group.Key()
	s.mu.Lock()
	for member := range ended.group.Members {
		delete(s.running, member)
	}
	if rest > 0 {
		s.rests[key] = now.Add(rest)
	}
	s.mu.Unlock()
	if due > 0 {
		s.touch(now, due, key)
	}
	s.enqueue(0, ended.waiting.UnsortedList()...)
}

// cordons notes that a group has cordoned nodes, and waits if its pods wait for others.
func (s *schedule) cordons(now time.Time, g *group.Group, waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.latest[0].key != g.Key() {
		s.latest[1] = s.latest[0]
	}
	s.latest[0] = cordoned{g.Key(), now}
	if waits {
		s.crowded[g.Key()] = now
	}
}

// crowd returns how long the pods of a group still stay, because other groups that came with it may
// have to cordon nodes on which these pods would land.
func (s *schedule) crowd(now time.Time, g *group.Group) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, waits := s.crowded[g.Key()]
	other := s.latest[0]
	if other.key == g.Key() {
		other = s.latest[1]
	}
	left := min(crowdGap-now.Sub(other.at), longestCrowd-now.Sub(since))
	if !waits || left <= 0 {
		delete(s.crowded, g.Key())
		return 0
	}
	return left
}

// setMaintenance and the next three update the index. They return the members that have left their
// group.
func (s *schedule) setMaintenance(m *v1alpha1.NodeMaintenance) []group.Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.SetMaintenance(m)
}

func (s *schedule) deleteMaintenance(name string) []group.Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rests, group.Maintenance(name))
	delete(s.crowded, group.Maintenance(name))
	return s.index.DeleteMaintenance(name)
}

func (s *schedule) setNode(node *corev1.Node) []group.Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.SetNode(node)
}

func (s *schedule) deleteNode(name string) []group.Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rests, group.Node(name))
	return s.index.DeleteNode(name)
}

func (s *schedule) nodesOf(maintenance string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.NodesOf(maintenance)
}

func (s *schedule) selected(node string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.Selected(node)
}
