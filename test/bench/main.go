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

	"ebbtide.dev/ebbtide/test/bench/lab"
	"ebbtide.dev/ebbtide/test/bench/report"
	"ebbtide.dev/ebbtide/test/bench/scenario"
)

type arguments struct {
	scenarios, contenders string
	root, json            string
	repeat                int
	strict                bool
}

// document is what the JSON file holds.
type document struct {
	Kubernetes string        `json:"kubernetes"`
	CPUs       int           `json:"cpus"`
	Lines      []report.Line `json:"lines"`
}

func main() {
	var args arguments
	flag.StringVar(&args.scenarios, "scenarios", strings.Join(scenario.Names(), ","), "what to measure")
	flag.StringVar(&args.contenders, "contenders", strings.Join(lab.Defaults(), ","),
		"whom to measure, of "+strings.Join(lab.Names(), ","))
	flag.IntVar(&args.repeat, "repeat", 2, "how often each contender drains in scenarios that take a median")
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
	scenarios, err := scenario.Select(strings.Split(args.scenarios, ","))
	if err != nil {
		return err
	}
	options := scenario.Options{
		Contenders: strings.Split(args.contenders, ","),
		Repeat:     max(args.repeat, 1),
		Progress:   os.Stderr,
	}
	results, err := measure(ctx, args.root, scenarios, options)
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
func measure(ctx context.Context, root string, scenarios []scenario.Scenario, options scenario.Options) (results document, err error) {
	l, err := lab.Open(ctx, root, options.Contenders, options.Progress)
	if err != nil {
		return document{}, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	results = document{Kubernetes: l.Version, CPUs: runtime.NumCPU()}
	for _, scenario := range scenarios {
		if ctx.Err() != nil {
			break
		}
		fmt.Fprintln(options.Progress, "measuring", scenario.Name)
		results.Lines = append(results.Lines, report.Judge(scenario.Run(ctx, l, options))...)
	}
	return results, ctx.Err()
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
