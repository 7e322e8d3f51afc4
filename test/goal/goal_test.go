package goal_test

import (
	"testing"
	"time"

	"ebbtide.dev/ebbtide/test/goal"
)

func TestBenchmarkReportsGoalsBesideMeasurements(t *testing.T) {
	sum := 1
	result := testing.Benchmark(func(b *testing.B) {
		goal.CPU(b, 1500*time.Microsecond)
		goal.Time(b, 2*time.Second)
		for b.Loop() {
			for n := range 1_000_000 {
				sum += n * sum
			}
		}
	})
	if cpu, took := result.Extra["goal-cpu-ms"], result.Extra["goal-ms"]; cpu != 1.5 || took != 2000 {
		t.Errorf("goals of %v and %v ms, want 1.5 and 2000", cpu, took)
	}
	if used := result.Extra["cpu-ms"]; used <= 0 {
		t.Errorf("%v ms of CPU time for a million additions, want more", used)
	}
}
