package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"ebbtide.dev/ebbtide/test/bench/audit"
	"ebbtide.dev/ebbtide/test/bench/lab"
	"ebbtide.dev/ebbtide/test/bench/report"
)

const (
	// fleetPatience is how long a contender may take for all nodes.
	fleetPatience = 30 * time.Minute
	// patchFor is the time that the work on a drained node takes.
	patchFor = 3 * time.Second
	// idleFor is the time in which an idle manager writes nothing.
	idleFor = 30 * time.Second
)

var fleetWork = lab.Fleet{Nodes: 50, Pods: 1000, Seed: 33}

// fleetRows are the contenders. Only those that maintain one node at a time are compared.
var fleetRows = []fleetRow{
	{lab.Kubectl, lab.Kubectl, 1},
	{report.Ebbtide, report.Ebbtide, 1},
	{report.Ebbtide + "-2", report.Ebbtide, 2},
	{report.Ebbtide + "-5", report.Ebbtide, 5},
}

type fleetRow struct {
	name, contender string
	maxUnavailable  int
}

// fleetResult is how one contender has maintained the nodes.
type fleetResult struct {
	took, cpu time.Duration
	journal   *lab.Journal
	course    lab.Rollout
	// idle counts the writes of a manager with one rollout that waits and one that is complete.
	idle int
}

// Fleet maintains 50 nodes with 1,000 pods, by a NodeRollout and by a loop that drains one node
// after the other with kubectl, patches and uncordons it. Each node is patched for as long.
func Fleet(ctx context.Context, l *lab.Lab, options Options) []report.Sheet {
	sheets := fleetSheets()
	for _, row := range fleetRows {
		if !slices.Contains(options.Contenders, row.contender) {
			continue
		}
		result, err := maintainFleet(ctx, l, row)
		for i := range sheets {
			run := report.Run{Contender: row.name}
			if err != nil {
				run.Failure = err.Error()
			} else if run.Values = sheets[i].read(row, result); len(run.Values) == 0 {
				continue
			}
			if sheets[i].detail != nil && err == nil {
				run.Detail = sheets[i].detail(result)
			}
			sheets[i].Runs = append(sheets[i].Runs, run)
			fmt.Fprintf(options.Progress, "  %s: %s %s\n", sheets[i].Scenario, row.name, highest(&run))
		}
	}
	var all []report.Sheet
	for _, sheet := range sheets {
		all = append(all, sheet.Sheet)
	}
	return all
}

func highest(run *report.Run) string {
	if run.Failure != "" {
		return last(run)
	}
	return fmt.Sprintf("%.3f", report.Quantile(run.Values, 1))
}

// fleetSheet reads its values from the results.
type fleetSheet struct {
	report.Sheet
	read   func(fleetRow, fleetResult) []float64
	detail func(fleetResult) map[string]float64
}

func fleetSheets() []fleetSheet {
	anything := math.Inf(1)
	return []fleetSheet{
		{
			Sheet:  report.Sheet{Scenario: "fleet-time", Unit: "s", Quantile: 1, Goal: report.Goal{AtMost: anything, Beats: lab.Kubectl}},
			read:   func(_ fleetRow, r fleetResult) []float64 { return []float64{r.took.Seconds()} },
			detail: func(r fleetResult) map[string]float64 { return map[string]float64{"cpuSeconds": r.cpu.Seconds()} },
		},
		{
			Sheet: report.Sheet{Scenario: "fleet-moves", Unit: "moves/pod", Quantile: 1, Goal: report.Goal{AtMost: 1.2}},
			read: func(_ fleetRow, r fleetResult) []float64 {
				return []float64{float64(r.journal.Moves) / float64(fleetWork.Pods)}
			},
		},
		{
			Sheet:  report.Sheet{Scenario: "fleet-below", Unit: "s", Quantile: 1, Goal: report.Goal{AtMost: anything}},
			read:   func(_ fleetRow, r fleetResult) []float64 { return longestBelow(r.journal) },
			detail: func(r fleetResult) map[string]float64 { return leastReady(r.journal) },
		},
		{
			Sheet: report.Sheet{Scenario: "fleet-outage", Unit: "s", Quantile: 1, Goal: report.Goal{AtMost: 0}},
			read: func(_ fleetRow, r fleetResult) []float64 {
				return []float64{r.journal.Apps[lab.Singleton].Without.Seconds()}
			},
		},
		{
			Sheet: report.Sheet{Scenario: "fleet-start", Unit: "s", Quantile: 1, Goal: report.Goal{AtMost: 1}},
			read:  func(_ fleetRow, r fleetResult) []float64 { return seconds(r.journal.Starts) },
			detail: func(r fleetResult) map[string]float64 {
				return map[string]float64{"p50": report.Quantile(seconds(r.journal.Starts), 0.5), "p90": report.Quantile(seconds(r.journal.Starts), 0.9)}
			},
		},
		{
			Sheet: report.Sheet{Scenario: "fleet-idle", Unit: "writes", Quantile: 1, Goal: report.Goal{AtMost: 0}},
			read:  ofRollouts(func(r fleetResult) float64 { return float64(r.idle) }),
		},
		{
			Sheet: report.Sheet{Scenario: "fleet-estimate", Unit: "% off", Quantile: 1, Goal: report.Goal{AtMost: 20}},
			read:  ofRollouts(func(r fleetResult) float64 { return estimateError(r.course) }),
		},
	}
}

