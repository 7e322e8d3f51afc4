package workload

import (
	"testing"
)

// tiny are limits of a cluster that may take 20 KiB.
func tiny() limits { return limitsFor(10 * objectBytes) }

func breached(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want || breachIn(err) == nil {
		t.Errorf("got %v, want the breach %q", err, want)
	}
}

func fits(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Errorf("got %v, want that it fits", err)
		}
	}
}

// A user makes Clusters, as many as it likes, to be had in one namespace.
func TestAllClustersOfANamespaceAreBoundedTogether(t *testing.T) {
	t.Parallel()
	all := newLedger(tiny())
	accounts := make([]*account, 5)
	for i := range accounts {
		accounts[i] = all.open("mallory")
	}
	for _, a := range accounts[:4] {
		fits(t, a.take(connections, 32))
	}

	breached(t, accounts[4].take(connections, 1), "the Clusters of namespace mallory have together more than 128 network connections at a time, "+
		"the bound of a namespace (4 times --remote-cluster-memory)")

	fits(t, all.open("alice").take(connections, 32))
	accounts[4].close()
	accounts[0].close()
	fits(t, all.open("mallory").take(connections, 32))
	if len(all.namespaces) != 2 {
		t.Errorf("%d namespaces are remembered, want 2", len(all.namespaces))
	}
	for _, a := range accounts {
		a.close()
		a.close()
	}
}

func TestANamespaceWithoutConnectionsIsForgotten(t *testing.T) {
	t.Parallel()
	all := newLedger(tiny())
	a := all.open("shop")
	fits(t, a.take(transit, 7), a.keep(1, 5))
	a.close()
	a.give(transit, 7)
	fits(t, a.keep(2, 1<<40), a.take(objects, 1<<40))
	a.drop(1)
	if len(all.namespaces) > 0 {
		t.Errorf("namespaces %v are remembered, want none", all.namespaces)
	}
}

// Objects come, grow, go and come back under their names.
func TestWhatACacheHoldsIsCountedOnce(t *testing.T) {
	t.Parallel()
	a := newLedger(tiny()).open("shop")
	for range 3 {
		fits(t, a.keep(1, objectBytes), a.keep(2, objectBytes), a.keep(1, 5*objectBytes))
		a.drop(2)
		a.drop(2)
		fits(t, a.keep(2, objectBytes))
	}
	if want := (amounts{objects: 2, stored: 6 * objectBytes}); a.used != want {
		t.Errorf("counted %v, want %v", a.used, want)
	}
	breached(t, a.keep(1, 10*objectBytes), "the cluster has objects of more than 20 KiB, the bound of one Cluster (--remote-cluster-memory)")
	b := newLedger(tiny()).open("shop")
	for key := range uint64(10) {
		fits(t, b.keep(key, 1))
	}
	breached(t, b.keep(10, 1), "the cluster has more than 10 objects, the bound of one Cluster (--remote-cluster-memory)")
}
