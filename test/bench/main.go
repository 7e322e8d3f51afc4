// Command bench measures Ebbtide beside its peers, in one run on one cluster,
// prints one table and writes it as JSON. See the README.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"ebbtide.dev/ebbtide/test/bench/benchmark"
	"ebbtide.dev/ebbtide/test/bench/lab"
	"ebbtide.dev/ebbtide/test/bench/report"
	"ebbtide.dev/ebbtide/test/bench/scenario"
)

type arguments struct {
	scenarios, contenders string
	benchmarks            string
	root, json            string
	repeat                int
	strict                bool
}

// document is what the JSON file holds.
type document struct {
	Kubernetes string        `json:"kubernetes,omitempty"`
	CPUs       int           `json:"cpus"`
	Lines      []report.Line `json:"lines"`
}

func main() {
	var args arguments
	flag.StringVar(&args.scenarios, "scenarios", strings.Join(scenario.Names(), ","), "what to measure")
	flag.StringVar(&args.contenders, "contenders", strings.Join(lab.Defaults(), ","),
		"whom to measure, of "+strings.Join(lab.Names(), ","))
	flag.StringVar(&args.benchmarks, "benchmarks", "", "packages whose Go benchmarks are run, too, separated by spaces")
	flag.IntVar(&args.repeat, "repeat", 2, "how often each contender drains in scenarios that take a median, and each Go benchmark runs")
	flag.StringVar(&args.root, "root", "../..", "folder of the repository")
	flag.StringVar(&args.json, "json", "../../bench.json", "file to write the results to; none if empty")
	flag.BoolVar(&args.strict, "strict", false, "exit with 1 if a goal is missed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, args); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args arguments) error {
	scenarios, err := scenario.Select(split(args.scenarios))
	if err != nil {
		return err
	}
	options := scenario.Options{
		Contenders: split(args.contenders),
		Repeat:     max(args.repeat, 1),
		Progress:   os.Stderr,
	}
	results, err := measure(ctx, args, scenarios, options)
	if len(results.Lines) == 0 {
		return err
	}
	if err := errors.Join(err, report.Table(os.Stdout, results.Lines), write(args.json, results)); err != nil {
		return err
	}
	if args.strict && report.Missed(results.Lines) {
		return errors.New("a goal was missed")
	}
	return nil
}

// measure returns what it has measured also when it was interrupted.
func measure(ctx context.Context, args arguments, scenarios []scenario.Scenario, options scenario.Options) (results document, err error) {
	results.CPUs = runtime.NumCPU()
	if packages := strings.Fields(args.benchmarks); len(packages) > 0 {
		fmt.Fprintln(options.Progress, "running Go benchmarks")
		if results.Lines, err = benchmark.Run(ctx, benchmark.Spec{Root: args.root, Packages: packages, Repeat: options.Repeat}, options.Progress); err != nil {
			return results, err
		}
	}
	if len(scenarios) == 0 {
		return results, ctx.Err()
	}
	l, err := lab.Open(ctx, args.root, options.Contenders, options.Progress)
	if err != nil {
		return results, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	results.Kubernetes = l.Version
	for _, scenario := range scenarios {
		if ctx.Err() != nil {
			break
		}
		fmt.Fprintln(options.Progress, "measuring", scenario.Name)
		for _, sheet := range scenario.Run(ctx, l, options) {
			results.Lines = append(results.Lines, report.Judge(sheet)...)
		}
	}
	return results, ctx.Err()
}

// split returns the elements of a list with commas; none if it is empty.
func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

func write(path string, results document) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return fmt.Errorf("encode results: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}
