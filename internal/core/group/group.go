// Package group partitions NodeMaintenances and nodes: those that share a node, directly or
// through others, belong together and are decided together. A maintenance and a node belong
// together if it selects the node or the node's annotation names it as a holder. An Index
// follows every change and finds selectors and nodes without trying all. The order of changes
// makes no difference.
package group

import (
	"cmp"
	"slices"
	"strings"
)

// Member is a NodeMaintenance or a node.
type Member struct {
	Node bool
	Name string
}

// Node returns the member for a node.
func Node(name string) Member { return Member{Node: true, Name: name} }

// Maintenance returns the member for a NodeMaintenance.
func Maintenance(name string) Member { return Member{Name: name} }

func (m Member) String() string {
	if m.Node {
		return "node " + m.Name
	}
	return "maintenance " + m.Name
}

// Group is a set of members that are decided together. It is not changed.
type Group struct {
	// Maintenances and Nodes are its members by name, sorted. A member that was looked up is
	// included even if the index does not have it.
	Maintenances, Nodes []string
	parted              bool
}

// Key returns the member that identifies the group: its first maintenance or, without any, its node.
func (g *Group) Key() Member {
	if len(g.Maintenances) > 0 {
		return Maintenance(g.Maintenances[0])
	}
	return Node(g.Nodes[0])
}

// Members yields the members, maintenances first.
func (g *Group) Members(yield func(Member) bool) {
	for _, name := range g.Maintenances {
		if !yield(Maintenance(name)) {
			return
		}
	}
	for _, name := range g.Nodes {
		if !yield(Node(name)) {
			return
		}
	}
}

// Of returns the group of a member. Its cost grows with a new group, and is constant afterwards.
func (x *Index) Of(member Member) *Group {
	if known := x.known(member); known != nil {
		return known
	}
	g := &Group{}
	seen := map[Member]bool{member: true}
	for waiting := []Member{member}; len(waiting) > 0; {
		next := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		g.add(next)
		for neighbour := range x.neighbours(next) {
			if !seen[neighbour] {
				seen[neighbour] = true
				waiting = append(waiting, neighbour)
			}
		}
		x.join(next, g)
	}
	slices.SortFunc(g.Maintenances, strings.Compare)
	slices.SortFunc(g.Nodes, strings.Compare)
	return g
}

func (g *Group) add(member Member) {
	if member.Node {
		g.Nodes = append(g.Nodes, member.Name)
	} else {
		g.Maintenances = append(g.Maintenances, member.Name)
	}
}

// Key returns the key of the group of a member if that is known without a search, otherwise the
// member itself.
func (x *Index) Key(member Member) Member {
	if known := x.known(member); known != nil {
		return known.Key()
	}
	return member
}

func compare(a, b Member) int {
	if a.Node != b.Node {
		if a.Node {
			return 1
		}
		return -1
	}
	return cmp.Compare(a.Name, b.Name)
}
