package workload

import "sync"

// ledger sums up what the remote clusters cost, each, by namespace and all together. It
// is safe for concurrent use.
type ledger struct {
	limits limits

	mu         sync.Mutex
	namespaces map[string]*entry
	all        amounts
	accounts   int64
	// waiting are requests for memory in the order in which they came.
	waiting []*request
}

// entry is what the clusters of a namespace have in use.
type entry struct {
	amounts  amounts
	accounts map[*account]bool
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
	// leaves is true if the cluster is being disconnected.
	leaves bool
	// broken disconnects the cluster; nil before it is connected.
	broken func(error)
}

// open begins to count for a connection of a Cluster in a namespace.
func (l *ledger) open(namespace string) *account {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.namespaces[namespace] == nil {
		l.namespaces[namespace] = &entry{accounts: map[*account]bool{}}
	}
	a := &account{ledger: l, namespace: namespace, kept: map[uint64]int64{}}
	l.namespaces[namespace].accounts[a] = true
	l.accounts++
	return a
}

// onBreach has the cluster disconnected when it has to leave room for others.
func (a *account) onBreach(broken func(error)) {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	a.broken = broken
}

// close gives everything back.
func (a *account) close() {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	if a.closed {
		return
	}
	for what, used := range a.used {
		a.change(what, -used)
	}
	a.closed = true
	a.ledger.accounts--
	all := a.ledger.namespaces[a.namespace]
	if delete(all.accounts, a); len(all.accounts) == 0 {
		delete(a.ledger.namespaces, a.namespace)
	}
	a.kept = nil
	a.ledger.grant()
}

// change counts without a look at any bound.
func (a *account) change(what int, amount int64) {
	a.used[what] += amount
	a.ledger.namespaces[a.namespace].amounts[what] += amount
	a.ledger.all[what] += amount
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
	a.change(what, amount)
	if amount <= 0 {
		a.ledger.grant()
		return nil
	}
	l := a.ledger
	most := l.limits.of[what]
	if a.used[what] > most {
		return a.tooMuch(what)
	}
	if l.namespaces[a.namespace].amounts[what] > most*namespaceShare {
		if err := l.relieve(a.neighbours(what), a, 0); err != nil {
			return err
		}
	}
	if l.all.bytes() > l.limits.total {
		return l.relieve(a.everybody((*amounts).bytes), a, 0)
	}
	return nil
}

func (a *account) tooMuch(what int) error {
	return breaks("the cluster has %s, the bound of one Cluster (--remote-cluster-memory)", a.ledger.limits.describe(what, 1))
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
