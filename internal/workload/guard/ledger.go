package guard

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// objectBytes and perByte are what an object takes in a cache: its maps and its place
	// in the indexes, and so many bytes for each that it has in protobuf.
	objectBytes, perByte = 2 << 10, 3
	// namespaceShare is how many Clusters of a namespace may take all that one may.
	namespaceShare = 4
	// decodeShare is the part of all memory that is for messages while they are decoded,
	// littleShare the part that clusters decode in without a wait, each an equal part of it.
	decodeShare, littleShare = 4, 16
)

// Ledger counts the memory that remote clusters take. It is safe for concurrent use.
type Ledger struct {
	// cluster and total are the bounds of one cluster and of all.
	cluster, total int64
	decoding       *semaphore.Weighted

	mu         sync.Mutex
	taken      int64
	namespaces map[string]int64
	accounts   map[*account]bool
}

// NewLedger returns a Ledger with the bounds of one cluster and of all in bytes.
func NewLedger(cluster, total int64) *Ledger {
	return &Ledger{
		cluster: cluster, total: total, decoding: semaphore.NewWeighted(total / decodeShare),
		namespaces: map[string]int64{}, accounts: map[*account]bool{},
	}
}

// account counts what one connection takes.
type account struct {
	ledger    *Ledger
	namespace string
	// disconnect ends the connection.
	disconnect func(error)
	// large admits one message at a time that exceeds the cluster's part of littleShare.
	large *semaphore.Weighted

	// cached and passing are the bytes of objects in caches, and of messages and lists
	// that are incomplete. little are those that are decoded without a wait.
	cached, passing, little int64
	objects                 map[cachedObject]int64
	closed                  bool
}

// cachedObject identifies an object in a cache.
type cachedObject struct {
	kind reflect.Type
	types.NamespacedName
}

func (l *Ledger) open(namespace string, disconnect func(error)) *account {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := &account{
		ledger: l, namespace: namespace, disconnect: disconnect, large: semaphore.NewWeighted(1),
		objects: map[cachedObject]int64{},
	}
	l.accounts[a] = true
	return a
}

// close gives everything back. Nothing counts afterwards.
func (a *account) close() {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	a.leave()
}

func (a *account) leave() {
	a.count(-a.cached, -a.passing)
	a.objects, a.closed = nil, true
	delete(a.ledger.accounts, a)
}

func (a *account) count(cached, passing int64) {
	a.cached += cached
	a.passing += passing
	a.ledger.taken += cached + passing
	a.ledger.namespaces[a.namespace] += cached + passing
	if a.ledger.namespaces[a.namespace] == 0 {
		delete(a.ledger.namespaces, a.namespace)
	}
}

// take counts bytes of messages and lists that are incomplete; fewer are given back.
//
// Errors: a breach.
func (a *account) take(bytes int64) error {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	return a.add(0, bytes)
}

// keep counts an object of a cache, once.
//
// Errors: a breach.
func (a *account) keep(object client.Object) error {
	size := int64(objectBytes)
	if sized, ok := object.(interface{ Size() int }); ok {
		size += perByte * int64(sized.Size())
	}
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	if a.closed {
		return nil
	}
	key := cachedObject{reflect.TypeOf(object), client.ObjectKeyFromObject(object)}
	before := a.objects[key]
	a.objects[key] = size
	return a.add(size-before, 0)
}

// drop stops counting an object.
func (a *account) drop(object client.Object) {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	key := cachedObject{reflect.TypeOf(object), client.ObjectKeyFromObject(object)}
	_ = a.add(-a.objects[key], 0)
	delete(a.objects, key)
}

