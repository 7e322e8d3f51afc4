package scenario

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// replicated is a world with two managers, the first of which leads, and two nodes in
// the middle of a drain that waits for the pods held-1 and held-2.
type replicated struct {
	*world
	leader, other cluster.Replica
	nodes         []string
}

func newReplicated(t *testing.T) *replicated {
	t.Helper()
	c := cluster.Start(t, cluster.Spec{Replicas: true})
	ns := c.Namespace(t)
	r := &replicated{world: &world{t: t, ctx: context.WithoutCancel(t.Context()), client: c.Client, cluster: c, prefix: ns + "-", ns: ns}}
	r.leader = c.StartReplica(t)
	r.awaitLeads(r.leader)
	r.other = c.StartReplica(t)
	r.nodes = r.world.nodes("one", "two")
	r.pods(r.nodes[0], pod{name: "free-1"}, pod{name: "held-1", held: true})
	r.pods(r.nodes[1], pod{name: "free-2"}, pod{name: "held-2", held: true})
	r.maintain("upgrade", v1alpha1.StageDrain, r.nodes)
	r.awaitGone("free-1")
	r.awaitGone("free-2")
	return r
}

func (r *replicated) awaitLeads(one cluster.Replica) {
	r.t.Helper()
	r.eventually("a manager to lead", func() (bool, any) { return one.Leads(r.t), one.Tail(1) })
}

// ends lets the drain go on: whoever leads completes it and gives the nodes back.
func (r *replicated) ends() {
	r.t.Helper()
	r.release("held-1", "held-2")
	r.awaitDrained("upgrade")
	r.forget("upgrade")
	for _, node := range r.nodes {
		r.assertUnschedulable(node, false)
	}
	r.awaitNoEvacuations()
}

// TestSeveralManagers plays one after the other what happens to managers that share a
// lease.
func TestSeveralManagers(t *testing.T) {
	t.Parallel()
	t.Run("another one goes on where the leader was killed", goesOnAfterAKill)
	t.Run("a leader that was paused does nothing any more", doesNothingAfterAPause)
	t.Run("they are replaced one by one", areReplaced)
}

func goesOnAfterAKill(t *testing.T) {
	r := newReplicated(t)
	if status, text := r.leader.Metrics(t, r.cluster.Config.BearerToken); status != http.StatusOK || !strings.Contains(text, "ebbtide_") {
		t.Errorf("an administrator who asks for metrics is answered with status %d", status)
	}
	if status, text := r.leader.Metrics(t, "made up"); status == http.StatusOK {
		t.Errorf("somebody who asks for metrics is answered: %.100s", text)
	}
	r.leader.Kill()
	r.awaitLeads(r.other)
	r.ends()
}

// A leader is paused for longer than its lease lasts, as on a machine that is
// suspended. When it goes on another one leads, and it does nothing any more.
func doesNothingAfterAPause(t *testing.T) {
	r := newReplicated(t)
	r.must("pause the leader", r.leader.Pause())
	seen := r.leader.LogSize(t)
	r.awaitLeads(r.other)
	r.pods(r.nodes[0], pod{name: "late"})
	r.awaitGone("late")
	// Now its caches say something else than the API server does.
	r.must("let it go on", r.leader.Resume())
	select {
	case <-r.leader.Done():
	case <-time.After(30 * time.Second):
		t.Errorf("a manager that has lost its lease still runs:\n%s", r.leader.Tail(20))
	}
	if acted := r.leader.Acted(t, seen); len(acted) > 0 {
		t.Errorf("a manager that has lost its lease has acted:\n%s", acted)
	}
	r.ends()
}

// A rolling replacement asks the leader to end, and it gives its lease back at once.
func areReplaced(t *testing.T) {
	r := newReplicated(t)
	r.leader.Stop()
	r.awaitLeads(r.other)
	third := r.cluster.StartReplica(t)
	r.other.Stop()
	r.awaitLeads(third)
	r.ends()
}
