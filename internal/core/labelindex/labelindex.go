// Package labelindex finds the few of many selectors that can match the labels of an object. A
// selector is filed under labels that it requires. A result is a candidate: the caller tries the
// selector itself. A selector that could match is always found. Several goroutines may read an
// index while nobody changes it.
package labelindex

import (
	"cmp"
	"slices"
)

// Pair is a label of an object, or a field that is looked up like one.
type Pair struct{ Key, Value string }

// always is the pair of those that no label leads to. No label has an empty key.
var always = Pair{}

// Index finds items, such as the names of budgets, by labels. The zero value is empty.
type Index[T comparable] struct {
	entries map[T]*entry[T]
	// filed are sorted by place.
	filed map[Pair][]*entry[T]
	// last is the place of the item that came last.
	last uint64
}

type entry[T comparable] struct {
	item  T
	place uint64
	// under lists the pairs of its entries.
	under []Pair
}

// Put files an item that matches if one of the alternatives does; without any it
// is never found. It replaces what the item had.
//
// Of the conditions of an alternative the one is used that shares its labels with
// the fewest other items, so that a label that all have in common does no harm.
func (x *Index[T]) Put(item T, alternatives ...Term) {
	place := x.last + 1
	if known, replaced := x.entries[item]; replaced {
		place = known.place
		x.Delete(item)
	} else {
		x.last = place
	}
	if x.entries == nil {
		x.entries, x.filed = map[T]*entry[T]{}, map[Pair][]*entry[T]{}
	}
	e := &entry[T]{item: item, place: place}
	x.entries[item] = e
	for _, term := range alternatives {
		anchor, found := term.Anchor(func(p Pair) int { return len(x.filed[p]) })
		if !found {
			anchor = Condition{always}
		}
		for _, pair := range anchor {
			x.file(e, pair)
		}
	}
}

func (x *Index[T]) file(e *entry[T], under Pair) {
	if at, there := slices.BinarySearchFunc(x.filed[under], e, byPlace); !there {
		x.filed[under] = slices.Insert(x.filed[under], at, e)
		e.under = append(e.under, under)
	}
}

func byPlace[T comparable](a, b *entry[T]) int { return cmp.Compare(a.place, b.place) }

// Delete forgets an item. One that was never put is nothing to forget.
func (x *Index[T]) Delete(item T) {
	e, known := x.entries[item]
	if !known {
		return
	}
	delete(x.entries, item)
	for _, pair := range e.under {
		at, _ := slices.BinarySearchFunc(x.filed[pair], e, byPlace)
		if x.filed[pair] = slices.Delete(x.filed[pair], at, at+1); len(x.filed[pair]) == 0 {
			delete(x.filed, pair)
		}
	}
}

// Candidates returns, each once, the items that can match an object with these
// labels and other pairs, in the order in which they were first put.
func (x *Index[T]) Candidates(labels map[string]string, others ...Pair) []T {
	found := slices.Clone(x.filed[always])
	for key, value := range labels {
		found = append(found, x.filed[Pair{key, value}]...)
	}
	for _, pair := range others {
		found = append(found, x.filed[pair]...)
	}
	if len(found) == 0 {
		return nil
	}
	slices.SortFunc(found, byPlace)
	items := make([]T, 0, len(found))
	for _, e := range slices.Compact(found) {
		items = append(items, e.item)
	}
	return items
}
