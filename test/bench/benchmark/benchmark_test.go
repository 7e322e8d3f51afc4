package benchmark

import (
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/test/bench/report"
)

// printed is what go test prints for two packages, each benchmark run twice.
const printed = `goos: linux
pkg: ebbtide.dev/ebbtide/internal/core/maintenance
cpu: a fast one
BenchmarkDecide-2      	      10	  25000000 ns/op	        30.00 cpu-ms	       100.0 goal-ms	  5000 B/op	     7 allocs/op
BenchmarkDecide-2      	      10	 125000000 ns/op	        30.00 cpu-ms	       100.0 goal-ms	  5000 B/op	     7 allocs/op
BenchmarkSelect-2      	      10	     52000 ns/op
PASS
ok  	ebbtide.dev/ebbtide/internal/core/maintenance	18.039s
pkg: ebbtide.dev/ebbtide/internal/controller/nodemaintenance
BenchmarkPass/event/nodes=5000-2 	       3	  25000000 ns/op	        21.50 cpu-ms	        20.00 goal-cpu-ms
BenchmarkPass/first/nodes=5000-2 	       1	1500000000 ns/op	      2100 cpu-ms	      2000 goal-cpu-ms	      2000 goal-ms
PASS
`

func TestBenchmarksAreHeldAgainstTheGoalsThatTheyReport(t *testing.T) {
	var lines []report.Line
	for _, sheet := range read(printed) {
		lines = append(lines, report.Judge(sheet)...)
	}
	var out strings.Builder
	for _, line := range lines {
		if err := report.Table(&out, []report.Line{line}); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []string{
		"maintenance.Decide ebbtide 25.00 ms 25.00..125.00 2 - - - ≤ 100 ms pass",
		"nodemaintenance.Pass/event/nodes=5000 ebbtide 21.50 ms of CPU 21.50..21.50 1 - - - ≤ 20 ms of CPU MISS",
		"nodemaintenance.Pass/first/nodes=5000 ebbtide 2100.00 ms of CPU 2100.00..2100.00 1 - - - ≤ 2000 ms of CPU MISS",
		"nodemaintenance.Pass/first/nodes=5000 ebbtide 1500.00 ms 1500.00..1500.00 1 - - - ≤ 2000 ms pass",
	} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), row) {
			t.Errorf("no row %q in\n%s", row, out.String())
		}
	}
	if len(lines) != 4 {
		t.Errorf("%d rows, want 4: what has no goal has none", len(lines))
	}
}
