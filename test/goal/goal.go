// Package goal has a Go benchmark say what is asked of it. `make bench` holds the
// benchmark to that and shows it in its table. Nothing fails because it is slow:
// whoever runs the benchmark alone sees goal and measurement side by side.
package goal

import (
	"syscall"
	"testing"
	"time"
)

// CPU has the benchmark measure the CPU time of an operation in milliseconds and
// say that it should be at most this. It is called right before the loop: what the
// process does from there on counts, also in other goroutines and in the garbage
// collector, and also while the timer is stopped. That others are busy on the same
// machine changes it little.
func CPU(b *testing.B, atMost time.Duration) {
	b.Helper()
	before := used(b)
	b.Cleanup(func() {
		b.ReportMetric(milliseconds(used(b)-before)/float64(b.N), "cpu-ms")
		b.ReportMetric(milliseconds(atMost), "goal-cpu-ms")
	})
}

// Time has the benchmark say that an operation, as its timer has it, should take at
// most this. It is called before the loop.
func Time(b *testing.B, atMost time.Duration) {
	b.Helper()
	b.Cleanup(func() { b.ReportMetric(milliseconds(atMost), "goal-ms") })
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
