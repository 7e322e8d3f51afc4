package step

import (
	"bytes"
	"context"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/internal/workload"
	"ebbtide.dev/ebbtide/test/patience"
)

// fewGoroutines is how many a cluster may have that nobody drains: a dozen for each of
// its eight watches, and of what looks after them.
const fewGoroutines = 120

// A manager of a thousand clusters has one that is drained.
func TestAClusterThatNobodyDrainsCostsFewGoroutines(t *testing.T) {
	t.Parallel()
	w := newRemotes(t, workload.Options{Pace: &quick})
	w.start(t)
	c := w.remote(t, "east", w.kubeconfig(t, same))
	label := w.namespace + "-idle"
	pprof.Do(t.Context(), pprof.Labels("connection", label), func(context.Context) { w.connect(t, c) })

	patience.Eventually(t, "few goroutines", func(context.Context) (string, bool) {
		count, stacks := goroutines(t, label)
		return strconv.Itoa(count) + " goroutines:\n" + stacks, count > 0 && count <= fewGoroutines
	})
}

// goroutines counts those that come of one with the label.
func goroutines(t *testing.T, label string) (count int, stacks string) {
	t.Helper()
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		t.Fatal(err)
	}
	_, all, _ := strings.Cut(profile.String(), "\n") // The first line is a headline.
	for block := range strings.SplitSeq(all, "\n\n") {
		if !strings.Contains(block, label) {
			continue
		}
		first, _, _ := strings.Cut(strings.TrimSpace(block), " ")
		if n, err := strconv.Atoi(first); err == nil {
			count += n
			stacks += block + "\n"
		}
	}
	return count, stacks
}
