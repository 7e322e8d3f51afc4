package cluster

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

// Replica is one of several managers of which one leads.
type Replica struct{ *sandbox.Manager }

// StartReplica starts another manager, which leads if no other one does. The API
// server calls the webhooks of the one that was started last. It ends with the test.
func (c *Cluster) StartReplica(t testing.TB) Replica {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), startWithin)
	defer cancel()
	manager, err := c.plane.StartManager(ctx, "--leader-elect=true")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		manager.Kill()
		if t.Failed() {
			t.Logf("the end of the log of a manager:\n%s", manager.Tail(60))
		}
	})
	return Replica{manager}
}

// Acted are the lines of its log after this many bytes that tell of something that it
// did in the cluster.
func (r Replica) Acted(t testing.TB, after int) []string {
	t.Helper()
	log := r.log(t)
	var acted []string
	for line := range strings.Lines(string(log[min(after, len(log)):])) {
		for _, act := range []string{"Asked for", "Changed the cordon", "Evicted a pod", "Let go of", "Deleted evacuations", "Withdrew"} {
			if strings.Contains(line, `msg="`+act) {
				acted = append(acted, line)
			}
		}
	}
	return acted
}

// LogSize is how many bytes its log has.
func (r Replica) LogSize(t testing.TB) int {
	t.Helper()
	return len(r.log(t))
}

// Leads returns true once it has become the leader.
func (r Replica) Leads(t testing.TB) bool {
	t.Helper()
	return bytes.Contains(r.log(t), []byte("successfully acquired lease"))
}

func (r Replica) log(t testing.TB) []byte {
	t.Helper()
	log, err := os.ReadFile(r.LogFile())
	if err != nil {
		t.Fatal(err)
	}
	return log
}
