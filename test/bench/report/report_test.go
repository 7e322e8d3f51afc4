package report

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQuantile(t *testing.T) {
	tests := map[string]struct {
		values []float64
		q      float64
		want   float64
	}{
		"one value is every quantile":         {[]float64{7}, 0.99, 7},
		"median of an odd number":             {[]float64{9, 1, 5}, 0.5, 5},
		"median of an even number, the lower": {[]float64{4, 1, 3, 2}, 0.5, 2},
		"p99 of fifty is the highest":         {append(make([]float64, 49), 8), 0.99, 8},
		"the minimum":                         {[]float64{3, 2}, 0, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Quantile(test.values, test.q); got != test.want {
				t.Errorf("Quantile(%v, %v) = %v, want %v", test.values, test.q, got, test.want)
			}
		})
	}
	if got := Quantile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("the median of nothing is %v, want NaN", got)
	}
}

func sheet(goal Goal, runs ...Run) Sheet {
	return Sheet{Scenario: "budget", Unit: "s", Quantile: 0.5, Goal: goal, Runs: runs}
}

func run(contender string, values ...float64) Run {
	return Run{Contender: contender, Values: values}
}

func TestGoals(t *testing.T) {
	ratio := Goal{AtMost: 1.3, TimesOracle: true, Beats: "kubectl"}
	thrice := Goal{AtMost: 1.5, TimesOracle: true, Beats: "kubectl", Margin: 3}
	near := Goal{AtMost: 1.3, TimesOracle: true, Beats: "kubectl", Margin: 1 / 1.3}
	absolute := Goal{AtMost: 250}
	tests := map[string]struct {
		sheet Sheet
		want  string
	}{
		"close to the oracle and faster than kubectl":  {sheet(ratio, run(Oracle, 2), run("kubectl", 6), run(Ebbtide, 2.5)), "pass"},
		"too far from the oracle":                      {sheet(ratio, run(Oracle, 2), run("kubectl", 6), run(Ebbtide, 2.7)), "MISS"},
		"slower than kubectl":                          {sheet(ratio, run(Oracle, 2), run("kubectl", 2.2), run(Ebbtide, 2.4)), "MISS"},
		"three times faster than kubectl":              {sheet(thrice, run(Oracle, 2), run("kubectl", 7.6), run(Ebbtide, 2.5)), "pass"},
		"not three times faster than kubectl":          {sheet(thrice, run(Oracle, 2), run("kubectl", 7.4), run(Ebbtide, 2.5)), "MISS"},
		"a little slower than kubectl where it may be": {sheet(near, run(Oracle, 2), run("kubectl", 2), run(Ebbtide, 2.5)), "pass"},
		"too slow where it may be a little slower":     {sheet(near, run(Oracle, 2.5), run("kubectl", 2), run(Ebbtide, 2.7)), "MISS"},
		"no oracle to compare with":                    {sheet(ratio, run("kubectl", 6), run(Ebbtide, 2)), "MISS"},
		"no kubectl to compare with":                   {sheet(ratio, run(Oracle, 2), run(Ebbtide, 2)), "MISS"},
		"an absolute goal needs no oracle":             {sheet(absolute, run(Ebbtide, 250)), "pass"},
		"an absolute goal missed":                      {sheet(absolute, run(Ebbtide, 251)), "MISS"},
		"a failed run is never a pass":                 {sheet(absolute, Run{Contender: Ebbtide, Values: []float64{1}, Failure: "timeout"}), "FAILED"},
		"nothing measured":                             {sheet(absolute, run(Ebbtide)), "MISS"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			lines := Judge(test.sheet)
			if got := lines[len(lines)-1].result(); got != test.want {
				t.Errorf("result = %s, want %s", got, test.want)
			}
			if Missed(lines) != (test.want != "pass") {
				t.Errorf("Missed = %t for a result of %s", Missed(lines), test.want)
			}
		})
	}
}

func TestTable(t *testing.T) {
	lines := Judge(sheet(Goal{AtMost: 1.3, TimesOracle: true, Beats: "kubectl"},
		run(Oracle, 3.1, 2.9, 3.3), Run{Contender: "kubectl", Values: []float64{6.8}, Declared: []float64{7.1}, CPU: []float64{4.25, 4.5}},
		Run{Contender: "clusterapi", Failure: "not drained after 2m0s"}, run(Ebbtide, 3.5, 3.6, 3.4)))
	lines = append(lines, Judge(Sheet{Scenario: "react", Unit: "ms", Quantile: 0.99, Goal: Goal{AtMost: 250}, Runs: []Run{run(Ebbtide, 12, 300)}})...)

	var out strings.Builder
	if err := Table(&out, lines); err != nil {
		t.Fatal(err)
	}
	want := `SCENARIO  CONTENDER   VALUE            NOISE (MIN..MAX)  N  DECLARED  CPU     × ORACLE  GOAL                       RESULT
budget    oracle      3.10 s           2.90..3.30        3  -         -       1.00      -                          -
budget    kubectl     6.80 s           6.80..6.80        1  7.10 s    4.25 s  2.19      -                          -
budget    clusterapi  -                -                 0  -         -       -         -                          FAILED
budget    ebbtide     3.50 s           3.40..3.60        3  -         -       1.13      ≤ 1.3 × oracle, < kubectl  pass
react     ebbtide     300.00 ms (p99)  12.00..300.00     2  -         -       -         ≤ 250 ms                   MISS
budget, clusterapi: not drained after 2m0s
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}
