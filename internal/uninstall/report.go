package uninstall

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/trace"
)

const (
	// shown bounds the objects of a kind in a list, named those in an error.
	shown, named = 10, 3
	// maxError bounds an error, in bytes.
	maxError = 500
)

// printGroup lists the changes of one kind. Objects with notes come first.
func printGroup(out io.Writer, title string, g group) {
	if len(g.findings) == 0 {
		return
	}
	fmt.Fprintf(out, "%s (%d):\n", title, len(g.findings))
	sorted := slices.Clone(g.findings)
	slices.SortStableFunc(sorted, func(a, b trace.Finding) int { return cmp.Compare(min(1, len(b.Notes)), min(1, len(a.Notes))) })
	for _, finding := range sorted[:min(shown, len(sorted))] {
		fmt.Fprintf(out, "  %s: %s\n", nameOf(finding.Object), strings.Join(finding.Does, "; "))
		for _, note := range finding.Notes {
			fmt.Fprintf(out, "    note: %s\n", note)
		}
	}
	if more := len(sorted) - shown; more > 0 {
		fmt.Fprintf(out, "  and %d more\n", more)
	}
}

// printFailures lists the failed writes, each reason once for a kind.
func printFailures(out io.Writer, failures []failure) {
	type sort struct {
		kind   string
		reason metav1.StatusReason
	}
	var order []sort
	same := map[sort][]failure{}
	for _, f := range failures {
		one := sort{f.kind.name, apierrors.ReasonForError(f.err)}
		if len(same[one]) == 0 {
			order = append(order, one)
		}
		same[one] = append(same[one], f)
	}
	for _, one := range order {
		names := make([]string, len(same[one]))
		for i, f := range same[one] {
			names[i] = nameOf(f.object)
		}
		fmt.Fprintf(out, "  %s %s: %s\n", one.kind, phrase.Some(names, named), excerpt.Line(same[one][0].err.Error(), maxError))
	}
}

// count returns the number of findings.
func count(groups []group) (objects int) {
	for _, g := range groups {
		objects += len(g.findings)
	}
	return objects
}
