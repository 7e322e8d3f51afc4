package drainplan

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"
)

type choice struct {
	values sets.Set[string]
	others bool
	absent bool
}

var anyValue = choice{others: true, absent: true}

func choiceOf(r *labels.Requirement) choice {
	values := sets.Set[string](r.Values())
	switch r.Operator() {
	case selection.Exists:
		return choice{others: true}
	case selection.DoesNotExist:
		return choice{absent: true}
	case selection.NotIn, selection.NotEquals:
		return choice{values: values, others: true, absent: true}
	default:
		return choice{values: values}
	}
}

func (c choice) none() bool { return len(c.values) == 0 && !c.others && !c.absent }

func (c choice) not() choice { return choice{values: c.values, others: !c.others, absent: !c.absent} }

func (c choice) and(d choice) choice {
	both := choice{others: c.others && d.others, absent: c.absent && d.absent}
	switch {
	case both.others:
		both.values = c.values.Union(d.values)
	case c.others:
		both.values = d.values.Difference(c.values)
	case d.others:
		both.values = c.values.Difference(d.values)
	default:
		both.values = c.values.Intersection(d.values)
	}
	return both
}

func (c choice) text(key string) string {
	values := strings.Join(sets.List(c.values), ",")
	switch {
	case c.others && len(c.values) == 0:
		return key
	case c.others && c.absent:
		return key + " notin (" + values + ")"
	case c.others:
		return key + "," + key + " notin (" + values + ")"
	case c.absent:
		return "!" + key
	case len(c.values) == 1:
		return key + "=" + values
	default:
		return key + " in (" + values + ")"
	}
}

type choices map[string]choice

func choicesOf(requirements labels.Requirements) choices {
	all := choices{}
	for i := range requirements {
		key := requirements[i].Key()
		all[key] = all.of(key).and(choiceOf(&requirements[i]))
	}
	return all
}

func (c choices) of(key string) choice {
	if one, found := c[key]; found {
		return one
	}
	return anyValue
}

// none returns true if no pod is selected: one label cannot be two things.
func (c choices) none() bool {
	for _, one := range c {
		if one.none() {
			return true
		}
	}
	return false
}

// text returns a key of the choices. That of an empty selection differs from all selectors.
func (c choices) text() string {
	if c.none() {
		return "()"
	}
	words := make([]string, 0, len(c))
	for _, key := range slices.Sorted(maps.Keys(c)) {
		words = append(words, c[key].text(key))
	}
	return strings.Join(words, ",")
}

// maxSteps bounds the parts of a selection that are compared. A selection with more counts as not
// covered.
const maxSteps = 256

// covered returns true if several choices together select all that c selects. It subtracts the first
// from c; the others have to cover the rest, label by label.
func (c choices) covered(by []choices, steps *int) bool {
	if *steps--; *steps < 0 {
		return false
	}
	if c.none() || len(by) == 0 {
		return c.none()
	}
	inside := choices{}
	maps.Copy(inside, c)
	for _, key := range slices.Sorted(maps.Keys(by[0])) {
		one := by[0][key]
		outside := maps.Clone(inside)
		outside[key] = inside.of(key).and(one.not())
		if !outside.covered(by[1:], steps) {
			return false
		}
		inside[key] = inside.of(key).and(one)
	}
	return true
}
