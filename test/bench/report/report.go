// Package report judges measurements against their goals and shows them, as a
// table for people and as JSON for machines. It is pure. A contender that did
// not finish is shown as such and never left out; a goal is missed if what it
// compares with is missing.
package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"
)

// The contenders by name. Ebbtide is the one that goals are about, also when it is
// told by a NodeMaintenance beside being told by Machines.
const (
	Oracle      = "oracle"
	Ebbtide     = "ebbtide"
	Maintenance = "ebbtide-maintenance"
)

// Goal is what a scenario asks of Ebbtide.
type Goal struct {
	// AtMost is the highest value that is good enough; infinite for any.
	AtMost float64
	// TimesOracle makes AtMost a multiple of the oracle's value.
	TimesOracle bool
	// Beats names a contender that Ebbtide must stay below; empty for none.
	Beats string
	// Margin is how many times lower than that contender's value Ebbtide's must
	// be; 0 means once. One below 1 lets it be higher.
	Margin float64
}

// Run is what one contender achieved in one scenario.
type Run struct {
	Contender string `json:"contender"`
	// Values are all measurements, in the order in which they were taken.
	Values []float64 `json:"values"`
	// Declared are the seconds until the contender itself said that it was done.
	Declared []float64 `json:"declaredSeconds,omitempty"`
	// CPU are the seconds of CPU time that this took the contender and the control plane.
	CPU []float64 `json:"cpuSeconds,omitempty"`
	// Detail is what the values are made of, per measurement where that applies.
	Detail map[string]float64 `json:"detail,omitempty"`
	// Failure says why there are fewer values than there should be.
	Failure string `json:"failure,omitempty"`
}

// Sheet is one scenario with all its contenders.
type Sheet struct {
	Scenario string
	// Unit of the values: "s", "ms", "writes/pod".
	Unit string
	// Quantile of the values that counts: 0.5 for the median, 0.99 for the p99, 1
	// for the highest.
	Quantile float64
	Goal     Goal
	Runs     []Run
}

// Line is one line of the table: a contender in a scenario.
type Line struct {
	Scenario string  `json:"scenario"`
	Unit     string  `json:"unit"`
	Quantile float64 `json:"quantile"`
	Run
	// Value is the quantile of the values; absent if there are none.
	Value *float64 `json:"value,omitempty"`
	// Ratio is Value as a multiple of the oracle's.
	Ratio *float64 `json:"timesOracle,omitempty"`
	// Goal is set for Ebbtide only, in words.
	Goal string `json:"goal,omitempty"`
	// Pass says whether the goal is met.
	Pass *bool `json:"pass,omitempty"`
}

// Judge turns a sheet into its lines.
func Judge(sheet Sheet) []Line {
	oracle := sheet.value(Oracle)
	var lines []Line
	for _, run := range sheet.Runs {
		line := Line{Scenario: sheet.Scenario, Unit: sheet.Unit, Quantile: sheet.Quantile, Run: run}
		line.Value = sheet.value(run.Contender)
		if line.Value != nil && oracle != nil && *oracle > 0 {
			line.Ratio = new(*line.Value / *oracle)
		}
		if run.Contender == Ebbtide || run.Contender == Maintenance {
			if line.Goal = sheet.Goal.words(sheet.Unit); line.Goal != "" {
				line.Pass = new(sheet.passes(line))
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// Missed says whether any line misses its goal.
func Missed(lines []Line) bool {
	for _, line := range lines {
		if line.Pass != nil && !*line.Pass {
			return true
		}
	}
	return false
}

func (s Sheet) value(contender string) *float64 {
	for _, run := range s.Runs {
		if run.Contender == contender && len(run.Values) > 0 {
			return new(Quantile(run.Values, s.Quantile))
		}
	}
	return nil
}

func (s Sheet) passes(line Line) bool {
	compared := line.Value
	if s.Goal.TimesOracle {
		compared = line.Ratio
	}
	if line.Failure != "" || compared == nil || *compared > s.Goal.AtMost {
		return false
	}
	if s.Goal.Beats == "" {
		return true
	}
	other := s.value(s.Goal.Beats)
	return other != nil && *line.Value*cmp.Or(s.Goal.Margin, 1) < *other
}

func (g Goal) words(unit string) string {
	var words []string
	switch {
	case g.TimesOracle:
		words = append(words, fmt.Sprintf("≤ %g × oracle", g.AtMost))
	case !math.IsInf(g.AtMost, 1):
		words = append(words, fmt.Sprintf("≤ %g %s", g.AtMost, unit))
	}
	switch {
	case g.Margin > 0 && g.Margin < 1:
		words = append(words, fmt.Sprintf("< %.3g × %s", 1/g.Margin, g.Beats))
	case g.Margin > 0:
		words = append(words, fmt.Sprintf("%g × < %s", g.Margin, g.Beats))
	case g.Beats != "":
		words = append(words, "< "+g.Beats)
	}
	return strings.Join(words, ", ")
}
