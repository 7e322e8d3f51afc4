// Package scenario holds the races: what is drained, what is measured and what
// Ebbtide must reach. A scenario measures and reports; a contender that fails
// costs its own values and never the others'. One file each: a new scenario is
// a file here and a line in All.
package scenario

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"ebbtide.dev/ebbtide/test/bench/lab"
	"ebbtide.dev/ebbtide/test/bench/report"
)

// patience is how long a contender may take for one drain.
const patience = 4 * time.Minute

// Options are how thoroughly to measure whom.
type Options struct {
	// Contenders by name.
	Contenders []string
	// Repeat is how often each drains; Cluster API drains once.
	Repeat int
	// Progress is told what is being measured.
	Progress io.Writer
}

// Scenario is one race.
type Scenario struct {
	// Name by which it is asked for.
	Name string
	// Run measures the contenders.
	Run func(context.Context, *lab.Lab, Options) []report.Sheet
	// OnRequest keeps it out of the runs for which no scenario is named.
	OnRequest bool
}

// one makes the only sheet of a scenario its list of sheets.
func one(run func(context.Context, *lab.Lab, Options) report.Sheet) func(context.Context, *lab.Lab, Options) []report.Sheet {
	return func(ctx context.Context, l *lab.Lab, options Options) []report.Sheet {
		return []report.Sheet{run(ctx, l, options)}
	}
}

// All are the scenarios in the order in which they are run.
func All() []Scenario {
	return []Scenario{
		{Name: "free", Run: one(Free)},
		{Name: "budget", Run: one(Budget)},
		{Name: "slow", Run: one(Slow)},
		{Name: "bulk", Run: one(Bulk)},
		{Name: "crowd", Run: one(Crowd)},
		{Name: "machines", Run: one(Machines)},
		{Name: "waves", Run: one(Waves)},
		{Name: "react", Run: one(React)},
		{Name: "writes", Run: one(Writes)},
		{Name: "fleet", Run: Fleet, OnRequest: true},
	}
}

// Select returns the scenarios of these names in the order of All.
func Select(names []string) ([]Scenario, error) {
	var selected []Scenario
	for _, scenario := range All() {
		if slices.Contains(names, scenario.Name) {
			selected = append(selected, scenario)
		}
	}
	if len(selected) != len(names) {
		return nil, fmt.Errorf("of the scenarios %q only %d exist; those are %q", names, len(selected), namesOf(All()))
	}
	return selected, nil
}

// Names are the names of the scenarios that are run unless others are asked for.
func Names() []string {
	return namesOf(slices.DeleteFunc(All(), func(s Scenario) bool { return s.OnRequest }))
}

func namesOf(scenarios []Scenario) []string {
	var names []string
	for _, scenario := range scenarios {
		names = append(names, scenario.Name)
	}
	return names
}

// of are the options to measure nobody but these contenders.
func (o Options) of(names ...string) Options {
	o.Contenders = slices.DeleteFunc(slices.Clone(o.Contenders), func(name string) bool {
		return !slices.Contains(names, name)
	})
	return o
}

// ebbtideOnce are the options to measure nobody but Ebbtide, once.
func (o Options) ebbtideOnce() Options {
	o.Repeat = 1
	return o.of(report.Ebbtide)
}

// collect measures every contender Repeat times, in rotated order, and gathers
// the runs in the order of the contenders. Cluster API is measured once: its
// times are those of its loop, whose length is fixed.
func (o Options) collect(measure func(contender string, run *report.Run) error) []report.Run {
	runs := make([]report.Run, len(o.Contenders))
	for i, name := range o.Contenders {
		runs[i].Contender = name
	}
	for round := range o.Repeat {
		for _, name := range lab.Rotate(o.Contenders, round) {
			if round > 0 && name == lab.ClusterAPI {
				continue
			}
			run := &runs[slices.Index(o.Contenders, name)]
			if err := measure(name, run); err != nil {
				run.Failure = fmt.Sprintf("round %d: %v", round+1, err)
			}
			fmt.Fprintf(o.Progress, "  round %d: %s %s\n", round+1, name, last(run))
		}
	}
	return runs
}

func last(run *report.Run) string {
	if run.Failure != "" {
		return "FAILED: " + run.Failure
	}
	return fmt.Sprintf("%.3f", run.Values[len(run.Values)-1])
}
