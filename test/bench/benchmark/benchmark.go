// Package benchmark runs Go benchmarks of the repository and holds them against
// the goals that they report themselves: the metric "goal-x" is the most that the
// metric "x" should be, and "goal-ms" is the most milliseconds that an operation
// should take. See package test/goal. Benchmarks without a goal are run and left
// out of the table.
package benchmark

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ebbtide.dev/ebbtide/test/bench/report"
)

// Spec is what to run.
type Spec struct {
	// Root is the folder of the repository.
	Root string
	// Packages have the benchmarks.
	Packages []string
	// Repeat is how often each is run.
	Repeat int
}

// Run runs benchmarks and shows on progress what they print. If one fails, that is
// a line of its own.
func Run(ctx context.Context, spec Spec, progress io.Writer) ([]report.Line, error) {
	var output bytes.Buffer
	command := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", ".", "-benchmem", fmt.Sprintf("-count=%d", spec.Repeat))
	command.Args = append(command.Args, spec.Packages...)
	command.Dir = spec.Root
	command.Stdout = io.MultiWriter(&output, progress)
	command.Stderr = command.Stdout
	failure := command.Run()
	var exit *exec.ExitError
	if failure != nil && !errors.As(failure, &exit) {
		return nil, fmt.Errorf("run Go benchmarks: %w", failure)
	}
	var lines []report.Line
	for _, sheet := range read(output.String()) {
		lines = append(lines, report.Judge(sheet)...)
	}
	if failure != nil {
		lines = append(lines, failed(output.String()))
	}
	return lines, nil
}

// read returns a sheet for each goal, in the order of what go test prints.
func read(output string) []report.Sheet {
	var sheets []report.Sheet
	index := map[string]int{}
	folder := ""
	for line := range strings.Lines(output) {
		if pkg, isPackage := strings.CutPrefix(line, "pkg: "); isPackage {
			folder = path.Base(strings.TrimSpace(pkg))
		}
		name, metrics := parse(line)
		for _, goal := range slices.Sorted(maps.Keys(metrics)) {
			unit, isGoal := strings.CutPrefix(goal, "goal-")
			measured, found := metrics[unit]
			if !isGoal || !found {
				continue
			}
			key := folder + "." + name + " " + unit
			at, known := index[key]
			if !known {
				at = len(sheets)
				index[key] = at
				sheets = append(sheets, sheet(folder+"."+name, unit, metrics[goal]))
			}
			run := &sheets[at].Runs[0]
			run.Values = append(run.Values, measured)
		}
	}
	return sheets
}

// parse returns the name and the metrics, by unit, of a line such as
//
//	BenchmarkDecide-2   10   25000000 ns/op   100.0 goal-ms
//
// and adds the time of an operation in milliseconds. Any other line has no metrics.
func parse(line string) (name string, metrics map[string]float64) {
	fields := strings.Fields(line)
	name, isBenchmark := strings.CutPrefix(line, "Benchmark")
	if !isBenchmark || len(fields) < 4 {
		return "", nil
	}
	name = cpus.ReplaceAllString(strings.Fields(name)[0], "")
	metrics = map[string]float64{}
	for pair := range slices.Chunk(fields[2:], 2) {
		value, err := strconv.ParseFloat(pair[0], 64)
		if err != nil || len(pair) < 2 {
			return "", nil
		}
		metrics[pair[1]] = value
	}
	metrics["ms"] = metrics["ns/op"] / 1e6
	return name, metrics
}

// cpus is how go test says on how many CPUs a benchmark ran.
var cpus = regexp.MustCompile(`-\d+$`)

func sheet(name, unit string, atMost float64) report.Sheet {
	return report.Sheet{
		Scenario: name,
		Unit:     strings.Replace(unit, "cpu-ms", "ms of CPU", 1),
		Quantile: 0.5,
		Goal:     report.Goal{AtMost: atMost},
		Runs:     []report.Run{{Contender: report.Ebbtide}},
	}
}

// failed tells which benchmarks failed and what they said.
func failed(output string) report.Line {
	var said []string
	for line := range strings.Lines(output) {
		indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
		if indented || strings.Contains(line, "FAIL") {
			said = append(said, strings.TrimSpace(line))
		}
	}
	run := report.Run{Contender: report.Ebbtide, Failure: strings.Join(said, "; ")}
	return report.Line{Scenario: "benchmarks", Run: run, Pass: new(false)}
}
