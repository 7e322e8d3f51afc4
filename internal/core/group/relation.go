package group

import (
	"iter"
	"slices"
)

// relate makes a member belong to exactly the others named by wanted, where before
// is what it belongs to. It returns those that it left.
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

// others are the names of those that a member belongs to; nil if nobody has told
// of the member.
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

// place is where the group of a member is remembered; nil if nobody has told of it.
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

// known is the group of a member if it is still the same.
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

// part notes that the group of a member is to be found anew.
func (x *Index) part(member Member) {
	if known := x.known(member); known != nil {
		known.parted = true
	}
}
