package drainlock

import (
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const (
	// mutexDuration is how long the mutex is held at the most, unless it is taken again.
	mutexDuration = time.Minute
	// clockSkew is how far the clocks of two managers may be apart.
	clockSkew = 2 * time.Minute
)

// mutexNode is the node that holds the mutex; empty if nobody does.
func (p *pass) mutexNode() string {
	if p.Mutex == nil || p.Mutex.Spec.HolderIdentity == nil {
		return ""
	}
	_, node, _ := strings.Cut(*p.Mutex.Spec.HolderIdentity, "/")
	return node
}

func (p *pass) mutexOwn() bool { return p.mutexNode() == p.Record.Name }

// mutexEnds is when the mutex is free although somebody holds it. A time that is
// still to come is not believed, nor one that is longer than we ever ask for.
func (p *pass) mutexEnds() time.Time {
	spec := p.Mutex.Spec
	if spec.RenewTime == nil || spec.RenewTime.After(p.Now.Add(clockSkew)) {
		return p.Now
	}
	return spec.RenewTime.Add(mutexDuration)
}

// mutexFree is true if the mutex may be taken: nobody holds it, or nobody who
// still needs it.
func (p *pass) mutexFree() bool {
	if p.mutexNode() == "" || !p.Now.Before(p.mutexEnds()) {
		return true
	}
	other := p.MutexRecord
	return other == nil || other.Spec.Complete || len(other.Spec.Budgets) == 0 || Returned(other)
}

// besideMutex is true while the mutex is held by a node that asks for none of the same
// budgets. Its writes may hang, and neither can take half of what the other needs.
func (p *pass) besideMutex() bool {
	if p.mutexOwn() || p.mutexFree() {
		return false
	}
	_, shared := firstShared(p.Record, p.MutexRecord)
	return !shared
}

// mutexStale is true of our mutex if it is too old to begin another write with it.
func (p *pass) mutexStale() bool {
	return p.mutexEnds().Sub(p.Now) < mutexDuration/2
}

// mutexAs returns the mutex as it is to be: held by holder, or by nobody.
func (p *pass) mutexAs(holder string) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DrainLockMutex}}
	if p.Mutex != nil {
		lease = p.Mutex.DeepCopy()
	}
	now := metav1.NewMicroTime(p.Now)
	if holder != "" && (lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != holder) {
		var transitions int32
		if lease.Spec.LeaseTransitions != nil {
			transitions = max(*lease.Spec.LeaseTransitions, 0)
		}
		lease.Spec.LeaseTransitions = new(transitions + 1)
		lease.Spec.AcquireTime = &now
	}
	lease.Spec.HolderIdentity = &holder
	lease.Spec.LeaseDurationSeconds = new(int32(mutexDuration / time.Second))
	lease.Spec.RenewTime = &now
	return lease
}
