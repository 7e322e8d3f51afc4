package drainlock

import (
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const (
	// mutexDuration limits how long the mutex is held without a renewal.
	mutexDuration = time.Minute
	clockSkew     = 2 * time.Minute
)

func (p *planner) mutexNode() string {
	if p.Mutex == nil {
		return ""
	}
	_, node, _ := strings.Cut(ptr.Deref(p.Mutex.Spec.HolderIdentity, ""), "/")
	return node
}

func (p *planner) mutexOwn() bool { return p.mutexNode() == p.Record.Name }

// mutexEnds returns when the mutex expires. A renew time in the future is not trusted, nor is a
// duration longer than ours.
func (p *planner) mutexEnds() time.Time {
	spec := p.Mutex.Spec
	if spec.RenewTime == nil || spec.RenewTime.After(p.Now.Add(clockSkew)) {
		return p.Now
	}
	return spec.RenewTime.Add(mutexDuration)
}

func (p *planner) mutexFree() bool {
	if p.mutexNode() == "" || !p.Now.Before(p.mutexEnds()) {
		return true
	}
	other := p.MutexRecord
	return other == nil || other.Spec.Complete || len(other.Spec.Budgets) == 0 || Returned(other)
}

// besideMutex reports whether the holder of the mutex shares no budget with this node. Then neither
// can take half of what the other needs, even if writes of the holder hang.
func (p *planner) besideMutex() bool {
	if p.mutexOwn() || p.mutexFree() {
		return false
	}
	_, shared := firstShared(p.Record, p.MutexRecord)
	return !shared
}

func (p *planner) mutexStale() bool {
	return p.mutexEnds().Sub(p.Now) < mutexDuration/2
}

func (p *planner) mutexAs(holder string) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DrainLockMutex}}
	if p.Mutex != nil {
		lease = p.Mutex.DeepCopy()
	}
	now := metav1.NewMicroTime(p.Now)
	if holder != "" && ptr.Deref(lease.Spec.HolderIdentity, "") != holder {
		lease.Spec.LeaseTransitions = new(max(ptr.Deref(lease.Spec.LeaseTransitions, 0), 0) + 1)
		lease.Spec.AcquireTime = &now
	}
	lease.Spec.HolderIdentity = &holder
	lease.Spec.LeaseDurationSeconds = new(int32(mutexDuration / time.Second))
	lease.Spec.RenewTime = &now
	return lease
}
