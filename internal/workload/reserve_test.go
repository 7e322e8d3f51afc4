package workload

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// scarce are limits of a manager that has 100 bytes for all, and 60 for each cluster.
func scarce() limits {
	l := limitsFor(60)
	l.total, l.time = 100, 30*time.Second
	l.of[decoded], l.of[listed] = 60, 60
	return l
}

// asks reserves in the background, until it is answered or that is stopped.
func (a *account) asks(what int, amount int64) (answer chan error, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	answer = make(chan error, 1)
	go func() { answer <- a.reserve(ctx, what, amount) }()
	synctest.Wait()
	return answer, cancel
}

func waits(t *testing.T, who string, answer chan error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-answer:
		t.Errorf("%s was answered %v, want it to wait", who, err)
	default:
	}
}

func granted(t *testing.T, who string, answer chan error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-answer:
		fits(t, err)
	default:
		t.Errorf("%s still waits", who)
	}
}

// Many Clusters, in as many namespaces, take all memory that there is. Who takes the most
// makes room for who takes little, whoever asks last.
func TestWhoTakesTheMostMakesRoom(t *testing.T) {
	t.Parallel()
	const want = "all Clusters have together more than 100 bytes, the bound of the manager (--remote-clusters-memory), and this one has the most in the namespace that has the most"
	all := newLedger(scarce())
	small, _ := all.connect("mallory")
	large, broken := all.connect("mallory")
	alice, told := all.connect("alice")
	fits(t, alice.take(stored, 30), small.take(stored, 10), large.take(stored, 40))

	fits(t, alice.take(stored, 5), small.take(stored, 16))

	breached(t, <-broken, want)
	fits(t, alice.take(stored, 10), small.take(stored, 20))
	select {
	case err := <-told:
		t.Errorf("alice, who has less than mallory, is disconnected: %v", err)
	default:
	}
	breached(t, alice.take(stored, 10), want)
}

// Who asks is the one that goes if it takes the most itself.
func TestWhoAsksForTheMostIsRefused(t *testing.T) {
	t.Parallel()
	all := newLedger(scarce())
	for _, namespace := range []string{"one", "two"} {
		a, _ := all.connect(namespace)
		fits(t, a.take(stored, 30))
	}
	hungry, _ := all.connect("three")
	fits(t, hungry.take(stored, 10))
	breached(t, hungry.reserve(t.Context(), listed, 55),
		"all Clusters have together more than 100 bytes, the bound of the manager (--remote-clusters-memory), and this one has the most in the namespace that has the most")
}

func TestMemoryIsGrantedInTheOrderOfRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newLedger(scarce())
		first, _ := all.connect("one")
		second, _ := all.connect("two")
		third, _ := all.connect("three")
		fits(t, first.reserve(t.Context(), decoded, 60))

		large, _ := second.asks(decoded, 50)
		small, _ := third.asks(decoded, 40)
		more, _ := first.asks(decoded, 20)
		waits(t, "the second, for which there is no room", large)
		waits(t, "the third, which came later", small)

		first.give(decoded, 60)
		granted(t, "the second", large)
		granted(t, "the third", small)
		waits(t, "the first, which has had its turn", more)
		third.give(decoded, 40)
		granted(t, "the first", more)
		if got := all.all[decoded]; got != 70 {
			t.Errorf("%d bytes are counted, want 70", got)
		}
	})
}

// A cluster that takes little is read while others fill the memory of all.
func TestWhoTakesLittleDoesNotWaitForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newLedger(scarce())
		for _, namespace := range []string{"one", "two"} {
			hungry, _ := all.connect(namespace)
			fits(t, hungry.reserve(t.Context(), decoded, 49))
		}
		large, _ := all.connect("three")
		first, stop := large.asks(decoded, 50)
		defer stop()
		waits(t, "a cluster for which there is no room", first)

		small, _ := all.connect("four")
		fits(t, small.reserve(t.Context(), decoded, 1))
		second, stop := small.asks(decoded, 1)
		defer stop()
		waits(t, "a cluster that has its quarter of a sixteenth", second)
	})
}

// What waits for its own cluster, or its own namespace, holds up nobody else.
func TestOnesOwnBoundHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := scarce()
		limits.total = 1000
		all := newLedger(limits)
		greedy, _ := all.connect("mallory")
		fits(t, greedy.reserve(t.Context(), decoded, 50))
		own, _ := greedy.asks(decoded, 20)
		waits(t, "who has 50 of 60 already", own)
		neighbour, _ := all.connect("mallory")
		fits(t, neighbour.reserve(t.Context(), decoded, 60))

		for range 3 {
			a, _ := all.connect("mallory")
			filled, _ := a.asks(decoded, 43)
			granted(t, "a neighbour", filled)
		}
		last, _ := all.connect("mallory")
		namespace, _ := last.asks(decoded, 12)
		waits(t, "who is in a namespace that has 239 of 240", namespace)
		alice, _ := all.connect("alice")
		fits(t, alice.reserve(t.Context(), decoded, 60))
		neighbour.close()
		granted(t, "who waited for its namespace", namespace)
		waits(t, "who waits for itself", own)
		greedy.give(decoded, 30)
		granted(t, "who waited for itself", own)
	})
}

func TestNobodyWaitsForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newLedger(scarce())
		busy, _ := all.connect("one")
		fits(t, busy.reserve(t.Context(), decoded, 60))
		a, _ := all.connect("two")
		breached(t, a.reserve(t.Context(), decoded, 61), "the cluster has responses that take more than 60 bytes of memory at a time, the bound of one Cluster (--remote-cluster-memory)")
		begin := time.Now()
		breached(t, a.reserve(t.Context(), decoded, 50), "the cluster has waited 30s for memory to read a response of 50 bytes")
		if took := time.Since(begin); took != 30*time.Second {
			t.Errorf("waited %s, want 30s", took)
		}

		stopped, stop := a.asks(decoded, 50)
		stop()
		if err := <-stopped; !errors.Is(err, context.Canceled) {
			t.Errorf("who was stopped is answered %v", err)
		}
		ended, _ := a.asks(decoded, 50)
		a.close()
		if err := <-ended; !errors.Is(err, errEnded) {
			t.Errorf("who has ended is answered %v", err)
		}
		if len(all.waiting) > 0 || all.all[decoded] != 60 {
			t.Errorf("%d wait and %d bytes are counted, want none and 60", len(all.waiting), all.all[decoded])
		}
	})
}

// A list is kept until it is complete: it waits for nothing of its own.
func TestAListThatGetsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	all := newLedger(scarce())
	a, _ := all.connect("one")
	fits(t, a.reserve(t.Context(), listed, 40))
	breached(t, a.reserve(t.Context(), listed, 30), "the cluster has lists that take more than 60 bytes of memory, the bound of one Cluster (--remote-cluster-memory)")
}
