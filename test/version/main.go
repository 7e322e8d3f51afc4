// Command version runs the tests that depend on the release of Kubernetes, on all releases that
// Ebbtide supports, and writes the results to docs/versions.md. A failing release does not stop
// the others. A release that was not run keeps its row.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

// stories are run on each release: what they need of Kubernetes is what releases differ in.
var stories = []string{
	"TestBudgetOfOneIsNeverExceeded",                    // evictions, budgets
	"TestPodsLeaveInTheOrderOfThePlan",                  // priorities, finalizers, garbage
	"TestDaemonSetsStayAwayUntilComplete",               // mutation of pods, scheduling gates
	"TestDrainTakesNoServiceDown",                       // adoption by ReplicaSets, EndpointSlices
	"TestEvacuatorsTakeTurns",                           // server-side apply by third parties
	"TestTheLockOfAnOwnerStopsEveryDrain",               // evictions that a webhook refuses
	"TestOneMaintenanceRebootsAPool",                    // conditions of nodes, boot IDs
	"TestLongKubectlDrainTakesNoServiceDown",            // kubectl of the same release
	"TestAMachineGoesPhaseByPhase",                      // owners, volumes, nodes that go
	"TestLongMaintenanceIsRefusedWhileTheManagerIsDown", // webhooks that must be asked
	"TestKubectlUncordonSuggestsToEndTheMaintenance",    // policies that warn
}

func main() {
	versions := flag.String("versions", strings.Join(sandbox.TestedVersions(), ","), "releases to run, separated by commas")
	page := flag.String("page", "docs/versions.md", "file with the table")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, strings.Split(*versions, ","), *page); err != nil {
		fmt.Fprintln(os.Stderr, "version:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, versions []string, page string) error {
	var failed error
	for _, version := range versions {
		row, err := runVersion(ctx, version)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("kubernetes %s: %w", version, err))
		}
		// What could not be built has nothing to say. Each other row is written at once: the
		// next release may take long.
		if row.api.all() == 0 {
			continue
		}
		if err := write(page, sandbox.TestedVersions(), row); err != nil {
			return errors.Join(failed, err)
		}
	}
	return failed
}

// runVersion builds one release and runs on it what is to be run.
func runVersion(ctx context.Context, version string) (row, error) {
	r := row{version: version}
	fmt.Printf("Kubernetes %s\n", version)
	if _, err := sandbox.Build(ctx, sandbox.BuildSpec{Version: version, Kubectl: true}, os.Stderr); err != nil {
		return r, err
	}
	start := time.Now()
	var apiErr, storyErr error
	r.api, apiErr = goTest(ctx, version, "./test/api")
	r.stories, storyErr = goTest(ctx, version, "-run", "^("+strings.Join(stories, "|")+")$", "./test/scenario")
	if apiErr == nil && r.api.all() == 0 {
		apiErr = errors.New("no test of the API was run")
	}
	if storyErr == nil && r.stories.all() != len(stories) {
		storyErr = fmt.Errorf("%d of %d stories were run", r.stories.all(), len(stories))
	}
	r.seconds = int(time.Since(start).Seconds())
	return r, errors.Join(apiErr, storyErr)
}
