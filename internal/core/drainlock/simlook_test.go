package drainlock_test

import (
	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
)

func (w *world) look(r *v1alpha1.DrainRecord) drainlock.Snapshot {
	s := drainlock.Snapshot{Now: w.now.Add(w.skew), Record: r, Busy: w.busy(), Node: w.hosts.seen()[r.Name]}
	s.Live = drainlock.Booted(r, s.Node) || drainlock.NeedsLive(r, s.Now)
	w.lookAround(&s)
	if !s.Live && drainlock.Wavers(s) {
		s.Live, s.Budgets = true, nil
		w.lookAround(&s)
	}
	if s.Watched = drainlock.SamePromise(s.Node, w.hosts.seen()[r.Name]); w.flaw != selfish {
		s.Away = w.away(s)
	}
	if s.Mutex = w.mutex.seen()[v1alpha1.DrainLockMutex]; s.Mutex != nil {
		s.MutexRecord = w.records.seen()[nodeOf(s.Mutex)]
	}
	return s
}

func (w *world) lookAround(s *drainlock.Snapshot) {
	budgets, pods := w.budgets.seen(), w.pods.seen()
	if s.Live {
		s.Node = w.hosts.now[s.Record.Name]
	}
	if s.Live && w.flaw != deadCache {
		budgets, pods = w.budgets.now, w.pods.now
	}
	for _, b := range w.all(budgets) {
		if drainlock.Concerns(s.Record, b) {
			s.Budgets = append(s.Budgets, b)
		}
	}
	s.Pods = on(pods, s.Record.Name)
}
