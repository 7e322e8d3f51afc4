package nodemaintenance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// A replacement must find every node of the maintenance closed.
func TestAllNodesAreCordonedBeforeTheFirstPodLeaves(t *testing.T) {
	t.Parallel()
	podOne, podTwo := aPod("pod-one", "one"), aPod("pod-two", "two")
	w := newWorld(t, aNode("one"), aNode("two"), podOne, podTwo)
	var open []string
	w.api.Refuse = func(write string) error {
		if strings.Contains(write, "Evacuation") {
			for node, state := range w.cordons("one", "two") {
				if strings.HasPrefix(state, "false") {
					open = append(open, fmt.Sprintf("%s while node %s takes pods", write, node))
				}
			}
		}
		return nil
	}
	decided := []maintenance.NodeDecision{w.cordonOf("one", podOne), w.cordonOf("two", podTwo)}
	r := w.manager()
	r.workers = 1

	ended := w.act(r, nil, decided...)

	if got := w.evacuatedPods(); len(got) > 0 || ended.due != atOnce {
		t.Errorf("pods %v were asked to leave and the next pass is due in %s, want none and at once: other groups may wait to cordon nodes", got, ended.due)
	}
	for i := range decided {
		decided[i].Cordon, decided[i].Events = nil, nil
	}
	w.act(r, nil, decided...)
	if len(open) > 0 {
		t.Errorf("pods were asked to leave too early: %v", open)
	}
	if diff := cmp.Diff([]string{"pod-one", "pod-two"}, w.evacuatedPods()); diff != "" {
		t.Errorf("evacuated pods (-want +got):\n%s", diff)
	}
}
