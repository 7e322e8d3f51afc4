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
	// objectBytes and perByte are the memory of an object in a cache: its maps and index
	// entries, and so many bytes for each that it has in protobuf.
	objectBytes, perByte = 2 << 10, 3
	// namespaceShare limits how many Clusters of a namespace may use their whole bound.
	namespaceShare = 4
	// decodeShare is the part of all memory in which messages are decoded, smallShare the part
	// of a cluster's memory in which it decodes without waiting for others.
	decodeShare, smallShare = 4, 1024
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
	ledger     *Ledger
	namespace  string
	disconnect func(error)
	small      *semaphore.Weighted

	// cached and passing are the bytes of objects in caches, and of small, messages and
	// incomplete lists.
	cached, passing int64
	objects         map[cachedObject]int64
	closed          bool
}

// cachedObject identifies an object in a cache.
type cachedObject struct {
	kind reflect.Type
	types.NamespacedName
}

func keyOf(object client.Object) cachedObject {
	return cachedObject{reflect.TypeOf(object), client.ObjectKeyFromObject(object)}
}

// open returns the account of a new connection, which disconnect ends.
func (l *Ledger) open(namespace string, disconnect func(error)) *account {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := &account{
		ledger: l, namespace: namespace, disconnect: disconnect,
		small: semaphore.NewWeighted(l.cluster / smallShare), objects: map[cachedObject]int64{},
	}
	a.count(0, l.cluster/smallShare)
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

// take counts bytes of messages and of incomplete lists; negative ones are given back.
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
	key := keyOf(object)
	before := a.objects[key]
	a.objects[key] = size
	return a.add(size-before, 0)
}

// drop stops counting an object.
func (a *account) drop(object client.Object) {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	key := keyOf(object)
	_ = a.add(-a.objects[key], 0)
	delete(a.objects, key)
}

// add counts, and compares with the bounds. Where clusters exceed a bound that they share,
// the largest one is disconnected, whichever grew last: no cluster can keep others out.
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
		why := breaks("the Clusters of namespace %s have together more than %s, the bound of a namespace (%d times --remote-cluster-memory), and this one is the largest",
			a.namespace, size(namespaceShare*l.cluster), namespaceShare)
		if l.disconnectLargest(a.namespace, a, why) {
			return why
		}
	}
	for l.taken > l.total-l.total/decodeShare {
		why := breaks("all Clusters have together more than %s, the bound of the manager (--remote-clusters-memory), and this one is the largest of the largest namespace",
			size(l.total))
		if l.disconnectLargest(l.largestNamespace(a.namespace), a, why) {
			return why
		}
	}
	return nil
}

// largestNamespace returns the namespace that takes the most; most wins a draw.
func (l *Ledger) largestNamespace(most string) string {
	for name, bytes := range l.namespaces {
		if bytes > l.namespaces[most] {
			most = name
		}
	}
	return most
}

// disconnectLargest disconnects the cluster that takes the most in a namespace, and reports
// whether that is the given one. It does not wait for the end of the connection.
func (l *Ledger) disconnectLargest(namespace string, own *account, why error) bool {
	var victim *account
	for a := range l.accounts {
		switch {
		case a.namespace != namespace:
		case victim == nil, a.size() > victim.size(), a == own && a.size() == victim.size():
			victim = a
		}
	}
	victim.leave()
	if victim != own {
		go victim.disconnect(why) // It closes connections, which count here.
	}
	return victim == own
}

func (a *account) size() int64 { return a.cached + a.passing }

// decode waits until a message that takes so many bytes may be decoded. They count until the
// returned function is called or the context ends. Small messages do not wait.
//
// Errors: there is no memory, or the context has ended.
func (a *account) decode(ctx context.Context, bytes int64, patience time.Duration) (release func(), err error) {
	from := a.small
	if !from.TryAcquire(bytes) {
		from, bytes = a.ledger.decoding, min(bytes, a.ledger.total/decodeShare)
		waiting, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		switch err := from.Acquire(waiting, bytes); {
		case err != nil && ctx.Err() != nil:
			return func() {}, context.Cause(ctx)
		case err != nil:
			return func() {}, fmt.Errorf("no memory to read a message of %s within %s", size(bytes), patience)
		}
	}
	once := sync.OnceFunc(func() { from.Release(bytes) })
	stop := context.AfterFunc(ctx, once)
	return func() { stop(); once() }, nil
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
