package workload

import (
	"context"
	"errors"
	"slices"
	"time"
)

var errEnded = errors.New("the connection to the cluster has ended")

// request is for memory that is needed before something is decoded.
type request struct {
	account *account
	what    int
	amount  int64
	// answered has the answer; nil if the memory may be taken, and is counted.
	answered chan error
}

// reserve waits until there is memory for what is about to be decoded, and counts it.
// Who shares a bound is served in the order of the requests.
//
// Errors: a breach, also if that takes longer than a request may; the end of the context
// or of the connection.
func (a *account) reserve(ctx context.Context, what int, amount int64) error {
	r := &request{account: a, what: what, amount: amount, answered: make(chan error, 1)}
	a.ledger.ask(r)
	select {
	case err := <-r.answered:
		return err
	default:
	}
	late := time.NewTimer(a.ledger.limits.time)
	defer late.Stop()
	var err error
	select {
	case err = <-r.answered:
		return err
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-late.C:
		err = breaks("the cluster has waited %s for memory to read a response of %s", a.ledger.limits.time, size(amount))
	}
	a.ledger.withdraw(r)
	return err
}

func (l *ledger) ask(r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := r.account
	most := l.limits.of[r.what]
	if r.what == listed {
		most -= a.used[listed] // Nothing of it goes before the list is complete.
	}
	if r.amount > most {
		r.answered <- a.tooMuch(r.what)
		return
	}
	l.waiting = append(l.waiting, r)
	l.grant()
}

// withdraw undoes a request, whether it was answered meanwhile or not.
func (l *ledger) withdraw(r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = slices.DeleteFunc(l.waiting, func(other *request) bool { return other == r })
	select {
	case err := <-r.answered:
		if err == nil && !r.account.closed {
			r.account.change(r.what, -r.amount)
		}
	default:
	}
	l.grant()
}

// grant answers whom it can, in order: who waits for a bound that it shares goes before
// all who came later and share it, but holds up nobody else.
func (l *ledger) grant() {
	if len(l.waiting) == 0 {
		return
	}
	full := map[string]bool{} // namespaces; the empty one stands for all
	l.waiting = slices.DeleteFunc(l.waiting, func(r *request) bool {
		granted, err := l.consider(r, full)
		if granted || err != nil {
			r.answered <- err
		}
		return granted || err != nil
	})
}

// consider counts what is asked for if there is room. A cluster that takes little does not
// wait for others.
//
// Errors: there will be none.
func (l *ledger) consider(r *request, full map[string]bool) (granted bool, err error) {
	a, limits := r.account, &l.limits
	switch {
	case a.closed, a.leaves:
		return false, errEnded
	case a.used[r.what]+r.amount > limits.of[r.what]:
		return false, nil
	case a.used.bytes()+r.amount <= limits.total/littleShare/l.accounts:
	case full[a.namespace], full[""]:
		return false, nil
	case l.namespaces[a.namespace].amounts[r.what]+r.amount > limits.of[r.what]*namespaceShare:
		full[a.namespace] = true
		if r.what != listed {
			return false, nil // It gets free in a moment.
		}
		return false, l.relieve(a.neighbours(listed), a, r.amount)
	case l.all.bytes()+r.amount > limits.total:
		full[""] = true
		return false, l.relieve(a.everybody((*amounts).steady), a, r.amount)
	}
	a.change(r.what, r.amount)
	return true, nil
}
