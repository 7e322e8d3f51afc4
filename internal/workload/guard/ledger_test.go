package guard

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebbtide.dev/ebbtide/test/step/remote"
)

// connect opens an account whose cluster says why it is disconnected.
func connect(l *Ledger, namespace string) (a *account, broken chan error) {
	broken = make(chan error, 1)
	return l.open(namespace, func(err error) { broken <- err }), broken
}

func fits(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Errorf("got %v, want that it fits", err)
		}
	}
}

func exceeds(t *testing.T, err error, flag string) {
	t.Helper()
	if !IsBreach(err) || !strings.Contains(err.Error(), flag) {
		t.Errorf("got %v, want a breach of %s", err, flag)
	}
}

func stays(t *testing.T, name string, broken chan error) {
	t.Helper()
	select {
	case err := <-broken:
		t.Errorf("%s is disconnected: %v", name, err)
	default:
	}
}

func TestClusterThatExceedsItsOwnBoundIsDisconnected(t *testing.T) {
	t.Parallel()
	l := NewLedger(3*objectBytes, 1<<30)
	lists, _ := connect(l, "shop")
	fits(t, lists.take(6*objectBytes-3*objectBytes/smallShare))
	exceeds(t, lists.take(1), "--remote-cluster-memory")
	objects, _ := connect(l, "shop")
	fits(t, objects.keep(remote.Pod(1)), objects.keep(remote.Pod(2)))
	exceeds(t, objects.keep(remote.Pod(3)), "--remote-cluster-memory")
}

// A user may make as many Clusters as there is room for in a namespace.
func TestLargestClusterOfANamespaceMakesRoom(t *testing.T) {
	t.Parallel()
	l := NewLedger(100, 1<<30)
	large, broken := connect(l, "mallory")
	small, told := connect(l, "mallory")
	other, heard := connect(l, "alice")
	fits(t, other.take(200), large.take(200), small.take(150))
	for range 3 {
		a, _ := connect(l, "mallory")
		fits(t, a.take(40))
	}
	exceeds(t, <-broken, "4 times --remote-cluster-memory")
	stays(t, "a smaller one", told)
	stays(t, "one of another namespace", heard)
}

// Clusters in many namespaces may take all memory that there is.
func TestLargestClusterOfAllMakesRoom(t *testing.T) {
	t.Parallel()
	l := NewLedger(100, 400)
	small, heard := connect(l, "mallory")
	large, broken := connect(l, "mallory")
	alice, told := connect(l, "alice")
	fits(t, alice.take(120), small.take(60), large.take(110))

	fits(t, alice.take(20))

	exceeds(t, <-broken, "--remote-clusters-memory")
	stays(t, "alice, who has less than mallory", told)
	fits(t, small.take(90))
	stays(t, "a smaller one", heard)
	exceeds(t, alice.take(60), "--remote-clusters-memory")
}

func TestNothingCountsAfterTheConnection(t *testing.T) {
	t.Parallel()
	l := NewLedger(1<<20, 1<<20)
	a, _ := connect(l, "shop")
	fits(t, a.take(7), a.keep(remote.Pod(1)))
	a.close()
	a.close()
	fits(t, a.take(1<<30), a.keep(remote.Pod(2)))
	a.drop(remote.Pod(1))
	if _, err := a.decode(t.Context(), 1<<19, time.Second); err != nil || l.taken != 0 || len(l.namespaces)+len(l.accounts) > 0 {
		t.Errorf("%+v still counts (%v)", l, err)
	}
}

// A cache counts an object before it has it, and hears of its change much later.
func TestObjectsThatComeAndGoCountOnce(t *testing.T) {
	t.Parallel()
	a, _ := connect(NewLedger(1<<20, 1<<30), "shop")
	g := &Guard{account: a}
	for range 50 {
		g.Keep(remote.Pod(1))
		g.Keep(remote.Pod(1))
		g.Follow(nil, remote.Pod(1))
		g.Keep(remote.Pod(1))
		g.Follow(remote.Pod(1), nil)
		g.Follow(nil, remote.Pod(1))
	}
	if a.cached < objectBytes || a.cached > 2*objectBytes {
		t.Errorf("%d bytes count, want one object", a.cached)
	}
	g.Follow(remote.Pod(1), nil)
	if a.cached != 0 {
		t.Errorf("%d bytes count when the object is gone, want none", a.cached)
	}
}

// Large messages wait for each other; a cluster that decodes little waits for no other.
func TestClusterThatDecodesLittleDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewLedger(100*smallShare, 6400)
		decode := func(a *account, bytes int64) (release func(), answer chan error) {
			answer = make(chan error, 1)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				_, err := a.decode(ctx, bytes, time.Minute)
				answer <- err
			}()
			synctest.Wait()
			return cancel, answer
		}
		hungry, _ := connect(l, "one")
		more, _ := connect(l, "two")
		modest, _ := connect(l, "three")
		release, first := decode(hungry, 1<<20)
		fits(t, <-first)
		_, second := decode(hungry, 1000)
		_, third := decode(more, 1000)
		stays(t, "a second message of a cluster", second)
		stays(t, "a large message of another cluster", third)

		_, little := decode(modest, 100)
		fits(t, <-little)

		release()
		synctest.Wait()
		fits(t, <-second)
		stays(t, "a large message, while another one takes 1000 of 1600", third)
		time.Sleep(time.Minute)
		if err := <-third; err == nil || IsBreach(err) {
			t.Errorf("after a minute: %v, want an error that is no breach", err)
		}
	})
}