// ofRollouts reads a value that the loop over kubectl does not have.
func ofRollouts(read func(fleetResult) float64) func(fleetRow, fleetResult) []float64 {
	return func(row fleetRow, r fleetResult) []float64 {
		if row.contender != report.Ebbtide {
			return nil
		}
		return []float64{read(r)}
	}
}

func seconds(times []time.Duration) []float64 {
	var all []float64
	for _, one := range times {
		all = append(all, one.Seconds())
	}
	return all
}

// longestBelow returns for each Deployment the longest time with fewer ready pods than replicas.
func longestBelow(journal *lab.Journal) (all []float64) {
	for _, name := range slices.Sorted(maps.Keys(journal.Apps)) {
		all = append(all, journal.Apps[name].Below.Seconds())
	}
	return all
}

// leastReady returns for each Deployment the lowest share of ready pods.
func leastReady(journal *lab.Journal) map[string]float64 {
	least := map[string]float64{}
	for name, app := range journal.Apps {
		least["leastReady "+name] = float64(app.Least) / float64(app.Replicas)
	}
	return least
}

// estimateError returns how far the estimate after a quarter of the nodes was off, in percent of
// the time that was left.
func estimateError(course lab.Rollout) float64 {
	return 100 * course.Estimate.Sub(course.Complete).Abs().Seconds() / course.Complete.Sub(course.Quarter).Seconds()
}

// maintainFleet measures one contender on fresh nodes and pods.
func maintainFleet(ctx context.Context, l *lab.Lab, row fleetRow) (result fleetResult, err error) {
	load, err := l.PrepareFleet(ctx, fleetWork)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, l.Clear(ctx, load)) }()
	contender, err := l.Start(ctx, row.contender, load)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, contender.Stop(ctx)) }()
	run := fleetRun{lab: l, load: load, contender: contender}
	if row.contender != report.Ebbtide {
		return run.measure(ctx, func(ctx context.Context, _ *fleetResult) error { return run.loop(ctx) })
	}
	defer func() { err = errors.Join(err, l.RemoveRollouts(ctx)) }()
	result, err = run.measure(ctx, func(ctx context.Context, result *fleetResult) (err error) {
		result.course, err = l.RollOut(ctx, load, row.maxUnavailable)
		return err
	})
	if err != nil {
		return result, err
	}
	if result.course.Estimate.IsZero() {
		return result, errors.New("the rollout had no estimate after a quarter of its nodes")
	}
	result.idle, err = run.countIdleWrites(ctx)
	return result, err
}

// fleetRun is one contender at its work.
type fleetRun struct {
	lab       *lab.Lab
	load      *lab.Load
	contender lab.Contender
}

// measure takes the time of the work and watches what happens until the pods are ready again.
func (f fleetRun) measure(ctx context.Context, work func(context.Context, *fleetResult) error) (result fleetResult, err error) {
	ctx, cancel := context.WithTimeout(ctx, fleetPatience)
	defer cancel()
	patches := make(chan error, fleetWork.Nodes)
	journal, ended, err := f.lab.Watch(ctx, f.load, func(node string) {
		go func() { patches <- f.patch(ctx, node) }()
	})
	if err != nil {
		return result, err
	}
	start, idle := time.Now(), f.lab.CPU()
	err = work(ctx, &result)
	result.took, result.cpu = time.Since(start), f.lab.CPU()-idle
	if err == nil {
		err = f.lab.UntilReady(ctx, f.load)
	}
	cancel()
	result.journal = journal
	err = errors.Join(err, ended())
	for len(patches) > 0 {
		err = errors.Join(err, <-patches)
	}
	return result, err
}

// patch does the work on a drained node.
func (f fleetRun) patch(ctx context.Context, node string) error {
	if err := pause(ctx, patchFor); err != nil {
		return err
	}
	return f.lab.PatchNode(ctx, node)
}

// loop drains, patches and uncordons one node after the other.
func (f fleetRun) loop(ctx context.Context) error {
	for _, node := range f.load.Nodes {
		err := f.contender.Drain(ctx, []string{node})
		if err == nil {
			err = f.patch(ctx, node)
		}
		if err == nil {
			err = f.lab.Uncordon(ctx, node)
		}
		if err != nil {
			return fmt.Errorf("maintain %s: %w", node, err)
		}
	}
	return nil
}

// countIdleWrites returns what the manager writes while one rollout waits and one is complete.
func (f fleetRun) countIdleWrites(ctx context.Context) (int, error) {
	if err := f.lab.WaitingRollout(ctx, f.load); err != nil {
		return 0, err
	}
	if err := pause(ctx, settled); err != nil {
		return 0, err
	}
	_, skipErr := f.lab.Audit.Next()
	pauseErr := pause(ctx, idleFor)
	events, err := f.lab.Audit.Next()
	count := 0
	for what, writes := range audit.Writes(events, f.contender.Agent()) {
		if !strings.HasSuffix(what, "reviews") { // A review is a question: nothing is stored.
			count += writes
		}
	}
	return count, errors.Join(skipErr, pauseErr, err)
}
