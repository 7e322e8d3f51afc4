package scenario

import (
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Two nodes are to be drained within seconds, and one cannot be: it takes pods again, its own stay,
// and the drained one is kept until somebody completes the maintenance.
func TestLateNodeIsGivenBackAtTheDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two")
	w.pods(nodes[0], pod{name: "web"})
	w.pods(nodes[1], pod{name: "db", neverEvicted: true})
	name := w.forgetting("kernel")

	got := w.plugin(w.ctx, "drain", nodes[0], nodes[1], "--all-at-once", "--name", name, "--deadline", "8s", "--on-deadline", "giveback")
	if got.Code != 2 || !strings.Contains(got.ErrOut, "NodeMaintenance kernel: 1 node was not drained by the deadline ") ||
		!strings.Contains(got.ErrOut, ", and was given back: two.") {
		t.Errorf("%+v", got)
	}
	w.awaitHolders(nodes[1])
	w.assertUnschedulable(nodes[1], false)
	w.awaitNoEvacuations()
	w.assertStaysCordoned(nodes[0])
	w.awaitEvent(nodes[1], v1alpha1.EventNodeGivenBack)
	w.awaitEvent("kernel", v1alpha1.EventNodeGivenBack)
	w.awaitCondition("kernel", v1alpha1.ConditionPastDeadline, "True", v1alpha1.ReasonGivenBack)
	w.tells([]string{"status", name}, "two: complete. Given back.", "Drained: one")
	w.tells([]string{"complete", name}, "NodeMaintenance kernel is complete; schedulable again: one")
	w.awaitCondition("kernel", v1alpha1.ConditionSucceeded, "False", v1alpha1.ReasonDeadlinePassed)
}

// A drain of one node that is late ends by itself.
func TestMaintenanceOfLateNodeIsComplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	w.pods(node, pod{name: "db", neverEvicted: true})
	name := w.forgetting("reboot")

	got := w.plugin(w.ctx, "drain", node, "--name", name, "--deadline", "4s", "--on-deadline", "GiveBack")
	if got.Code != 2 {
		t.Errorf("%+v", got)
	}
	w.awaitCondition("reboot", v1alpha1.ConditionSucceeded, "False", v1alpha1.ReasonDeadlinePassed)
	w.awaitHolders(node)
	w.assertUnschedulable(node, false)
	w.awaitNoEvacuations()
}
