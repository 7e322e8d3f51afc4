package nodeagent_test

import (
	"testing"
	"time"

	"ebbtide.dev/ebbtide/internal/core/nodeagent"
	"ebbtide.dev/ebbtide/test/tier"
)

// Whoever drains whatever nodes: if nobody else breaks anything there is an API at all
// times, and everything is back in the end.
func TestThereIsAlwaysAnAPIServer(t *testing.T) { alwaysAnAPIServer(t, 2500, 3) }

func TestLongThereIsAlwaysAnAPIServer(t *testing.T) {
	tier.Long(t)
	alwaysAnAPIServer(t, 8000, 15)
}

// alwaysAnAPIServer takes so many steps, in which each kind is put aside so often at the least.
func alwaysAnAPIServer(t *testing.T, steps, least int) {
	t.Helper()
	for n := 1; n <= 5; n++ {
		c := newHosts(t, n, 14)
		for range steps {
			c.step(false)
			if !c.api() {
				t.Fatalf("with %d nodes: %d API servers and %d members of etcd are left", n, c.count("kube-apiserver"), c.count("etcd"))
			}
		}
		c.end()
		if n == 1 && len(c.held) > 0 || n > 1 && c.held["kube-apiserver"] < least || n > 2 && c.held["etcd"] < least || n < 3 && c.held["etcd"] > 0 {
			t.Errorf("with %d nodes were put aside: %v, after %d claims", n, c.held, c.claims)
		}
	}
}

// If others break API servers and members of etcd, no agent takes down what was, by all it
// knows, the last one; and where there is none for long, what agents keep away goes back.
func TestControlPlaneNodesLeaveOneAfterTheOther(t *testing.T) { withoutAnAPIServer(t, 3000, 5) }

func TestLongControlPlaneNodesLeaveOneAfterTheOther(t *testing.T) {
	tier.Long(t)
	withoutAnAPIServer(t, 12_000, 20)
}

// withoutAnAPIServer takes so many steps, in which so many parts come back unasked at the least.
func withoutAnAPIServer(t *testing.T, steps, least int) {
	t.Helper()
	unasked := 0
	for n := 2; n <= 5; n++ {
		c := newHosts(t, n, 90)
		for range steps {
			c.step(true)
			if c.silent == 0 || c.uptime < c.silent+patience+5*time.Minute {
				continue
			}
			for _, h := range c.all {
				if _, away := h.files[nodeagent.HeldName("etcd.yaml")]; away {
					t.Fatalf("without an API for %s etcd of %s is away", c.uptime-c.silent, h.name)
				}
			}
		}
		c.end()
		unasked += c.unasked
	}
	if unasked < least {
		t.Errorf("parts came back unasked %d times, too few to show anything", unasked)
	}
}
