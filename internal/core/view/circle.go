package view

import (
	"slices"
	"strings"
)

const maxCircle = 8

// circles returns a sentence for each group of objects that wait for each other.
func circles(waits []Wait) []string {
	sorted := slices.SortedFunc(slices.Values(waits), compareWaits)
	var told []string
	for _, group := range entangled(sorted) {
		if len(told) == maxCircles {
			break
		}
		told = append(told, sentence(shortest(sorted, group)))
	}
	return told
}

func sentence(circle []string) string {
	var words []string
	shown := circle[:min(len(circle), maxCircle)]
	for i, name := range shown {
		next := circle[(i+1)%len(circle)]
		words = append(words, name+verb(name)+next)
	}
	if len(shown) < len(circle) {
		words = append(words, "and so on")
	}
	return "None of these can proceed: " + strings.Join(words, "; ") + "."
}

func verb(name string) string {
	if strings.HasPrefix(name, "pdb/") {
		return " is locked by "
	}
	return " waits for "
}

// entangled returns the strongly connected components with a cycle, sorted (Tarjan).
func entangled(sorted []Wait) [][]string {
	t := tarjan{waits: sorted, index: map[string]int{}, low: map[string]int{}, on: map[string]bool{}}
	for _, w := range sorted {
		if _, known := t.index[w.From]; !known {
			t.visit(w.From)
		}
	}
	slices.SortFunc(t.groups, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return t.groups
}

type tarjan struct {
	waits      []Wait
	index, low map[string]int
	on         map[string]bool
	stack      []string
	groups     [][]string
}

// frame is an object with the waits that were not followed yet.
type frame struct {
	name string
	rest []Wait
}

// visit follows waits without recursion: a chain can be as long as the cluster has nodes.
func (t *tarjan) visit(name string) {
	frames := []frame{t.enter(name)}
	for len(frames) > 0 {
		top := &frames[len(frames)-1]
		if len(top.rest) == 0 {
			t.leave(top.name)
			frames = frames[:len(frames)-1]
			if len(frames) > 0 {
				before := frames[len(frames)-1].name
				t.low[before] = min(t.low[before], t.low[top.name])
			}
			continue
		}
		to := top.rest[0].To
		top.rest = top.rest[1:]
		if _, known := t.index[to]; !known {
			frames = append(frames, t.enter(to))
		} else if t.on[to] {
			t.low[top.name] = min(t.low[top.name], t.index[to])
		}
	}
}

func (t *tarjan) enter(name string) frame {
	t.index[name], t.low[name] = len(t.index), len(t.index)
	t.stack, t.on[name] = append(t.stack, name), true
	return frame{name, waitsOf(t.waits, name)}
}

// leave closes the group of its first object.
func (t *tarjan) leave(name string) {
	if t.low[name] != t.index[name] {
		return
	}
	at := len(t.stack) - 1
	for t.stack[at] != name {
		at--
	}
	group := slices.Clone(t.stack[at:])
	t.stack = t.stack[:at]
	for _, one := range group {
		t.on[one] = false
	}
	self := slices.ContainsFunc(waitsOf(t.waits, name), func(w Wait) bool { return w.To == name })
	if len(group) > 1 || self {
		slices.Sort(group)
		t.groups = append(t.groups, group)
	}
}

func shortest(sorted []Wait, group []string) []string {
	first := group[0]
	before := map[string]string{}
	for next := []string{first}; len(next) > 0; next = next[1:] {
		for _, w := range waitsOf(sorted, next[0]) {
			if w.To == first {
				return wayTo(next[0], first, before)
			}
			if _, in := slices.BinarySearch(group, w.To); !in || before[w.To] != "" {
				continue
			}
			before[w.To] = next[0]
			next = append(next, w.To)
		}
	}
	return group
}

func wayTo(last, first string, before map[string]string) []string {
	way := []string{last}
	for last != first {
		last = before[last]
		way = append(way, last)
	}
	slices.Reverse(way)
	return way
}
