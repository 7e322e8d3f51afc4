package workload

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/test/step/remote"
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

// connect has an account of a namespace whose cluster says why it is disconnected, and
// gives everything back then.
func (l *ledger) connect(namespace string) (a *account, broken chan error) {
	a, broken = l.open(namespace), make(chan error, 1)
	a.onBreach(func(err error) { a.close(); broken <- err })
	return a, broken
}

// A user makes Clusters, as many as it likes, to be had in one namespace.
func TestAllClustersOfANamespaceAreBoundedTogether(t *testing.T) {
	t.Parallel()
	all := newLedger(tiny())
	accounts, broken := make([]*account, 5), make([]chan error, 5)
	for i := range accounts {
		accounts[i], broken[i] = all.connect("mallory")
		fits(t, accounts[i].take(connections, 20))
	}
	fits(t, all.open("alice").take(connections, 32), accounts[1].take(connections, 12), accounts[2].take(connections, 10))

	fits(t, accounts[3].take(connections, 7))

	const want = "the Clusters of namespace mallory have together more than 128 network connections at a time, " +
		"the bound of a namespace (4 times --remote-cluster-memory), and this one has the most"
	breached(t, <-broken[1], want)
	fits(t, accounts[3].take(connections, 4))
	breached(t, accounts[2].take(connections, 30), "the cluster has more than 32 network connections at a time, the bound of one Cluster (--remote-cluster-memory)")
	for _, a := range accounts {
		a.close()
		a.close()
	}
	if len(all.namespaces) != 1 {
		t.Errorf("%d namespaces are remembered, want 1", len(all.namespaces))
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

// A cache counts an object before it has it, and is told of its change much later. A
// cluster that has pods come, go and come back faster than that deceives nobody, and
// one whose pods come and go all day is not held to have them all.
func TestPodsThatComeAndGoAreCountedAsTheCacheHasThem(t *testing.T) {
	t.Parallel()
	a := newLedger(tiny()).open("shop")
	options := kube.CacheOptions()
	a.count(&options, func(err error) { t.Errorf("a bound is exceeded: %v", err) })
	comes := func(pod *corev1.Pod) {
		for like, by := range options.ByObject {
			if sameType(like, pod) {
				_, err := by.Transform(pod)
				fits(t, err)
			}
		}
	}
	told := func(old, now client.Object) {
		for _, w := range a.watches() {
			if sameType(w.kind, &corev1.Pod{}) {
				w.handle(types.NamespacedName{}, old, now)
			}
		}
	}
	for n := range 50 {
		comes(remote.Pod(n))
		told(nil, remote.Pod(n))
		comes(remote.Pod(n))
		told(remote.Pod(n), nil)
	}
	if want := (amounts{}); a.used != want {
		t.Errorf("counted %v when all are gone, want nothing", a.used)
	}

	comes(remote.Pod(1))
	comes(remote.Pod(1))
	comes(remote.Pod(1))
	told(nil, remote.Pod(1))
	told(remote.Pod(1), nil)
	told(nil, remote.Pod(1))
	if a.used[objects] != 1 {
		t.Errorf("counted %d objects when one is there, want 1", a.used[objects])
	}
}

// What two readers could understand in two ways is read by none: one is weighed, the
// other decoded.
func TestAnEnvelopeThatMeansTwoThingsIsRefused(t *testing.T) {
	t.Parallel()
	plain := remote.Encoded("Pod", remote.Marshalled(remote.Pod(1)))
	if e, err := unwrap(plain); err != nil || e.kind != "Pod" || e.apiVersion != "v1" || len(e.raw) == 0 {
		t.Errorf("a plain one is %+v (%v), want a Pod of v1", e, err)
	}
	for name, envelope := range map[string][]byte{
		"two objects":          append(remote.Encoded("Pod", remote.Marshalled(remote.Pod(1))), "\x12\x02\x12\x00"...),
		"two kinds":            append(remote.Encoded("Pod", remote.Marshalled(remote.Pod(1))), "\x0a\x06\x12\x04Node"...),
		"an encoding":          append(remote.Encoded("Pod", nil), "\x1a\x04gzip"...),
		"JSON inside":          append(remote.Encoded("Pod", nil), "\x22\x10application/json"...),
		"another mark":         []byte("{}"),
		"less than it says":    plain[:len(plain)-40],
		"a length beyond 2^63": append(remote.Encoded("Pod", nil), "\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"...),
	} {
		if e, err := unwrap(envelope); breachIn(err) == nil {
			t.Errorf("%s: taken as %+v (%v)", name, e, err)
		}
	}
}
