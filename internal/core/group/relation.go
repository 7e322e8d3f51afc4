package group

import (
	"iter"
	"slices"
)

// relate changes the relations of a member from before to wanted, and returns the members that it
// left.
func (x *Index) relate(member Member, before, wanted map[string]bool) []Member {
	var left []Member
	for name := range before {
		if !wanted[name] {
			left = append(left, Member{Node: !member.Node, Name: name})
		}
	}
	for _, other := range left {
		x.part(member)
		x.part(other)
		delete(x.others(member), other.Name)
		delete(x.others(other), member.Name)
	}
	for name := range wanted {
		if other := (Member{Node: !member.Node, Name: name}); !before[name] {
			x.part(member)
			x.part(other)
			x.others(member)[name] = true
			x.others(other)[member.Name] = true
		}
	}
	slices.SortFunc(left, compare)
	return left
}

// others returns the names of the members that a member belongs to; nil if it is not in the index.
func (x *Index) others(member Member) map[string]bool {
	if member.Node {
		if node := x.nodes[member.Name]; node != nil {
			return node.maintenances
		}
		return nil
	}
	if m := x.maintenances[member.Name]; m != nil {
		return m.nodes
	}
	return nil
}

func (x *Index) neighbours(member Member) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		for name := range x.others(member) {
			if !yield(Member{Node: !member.Node, Name: name}) {
				return
			}
		}
	}
}

func (x *Index) place(member Member) **Group {
	if member.Node {
		if node := x.nodes[member.Name]; node != nil {
			return &node.group
		}
		return nil
	}
	if m := x.maintenances[member.Name]; m != nil {
		return &m.group
	}
	return nil
}

// known returns the cached group of a member, unless it has changed.
func (x *Index) known(member Member) *Group {
	if at := x.place(member); at != nil && *at != nil && !(*at).parted {
		return *at
	}
	return nil
}

func (x *Index) join(member Member, g *Group) {
	if at := x.place(member); at != nil {
		*at = g
	}
}

func (x *Index) part(member Member) {
	if known := x.known(member); known != nil {
		known.parted = true
	}
}
