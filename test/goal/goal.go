// Package goal has a Go benchmark say what is asked of it. `make bench` holds the
// benchmark to that and shows it in its table. Nothing fails because it is slow:
// whoever runs the benchmark alone sees goal and measurement side by side.
package goal

import (
	"syscall"
	"testing"
	"time"
)

// CPU has the benchmark say that an operation should take at most this of CPU time.
// It is called right before the loop: what the process does from there on counts,
// also in other goroutines and in the garbage collector, and also while the timer
// is stopped. That others are busy on the same machine changes it little.
func CPU(b *testing.B, atMost time.Duration) {
	b.Helper()
	report(b, "goal-cpu-ms", atMost)
}

// Time has the benchmark say that an operation, as its timer has it, should take at
// most this. It is called right before the loop and measures the CPU time, too.
func Time(b *testing.B, atMost time.Duration) {
	b.Helper()
	report(b, "goal-ms", atMost)
}

// report waits for the end of the benchmark, because its loop begins by forgetting
// what was reported.
func report(b *testing.B, goal string, atMost time.Duration) {
	b.Helper()
	before := used(b)
	b.Cleanup(func() {
		b.ReportMetric(milliseconds(used(b)-before)/float64(b.N), "cpu-ms")
		b.ReportMetric(milliseconds(atMost), goal)
	})
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// used is the CPU time that this process has used.
func used(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatalf("read the CPU time: %v", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
