package nodedrain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// These keep a Report below the 32,768 bytes that the API allows for the message of a condition.
const (
	maxGroups        = 5
	maxText, maxName = 1000, 350
)

// Report is a message in the form of the deletion-process page: what is awaited, with a few names
// each, and how many more there are.
type Report struct {
	text  strings.Builder
	named int
}

// Group is a list of names with a common title.
type Group struct {
	Title string
	Names []string
}

// NewReport returns a report that shows this many names of each group.
func NewReport(headline string, named int) *Report {
	r := &Report{named: named}
	r.text.WriteString(headline)
	return r
}

// Names adds names, if there are any.
func (r *Report) Names(title string, names []string) {
	if len(names) > 0 {
		fmt.Fprintf(&r.text, "\n* %s: %s", title, r.list(names))
	}
}

// Groups adds groups of names, in the order given, if there are any.
func (r *Report) Groups(title string, groups []Group) {
	if len(groups) == 0 {
		return
	}
	fmt.Fprintf(&r.text, "\n* %s:", title)
	told := groups[:min(len(groups), maxGroups)]
	for _, g := range told {
		fmt.Fprintf(&r.text, "\n  * %s: %s", cut(g.Title, maxText), r.list(g.Names))
	}
	more := 0
	for _, g := range groups[len(told):] {
		more += len(g.Names)
	}
	if more > 0 {
		fmt.Fprintf(&r.text, "\n  * ... (%d more)", more)
	}
}

// Text adds a text, if it is not empty.
func (r *Report) Text(title, text string) {
	if text != "" {
		fmt.Fprintf(&r.text, "\n* %s: %s", title, cut(text, maxText))
	}
}

// String returns the report.
func (r *Report) String() string { return r.text.String() }

// ByReason groups names by reason: the largest group first, then by text, so that the order is
// stable.
func ByReason(names map[string][]string) []Group {
	groups := make([]Group, 0, len(names))
	for _, reason := range slices.Sorted(maps.Keys(names)) {
		groups = append(groups, Group{cmp.Or(reason, "no reason given"), names[reason]})
	}
	slices.SortStableFunc(groups, func(a, b Group) int { return cmp.Compare(len(b.Names), len(a.Names)) })
	return groups
}

func (r *Report) list(names []string) string {
	short := make([]string, 0, len(names))
	for _, name := range names {
		short = append(short, cut(name, maxName))
	}
	return List(short, r.named)
}

// List joins names, sorted, up to a limit, and adds how many more there are.
func List(names []string, limit int) string {
	told := slices.Sorted(slices.Values(names))
	if more := len(told) - limit; more > 0 {
		told = append(told[:limit], fmt.Sprintf("... (%d more)", more))
	}
	return strings.Join(told, ", ")
}

// cut shortens a foreign text to one line.
func cut(text string, limit int) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
	return excerpt.Of(text, limit)
}
