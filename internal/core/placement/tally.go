package placement

const nowhere = int32(-1)

// topology divides nodes by one of their labels.
type topology struct {
	of  []int32 // the domain of each node
	ids map[string]int32
}

func (e *Estimate) topologyOf(key string) *topology {
	t := e.topologies[key]
	if t != nil {
		return t
	}
	t = &topology{of: make([]int32, len(e.nodes)), ids: map[string]int32{}}
	for i, n := range e.nodes {
		value, labelled := n.Labels[key]
		if !labelled {
			t.of[i] = nowhere
			continue
		}
		id, known := t.ids[value]
		if !known {
			id = int32(len(t.ids))
			t.ids[value] = id
		}
		t.of[i] = id
	}
	e.topologies[key] = t
	return t
}

// tally counts pods by domain.
type tally struct {
	domains []int32 // of each node, nowhere where pods do not count
	counts  map[int32]int32
	total   int32
	spread  *evenness // nil unless the domains are compared
}

// evenness counts domains by their number of pods, and holds the least number.
type evenness struct {
	domains map[int32]int32 // by how many pods they have
	count   int32
	least   int32
}

func newTally(domains []int32) tally { return tally{domains: domains, counts: map[int32]int32{}} }

func (t *tally) at(node int32) int32 {
	if d := t.domains[node]; d != nowhere {
		return t.counts[d]
	}
	return 0
}

func (t *tally) add(node, by int32) {
	d := t.domains[node]
	if d == nowhere || by == 0 {
		return
	}
	before := t.counts[d]
	if t.counts[d] = before + by; before+by == 0 {
		delete(t.counts, d)
	}
	t.total += by
	if t.spread != nil {
		t.spread.move(before, before+by)
	}
}

func (t *tally) compare() {
	seen := map[int32]bool{}
	for _, d := range t.domains {
		if d != nowhere {
			seen[d] = true
		}
	}
	t.spread = &evenness{count: int32(len(seen)), domains: map[int32]int32{0: int32(len(seen))}}
}

func (s *evenness) move(from, to int32) {
	if s.domains[from]--; s.domains[from] == 0 {
		delete(s.domains, from)
	}
	s.domains[to]++
	s.least = min(s.least, to)
	for s.domains[s.least] == 0 {
		s.least++
	}
}
