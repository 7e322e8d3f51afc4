package scenario

import (
	"regexp"
	"strings"
	"testing"
)

// At three in the morning the first command that comes to mind gives the answer.
func TestTheFirstCommandAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two")
	w.pods(nodes[0], pod{name: "web"}, pod{name: "db", neverEvicted: true})
	w.pods(nodes[1], pod{name: "api"})
	name := w.forgetting("kernel")
	w.plugin(w.ctx, "drain", nodes[0], "--name", name, "--reason", "New kernel", "--wait=false", "--as", "anna", "--as-group", "system:masters")
	w.eventually("the drain to be blocked", func() (bool, any) {
		got := w.plugin(w.ctx, "status", name)
		return got.Code == 2, got
	})

	answers := func(question string, code int, answer string, args ...string) {
		t.Helper()
		if got := w.plugin(w.ctx, args...); got.Code != code || !strings.Contains(got.Out+got.ErrOut, answer) {
			t.Errorf("%s %v answers with exit code %d, want %d and %q:\n%s%s", question, args, got.Code, code, answer, got.Out, got.ErrOut)
		}
	}
	answers("Why does the node not drain?", 0, "1 pod blocked by PodDisruptionBudget/NS/db (PDBUnsatisfiable)", "why", nodes[0])
	answers("Who requested this?", 2, "Requested by anna.", "status", name)
	answers("Who requested what holds the node?", 0, "Requested by anna.", "why", nodes[0])
	answers("Is it getting on?", 0, "blocked", "status")
	answers("How long will it take?", 2, "ETA: unknown: 1 pod is blocked.", "status", name)
	answers("What would happen?", 0, "two would be drained", "plan", nodes[1])
	answers("May this colleague drain?", 4, "you may not", "drain", nodes[1], "--dry-run=server", "--as", "bert")
	answers("Stop it.", 1, "Did you mean this?\n\tcomplete", "stop", name)
	answers("Which nodes are cordoned by us?", 0, "\nCORDONED ", "status")
	cordoned := regexp.MustCompile(`(?m)^one +20\S+Z +kernel$`)
	if got := w.plugin(w.ctx, "status", "-o", "wide"); !cordoned.MatchString(got.Out) {
		t.Errorf("Since when is the node cordoned by us? status answers %+v", got)
	}
	answers("Give the node back.", 0, "schedulable again: one", "complete", nodes[0])
	answers("What did it do?", 0, "NodeMaintenance kernel, stage Complete", "status", name)
	answers("What did it do last night?", 0, "kernel", "status", "--all")
}
