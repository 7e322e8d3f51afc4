package workload

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"
)

// DefaultRemoteMemory is how many bytes of memory one remote cluster may take if
// nothing else is said: enough for 100,000 pods.
const DefaultRemoteMemory = 256 << 20

const (
	// objectBytes is the least that an object counts in a cache: its maps, its
	// place in the indexes.
	objectBytes = 2 << 10
	// namespaceShare is how many Clusters of a namespace may take all that one may.
	namespaceShare = 4
)

// limits are what one cluster may cost. All Clusters of a namespace may together
// cost namespaceShare times as much.
type limits struct {
	// response is how many bytes a response may have, object those of one object.
	// A response with an error has errorText, anything else of it is not read.
	response, object, errorText int64
	// weight is how many bytes of memory may become of a response.
	weight int64
	// list is how many bytes of memory all pages of one list may take.
	list int64
	// page is how many objects one page is asked for, pages how many pages there
	// may be in a list.
	page, pages int64
	// headers is how many bytes the headers of a response may have.
	headers int64
	// time is how long a request may take, and one event of a watch.
	time time.Duration
	// events is how many events a second a watch may have; more wait. An event counts
	// as one for each eventBytes.
	events float32
	// of are the limits of what is in use at a time.
	of amounts
}

const eventBytes = 16 << 10

// amounts are what is in use at a time.
type amounts [4]int64

// What is counted of a cluster.
const (
	// objects are in its caches, and so are stored bytes.
	objects = iota
	stored
	// transit are bytes of responses that are being read.
	transit
	// connections are those of its network.
	connections
)

// limitsFor are those for a cluster that may take so many bytes of memory.
func limitsFor(memory int64) limits {
	memory = cmp.Or(memory, DefaultRemoteMemory)
	return limits{
		response: 8 << 20, object: 4 << 20, errorText: 64 << 10, weight: 32 << 20, list: 2 * memory,
		page: 100, pages: memory / objectBytes / 50, headers: 64 << 10,
		time: requestTimeout, events: 5000,
		of: amounts{objects: memory / objectBytes, stored: memory, transit: memory / 2, connections: 32},
	}
}

// breach is a bound that a cluster has exceeded: no more is read of it.
type breach struct{ text string }

func (b *breach) Error() string { return b.text }

func breaks(format string, values ...any) error { return &breach{fmt.Sprintf(format, values...)} }

// breachIn is the breach that an error comes of; nil if there is none.
func breachIn(err error) *breach {
	var found *breach
	errors.As(err, &found)
	return found
}

// size writes a number of bytes for people.
func size(bytes int64) string {
	switch {
	case bytes >= 1<<20 && bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<10 && bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// describe says what a bound is about.
func (l *limits) describe(what int, times int64) string {
	switch bound := l.of[what] * times; what {
	case objects:
		return fmt.Sprintf("more than %d objects", bound)
	case stored:
		return "objects of more than " + size(bound)
	case transit:
		return "responses of more than " + size(bound) + " at a time"
	default:
		return fmt.Sprintf("more than %d network connections at a time", bound)
	}
}

// ledger sums up what the remote clusters cost, by namespace. It is safe for
// concurrent use.
type ledger struct {
	limits limits

	mu         sync.Mutex
	namespaces map[string]*entry
}

// entry is what the clusters of a namespace have in use.
type entry struct {
	amounts  amounts
	accounts int
}

func newLedger(limits limits) *ledger {
	return &ledger{limits: limits, namespaces: map[string]*entry{}}
}

// account is what one connection to a cluster has in use. It is safe for
// concurrent use.
type account struct {
	ledger    *ledger
	namespace string
	// Under the lock of the ledger:
	used   amounts
	kept   map[uint64]int64
	closed bool
}

// open begins to count for a connection of a Cluster in a namespace.
func (l *ledger) open(namespace string) *account {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.namespaces[namespace] == nil {
		l.namespaces[namespace] = &entry{}
	}
	l.namespaces[namespace].accounts++
	return &account{ledger: l, namespace: namespace, kept: map[uint64]int64{}}
}

// close gives everything back.
func (a *account) close() {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	if a.closed {
		return
	}
	a.closed = true
	all := a.ledger.namespaces[a.namespace]
	for what, used := range a.used {
		all.amounts[what] -= used
	}
	if all.accounts--; all.accounts == 0 {
		delete(a.ledger.namespaces, a.namespace)
	}
	a.kept = nil
}

// take counts what comes into use. It is counted also if that is too much.
//
// Errors: a breach.
func (a *account) take(what int, amount int64) error {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	return a.add(what, amount)
}

func (a *account) give(what int, amount int64) { _ = a.take(what, -amount) }

func (a *account) add(what int, amount int64) error {
	if a.closed {
		return nil
	}
	limits, all := &a.ledger.limits, a.ledger.namespaces[a.namespace]
	a.used[what] += amount
	all.amounts[what] += amount
	switch {
	case amount <= 0:
	case a.used[what] > limits.of[what]:
		return breaks("the cluster has %s, the bound of one Cluster (--remote-cluster-memory)", limits.describe(what, 1))
	case all.amounts[what] > limits.of[what]*namespaceShare:
		return breaks("the Clusters of namespace %s have together %s, the bound of a namespace (%d times --remote-cluster-memory)",
			a.namespace, limits.describe(what, namespaceShare), namespaceShare)
	}
	return nil
}

// keep counts an object of a cache, once.
//
// Errors: a breach.
func (a *account) keep(key uint64, bytes int64) error {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	if a.closed {
		return nil
	}
	before, known := a.kept[key]
	a.kept[key] = bytes
	if !known {
		if err := a.add(objects, 1); err != nil {
			return err
		}
	}
	return a.add(stored, bytes-before)
}

// drop counts an object no more.
func (a *account) drop(key uint64) {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	if before, known := a.kept[key]; known {
		delete(a.kept, key)
		_, _ = a.add(objects, -1), a.add(stored, -before)
	}
}
