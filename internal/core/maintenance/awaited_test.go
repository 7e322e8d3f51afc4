package maintenance_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

func TestTheNodesThatAMessageSaysAreWaitedFor(t *testing.T) {
	t.Parallel()
	for message, want := range map[string][]string{
		"Waiting for node node-1.":                                      {"node-1"},
		"Waiting for nodes node-1, node-2.":                             {"node-1", "node-2"},
		"Waiting for nodes a, b, c and 12 more.":                        {"a", "b", "c"},
		"Waiting for node node-1 (kernel).":                             {"node-1"},
		"Waiting for nodes a (one), b, c.example.com (two) and 1 more.": {"a", "b", "c.example.com"},
		"Waiting for nodes a, b, c and 12 more (kernel).":               {"a", "b", "c"},
		"Waiting for node .":                                            nil,
		"Waiting for node A\x1b[2J.":                                    nil,
		"Waiting for nodes a, b, c, d, e.":                              {"a", "b", "c"},
		"Waiting for the pods of the node to be read.":                  nil,
		"Evacuating": nil,
		"":           nil,
	} {
		if diff := cmp.Diff(want, maintenance.Awaited(message)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", message, diff)
		}
	}
}
