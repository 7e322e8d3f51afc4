// Package demo holds READMEs to what their commands really do and print.
package demo

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/internal/sandbox/demo"
)

func TestReadmeShowsTheDemo(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)<!-- demo -->\n```\n(.*?)```").FindSubmatch(readme)
	if block == nil {
		t.Fatal("README.md does not show the demo")
	}
	var printed, progress strings.Builder
	shown := demo.Demo{Version: sandbox.RequestedVersion(), Out: &printed, Progress: &progress}
	if err := shown.Run(t.Context()); err != nil {
		t.Fatalf("demo: %v\n%s%s", err, printed.String(), progress.String())
	}
	if diff := cmp.Diff(story(string(block[1])), story(printed.String())); diff != "" {
		t.Errorf("README.md shows another story (-README +demo):\n%s\nthe demo printed:\n%s", diff, printed.String())
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

func TestStoryKeepsWhatIsStable(t *testing.T) {
	got := story(`
NodeMaintenance kernel-update, stage Drain, for node-1:
   0.0s  cordoned  node-1
   0.1s  wave 1    1 with priority up to -10
   0.1s  evicted   invoices-2c66p
  10.5s  wave 2    5 with priority up to 0
  11.0s  drained   Drained=True: 1 of 1 nodes drained
  11.2s  back      node-1 is schedulable again
node-1 was empty after 5.1s`)
	want := []string{"NodeMaintenance", "wave 1 with priority up to -10", "wave 2 with priority up to 0", "drained", "back"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
