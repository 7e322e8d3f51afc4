// Package demo compares READMEs and pages with what their commands really do and print.
package demo

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/internal/sandbox/demo"
	"ebbtide.dev/ebbtide/test/prebuilt"
)

func TestThePageShowsTheDemo(t *testing.T) {
	holdsTo(t, "../../docs/sandbox.md", demo.Demo.Run, story)
}

func TestReadmeShowsTheDemoOfMachines(t *testing.T) {
	holdsTo(t, "../../examples/machines/README.md", demo.Demo.RunMachines, storyOfMachines)
}

func TestLongThePageShowsTheDemoOfEvictionRequests(t *testing.T) {
	if err := sandbox.CheckEvictionRequests(sandbox.RequestedVersion()); err != nil {
		return // nothing to be shown on an older Kubernetes
	}
	holdsTo(t, "../../docs/evictionrequests.md", demo.Demo.RunEvictionRequests, storyOfResponders)
}

// The zones and nodes of the page are those of any run; their order within a zone is not.
func TestLongThePageShowsTheDemoOfAFleet(t *testing.T) {
	holdsTo(t, "../../docs/fleet.md", demo.Demo.RunRollout, storyOfRollout)
}

// storyOfRollout returns how many nodes started in each zone and how many are done, and what else
// happened, in order.
func storyOfRollout(text string) []string {
	var steps []string
	zones, done := map[string]int{}, 0
	for line := range strings.Lines(text) {
		match := step.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		switch {
		case match == nil:
		case match[1] == "started":
			for _, zone := range []string{"zone-a", "zone-b", "zone-c"} {
				zones[zone] += strings.Count(match[3], zone)
			}
		case match[1] == "done":
			done += strings.Count(match[3], "node-")
		case match[1] == "failed":
			_, reason, _ := strings.Cut(match[3], ": ")
			steps = append(steps, "failed "+reason)
		default:
			steps = append(steps, match[1])
		}
	}
	return append(steps, fmt.Sprint(zones, " started, ", done, " done"))
}

// storyOfResponders returns the active responders and their reports in order, and then the end.
func storyOfResponders(text string) []string {
	var responders, end []string
	for line := range strings.Lines(text) {
		match := step.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		switch {
		case match == nil, match[1] == "reported" && strings.HasPrefix(match[3], "imperative-eviction"):
		case match[1] == "active", match[1] == "reported":
			responders = append(responders, match[1]+" "+match[3])
		case match[1] == "requested", match[1] == "saved", match[1] == "gone", match[1] == "drained", match[1] == "back":
			end = append(end, match[1])
		}
	}
	slices.Sort(end)
	return append(responders, end...)
}

// holdsTo runs a demo and compares what it prints with what a page shows, as far
// as two runs have it in common.
func holdsTo(t *testing.T, page string, run func(demo.Demo, context.Context) error, story func(string) []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)<!-- demo -->\n```\n(.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatalf("%s does not show the demo", page)
	}
	// A demo builds a control plane that is missing, and a test does not.
	if _, err := prebuilt.ControlPlane(sandbox.BuildSpec{}); err != nil {
		t.Fatal(err)
	}
	programs, err := sandbox.ProgramDir()
	if err != nil {
		t.Fatal(err)
	}
	var printed, progress strings.Builder
	d := demo.Demo{Out: &printed, Progress: &progress, Programs: programs}
	if err := run(d, t.Context()); err != nil {
		t.Fatalf("demo: %v\n%s%s", err, printed.String(), progress.String())
	}
	if diff := cmp.Diff(story(string(block[1])), story(printed.String())); diff != "" {
		t.Errorf("%s shows another story (-page +demo):\n%s\nthe demo printed:\n%s", page, diff, printed.String())
	}
}

var (
	// step is a line of the timeline: seconds, verb, the rest.
	step = regexp.MustCompile(`^ *\d+\.\d+s  (\w+) +(?:(\d+) +\d+ )?(.*)$`)
	// milestones are the steps that every drain goes through in the same order.
	// The cordon is none, since the node is watched apart from the maintenance.
	milestones = []string{"wave", "replaced", "drained", "back"}
)

// story is what two runs of the demo have in common: no times, no pod names, no
// counts that depend on where the scheduler put a pod.
func story(text string) (lines []string) {
	for _, line := range strings.Split(text, "\n") {
		match := step.FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(line, "NodeMaintenance"):
			lines = append(lines, strings.Fields(line)[0])
		case match == nil || !slices.Contains(milestones, match[1]):
		case match[1] == "wave":
			lines = append(lines, "wave "+match[2]+" "+match[3])
		default:
			lines = append(lines, match[1])
		}
	}
	return lines
}

// storyOfMachines is the same of the other demo: what one watch sees is in order,
// and what different watches see is not.
func storyOfMachines(text string) []string {
	var machine, pods []string
	gone := map[string]bool{}
	for _, line := range strings.Split(text, "\n") {
		match := step.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		verb, rest := match[1], match[3]
		switch {
		case verb == "step":
			reason, _, _ := strings.Cut(rest, ":")
			machine = append(machine, reason)
		case verb == "hook", verb == "gone" && strings.HasPrefix(rest, "Machine"):
			machine = append(machine, verb)
		case verb == "evicted":
			app, _, _ := strings.Cut(rest, "-")
			pods = append(pods, app)
		case slices.Contains([]string{"cordoned", "detached", "silent", "instance", "bootstrap", "node"}, verb):
			gone[verb] = true
		}
	}
	// How many there are depends on where the scheduler put them.
	return slices.Concat(machine, slices.Compact(pods), slices.Sorted(maps.Keys(gone)))
}
