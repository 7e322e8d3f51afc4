package workload

// pool is what several clusters share. When it does not suffice, who takes the most of
// it is disconnected, whoever asks: so nobody keeps others out for ever, and who takes
// little is never disconnected for others.
type pool struct {
	bound int64
	// of is what an account takes of it; nothing if it has no part in it.
	of func(*account) int64
	// why is said to who is disconnected.
	why error
}

// neighbours share what the Clusters of a namespace may take.
func (a *account) neighbours(what int) pool {
	limits := &a.ledger.limits
	return pool{
		bound: limits.of[what] * namespaceShare,
		of: func(other *account) int64 {
			if other.namespace != a.namespace {
				return 0
			}
			return other.used[what]
		},
		why: breaks("the Clusters of namespace %s have together %s, the bound of a namespace (%d times --remote-cluster-memory), and this one has the most",
			a.namespace, limits.describe(what, namespaceShare), namespaceShare),
	}
}

// everybody shares the memory for remote clusters, counted in some way.
func (a *account) everybody(count func(*amounts) int64) pool {
	limits := &a.ledger.limits
	return pool{
		bound: limits.total, of: func(other *account) int64 { return count(&other.used) },
		why: breaks("all Clusters have together more than %s, the bound of the manager (--remote-clusters-memory), and this one has the most in the namespace that has the most",
			size(limits.total)),
	}
}

// share is what the clusters of a namespace take of a pool, and who of them the most. Who
// is being disconnected takes nothing any more.
type share struct {
	sum, most int64
	largest   *account
}

// shareOf counts what one of them wants besides; that one is the largest of equals.
func (p pool) shareOf(all *entry, asker *account, wanted int64) (s share) {
	for a := range all.accounts {
		uses := p.of(a)
		if a == asker {
			uses += wanted
		}
		if a.leaves {
			continue
		}
		s.sum += uses
		if connected := a == asker || a.broken != nil; connected && (s.largest == nil || uses > s.most || uses == s.most && a == asker) {
			s.largest, s.most = a, uses
		}
	}
	return s
}

// largest is who takes the most in the namespace that takes the most, and what all take.
func (p pool) largest(l *ledger, asker *account, wanted int64) (victim *account, sum int64) {
	var first int64
	for name, all := range l.namespaces {
		s := p.shareOf(all, asker, wanted)
		sum += s.sum
		if victim == nil || s.sum > first || s.sum == first && name == asker.namespace {
			victim, first = s.largest, s.sum
		}
	}
	return victim, sum
}

// relieve disconnects the largest until those who stay are within the bound, with what one
// wants besides. It does not wait for the end of their connections.
//
// Errors: a breach if that is who asks.
func (l *ledger) relieve(p pool, asker *account, wanted int64) error {
	for !asker.leaves {
		victim, sum := p.largest(l, asker, wanted)
		if sum <= p.bound {
			break
		}
		if victim == nil || victim == asker {
			return p.why
		}
		victim.leaves = true
		go victim.broken(p.why) // It closes connections, which are counted here.
	}
	return nil
}
