package report

import (
	"math"
	"testing"
)

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
	relative := Goal{AtMost: math.Inf(1), Beats: "kubectl"}
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
		"a goal without a number":                      {sheet(relative, run("kubectl", 500), run(Ebbtide, 499)), "pass"},
		"a goal without a number missed":               {sheet(relative, run("kubectl", 500), run(Ebbtide, 500)), "MISS"},
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

func TestAValueWithoutAGoalIsOnlyShown(t *testing.T) {
	lines := Judge(sheet(Goal{AtMost: math.Inf(1)}, run(Ebbtide, 1)))
	if got := lines[0]; got.Pass != nil || got.Goal != "" || got.result() != "-" {
		t.Errorf("line = %+v, want no goal", got)
	}
}