// add counts, and compares with the bounds. Where clusters exceed a bound that they share,
// the largest one is disconnected, whichever asked last: no cluster can keep others out.
func (a *account) add(cached, passing int64) error {
	l := a.ledger
	if a.closed {
		return nil
	}
	a.count(cached, passing)
	switch {
	case cached+passing <= 0:
		return nil
	case a.cached > l.cluster:
		return breaks("the cluster has objects of more than %s, the bound of one Cluster (--remote-cluster-memory)", size(l.cluster))
	case a.passing > 2*l.cluster:
		return breaks("the cluster has responses and lists of more than %s under way, twice the bound of one Cluster (--remote-cluster-memory)", size(2*l.cluster))
	}
	for l.namespaces[a.namespace] > namespaceShare*l.cluster {
		why := breaks("the Clusters of namespace %s have together more than %s, the bound of a namespace (%d times --remote-cluster-memory), and this one has the most",
			a.namespace, size(namespaceShare*l.cluster), namespaceShare)
		if l.relieve(a.namespace, a, why) {
			return why
		}
	}
	for l.taken > l.total-l.total/decodeShare {
		why := breaks("all Clusters have together more than %s, the bound of the manager (--remote-clusters-memory), and this one has the most in the namespace that has the most",
			size(l.total))
		if l.relieve(l.largest(a.namespace), a, why) {
			return why
		}
	}
	return nil
}

// largest returns the namespace that takes the most.
func (l *Ledger) largest(most string) string {
	for name, bytes := range l.namespaces {
		if bytes > l.namespaces[most] {
			most = name
		}
	}
	return most
}

// relieve disconnects the cluster that takes the most in a namespace, and returns whether
// that is the one that asks. It does not wait for the end of the connection.
func (l *Ledger) relieve(namespace string, asker *account, why error) (own bool) {
	var victim *account
	for a := range l.accounts {
		switch {
		case a.namespace != namespace:
		case victim == nil, a.size() > victim.size(), a == asker && a.size() == victim.size():
			victim = a
		}
	}
	victim.leave()
	if victim != asker {
		go victim.disconnect(why) // It closes connections, which count here.
	}
	return victim == asker
}

func (a *account) size() int64 { return a.cached + a.passing }

// decode waits for a while until a message may be decoded that takes so many bytes, which
// count until the returned function is called or the context ends. A cluster that decodes
// little does not wait for others; of larger messages each decodes one at a time.
//
// Errors: there is no memory, or the context has ended.
func (a *account) decode(ctx context.Context, bytes int64, patience time.Duration) (release func(), err error) {
	if a.fits(bytes) {
		return until(ctx, func() { a.fits(-bytes) }), nil
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	all, needed := a.ledger.decoding, min(bytes, a.ledger.total/decodeShare)
	if err = a.large.Acquire(waiting, 1); err == nil {
		if err = all.Acquire(waiting, needed); err != nil {
			a.large.Release(1)
		}
	}
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("no memory to read a response of %s within %s", size(bytes), patience)
	}
	return until(ctx, func() { all.Release(needed); a.large.Release(1) }), nil
}

// fits counts bytes if they fit into the cluster's part of littleShare.
func (a *account) fits(bytes int64) bool {
	l := a.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes > 0 && !a.closed && a.little+bytes > l.total/littleShare/int64(len(l.accounts)) {
		return false
	}
	a.little += bytes
	return true
}

// until calls a function once: when the context ends, or when the returned one is called.
func until(ctx context.Context, release func()) func() {
	once := sync.OnceFunc(release)
	stop := context.AfterFunc(ctx, once)
	return func() { stop(); once() }
}

// breach is a bound that a cluster has exceeded. Nothing more is read of the cluster.
type breach struct{ text string }

func (b *breach) Error() string { return b.text }

func breaks(format string, values ...any) error { return &breach{fmt.Sprintf(format, values...)} }

// IsBreach reports whether an error comes from a bound that the cluster has exceeded.
func IsBreach(err error) bool { return breachIn(err) != nil }

// breachIn returns the breach that an error comes from; nil if there is none.
func breachIn(err error) *breach {
	var found *breach
	errors.As(err, &found)
	return found
}

// size formats a number of bytes.
func size(bytes int64) string {
	switch {
	case bytes >= 1<<20 && bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<10 && bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d bytes", bytes)
}
