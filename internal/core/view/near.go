package view

import (
	"slices"
	"strings"
)

// maxNear is how many names are suggested.
const maxNear = 3

// Near are up to three of these names that somebody may have meant who wrote this one: the
// nearest, by how many characters are wrong, missing, too many or in the wrong order. That
// is never more than a third of what was written, nor than four.
func Near(written string, names []string) []string {
	written = strings.ToLower(written)
	limit := max(1, min(len(written)/3, 4))
	// Nothing that a cluster has is called so.
	if len(written) == 0 || len(written) > 253 {
		return nil
	}
	var near []string
	for _, name := range names {
		apart := distance(written, strings.ToLower(name), limit)
		if apart > limit {
			continue
		}
		if apart < limit {
			near, limit = nil, apart
		}
		near = append(near, name)
	}
	slices.Sort(near)
	return near[:min(len(near), maxNear)]
}

// distance is how many edits make a of b; more than limit is not counted exactly.
func distance(a, b string, limit int) int {
	if gap := len(a) - len(b); gap > limit || -gap > limit {
		return limit + 1
	}
	// The rows of the table for the two characters of a before this one, and for this one.
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		least := row[0]
		for j := range len(b) {
			substituted := last[j]
			if a[i] != b[j] {
				substituted++
			}
			row[j+1] = min(substituted, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
			least = min(least, row[j+1])
		}
		if least > limit {
			return least
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
