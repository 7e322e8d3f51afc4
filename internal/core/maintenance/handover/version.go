package handover

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// comparator is one bound of a range of versions, such as >=1.37.0.
type comparator struct {
	operator string
	than     semver.Version
}

// operators are ordered so that none is a prefix of a later one.
var operators = [...]string{">=", "<=", "!=", "==", ">", "<", "!", "="}

type versionRange [][]comparator

func isRange(wanted string) bool { return strings.ContainsAny(wanted[:min(len(wanted), 1)], "<>=!") }

// parseRange reads a range such as ">=1.36.2 <1.38.0 || >=1.39.0". The library has
// wildcards as well, by which it misreads versions like 1.37.0-x.
func parseRange(text string) (versionRange, error) {
	var all versionRange
	for _, alternative := range strings.Split(text, "||") {
		var together []comparator
		for _, word := range strings.Fields(alternative) {
			one, err := parseComparator(word)
			if err != nil {
				return nil, err
			}
			together = append(together, one)
		}
		if len(together) == 0 {
			return nil, errors.New("an alternative says nothing")
		}
		all = append(all, together)
	}
	return all, nil
}

func parseComparator(word string) (comparator, error) {
	at := slices.IndexFunc(operators[:], func(operator string) bool { return strings.HasPrefix(word, operator) })
	if at < 0 {
		return comparator{}, fmt.Errorf("%q has none of the operators >=, <=, >, <, = and !=", word)
	}
	than, err := semver.Parse(strings.TrimPrefix(word, operators[at]))
	if err != nil {
		return comparator{}, fmt.Errorf("%q: %w", word, err)
	}
	return comparator{operator: operators[at], than: than}, nil
}

func (r versionRange) contains(reported string) bool {
	version, err := semver.Parse(strings.TrimPrefix(reported, "v"))
	return err == nil && slices.ContainsFunc(r, func(together []comparator) bool {
		return !slices.ContainsFunc(together, func(one comparator) bool { return !one.matches(version) })
	})
}

func (c comparator) matches(version semver.Version) bool {
	order := version.Compare(c.than)
	switch c.operator {
	case ">=":
		return order >= 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case "<":
		return order < 0
	case "!=", "!":
		return order != 0
	default:
		return order == 0
	}
}
