package drainlock

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const (
	// maxBoots caps the recorded reboots; no maintenance expects more.
	maxBoots = 10
	// reportSettle limits how long a kubelet takes to report every pod after a boot.
	reportSettle = 2 * time.Minute
	maxBootID    = 128
)

// Returned reports whether the node is back and needs no locks.
func Returned(r *v1alpha1.DrainRecord) bool { return !ReturnedTime(r).IsZero() }

// ReturnedTime returns when the node came back. It is zero if the node is not back.
func ReturnedTime(r *v1alpha1.DrainRecord) time.Time {
	boots := r.Status.Boots
	if !countFor(r, boots) || boots.ReturnedTime == nil {
		return time.Time{}
	}
	return boots.ReturnedTime.Time
}

// countFor reports whether the boots count for the maintenance of the record.
func countFor(r *v1alpha1.DrainRecord, boots *v1alpha1.RecordedBoots) bool {
	return boots != nil && boots.RevokedTime == nil && boots.MaintenanceUID == r.Spec.MaintenanceRef.UID
}

func (p *planner) followBoots() {
	switch now := stamp(p.Now); {
	case !p.Record.Spec.Complete:
		p.status.CompleteTime = nil
	case p.status.CompleteTime == nil || p.status.CompleteTime.After(stampAfter(p.Now).Time):
		p.status.CompleteTime = &now
	}
	if p.Record.Status.Boots != nil && p.isPromised() {
		p.follow(p.status.Boots)
	}
	if p.startsCounting() {
		p.status.Boots = &v1alpha1.RecordedBoots{
			MaintenanceUID: p.Record.Spec.MaintenanceRef.UID, BootID: bootID(p.Node), Pods: p.runs(nil, true),
		}
	}
}

func (p *planner) follow(boots *v1alpha1.RecordedBoots) {
	booted := Booted(p.Record, p.Node)
	if id := bootID(p.Node); id != "" {
		boots.BootID = id
	}
	if booted {
		now := stamp(p.Now)
		boots.BootTime, boots.RebootCount = &now, min(boots.RebootCount+1, maxBoots)
	}
	boots.Pods = p.runs(boots, booted)
}

// Booted reports whether a node has booted since the record was written. A node that starts to
// report its boot ID need not have.
func Booted(r *v1alpha1.DrainRecord, node *corev1.Node) bool {
	boots, id := r.Status.Boots, bootID(node)
	return boots != nil && boots.ReturnedTime == nil && boots.BootID != "" && id != "" && id != boots.BootID
}

// startsCounting reports whether reboots count from now on, because the node was just promised that
// it may go. If another maintenance takes over a promise, a reboot that may be under way is not its
// own.
func (p *planner) startsCounting() bool {
	boots := p.status.Boots
	switch {
	case p.Record.Spec.Complete:
		return boots == nil && slices.ContainsFunc(p.Record.Status.Locks, func(lock v1alpha1.RecordedLock) bool { return lock.ConfirmedTime != nil })
	case countFor(p.Record, boots), !p.isPromisable(), p.hasUnconfirmed(), !p.isPromiseVisible():
		return false
	}
	on, promised := promiseOn(p.Node)
	return !p.isPromised() || promised && p.isCurrent(on) && p.isSteady()
}

// isSteady reports whether the node and all staying pods are ready since its last boot.
func (p *planner) isSteady() bool {
	return podclass.NodeReady(p.Node) && !slices.ContainsFunc(p.underLocks(), func(pod *corev1.Pod) bool {
		return !podclass.Ready(pod) || p.status.Boots.RebootCount > 0 && p.isStale(pod.UID)
	})
}

func (p *planner) underLocks() []*corev1.Pod {
	return p.onNode(slices.DeleteFunc(slices.Clone(p.Record.Spec.Pods), func(pod v1alpha1.StayingPod) bool { return len(pod.BudgetUIDs) == 0 }))
}

func (p *planner) remaining() []*corev1.Pod { return p.onNode(p.Record.Spec.Pods) }

// runs returns what runs in the staying pods. A pod that changed under one boot was started under
// it. What is seen together with a new boot may be older, so it only counts after another change.
func (p *planner) runs(before *v1alpha1.RecordedBoots, booted bool) []v1alpha1.RecordedPod {
	known := map[types.UID]v1alpha1.RecordedPod{}
	if before != nil {
		for _, one := range before.Pods {
			known[one.UID] = one
		}
	}
	var pods []v1alpha1.RecordedPod
	for _, pod := range p.remaining() {
		was, found := known[pod.UID]
		now := v1alpha1.RecordedPod{UID: pod.UID, Containers: Containers(pod)}
		now.Fresh = before != nil && !booted && (!found || was.Fresh || was.Containers != now.Containers)
		pods = append(pods, now)
	}
	return pods
}

// Containers returns a hash of the running containers of a pod; empty if there are none.
func Containers(pod *corev1.Pod) string {
	hash, any := sha256.New(), false
	for _, one := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if one.State.Running != nil {
			any = true
			fmt.Fprintf(hash, "%s\x00%s\x00%d\n", one.Name, one.ContainerID, one.State.Running.StartedAt.Unix())
		}
	}
	if !any {
		return ""
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}

func bootID(node *corev1.Node) string {
	if node == nil {
		return ""
	}
	id := node.Status.NodeInfo.BootID
	return id[:min(len(id), maxBootID)]
}

// isStale reports whether the status of a pod may date from before the reboot.
func (p *planner) isStale(pod types.UID) bool {
	boots := p.status.Boots
	if boots == nil || p.isMarkedBack() || !p.ClockSkewed && !p.Now.Before(p.trustTime()) {
		return false
	}
	return boots.RebootCount == 0 || !slices.ContainsFunc(boots.Pods, func(one v1alpha1.RecordedPod) bool {
		return one.UID == pod && one.Fresh
	})
}

// awaitsReports reports whether some pod is stale and only time ends that.
func (p *planner) awaitsReports() bool {
	ends := p.Record.Spec.Complete || p.status.Boots != nil && p.status.Boots.RebootCount > 0
	return ends && p.hasStale()
}

func (p *planner) isMarkedBack() bool { return p.Record.Annotations[v1alpha1.BackAnnotation] == "true" }

// trustTime returns the time from which the reported status of all pods is trusted. Without a new
// boot, a reboot that began before the maintenance was complete may still be under way.
func (p *planner) trustTime() time.Time {
	switch {
	case p.status.Boots.BootTime != nil:
		return p.status.Boots.BootTime.Add(reportSettle)
	case p.status.CompleteTime != nil:
		return p.status.CompleteTime.Add(p.downtime())
	}
	return p.Now.Add(p.downtime())
}

func (p *planner) downtime() time.Duration {
	return time.Duration(p.Record.Spec.InPlace.ExpectedDowntimeSeconds) * time.Second
}

// awaited returns the pods that stayed under a budget and are not known to be ready again.
func (p *planner) awaited(b v1alpha1.BudgetReference) []*corev1.Pod {
	return slices.DeleteFunc(p.podsUnder(b), p.isServing)
}

func (p *planner) isServing(pod *corev1.Pod) bool { return podclass.Ready(pod) && !p.isStale(pod.UID) }

// recordReturn releases the locks of a node that is back while its maintenance continues, so that
// the nodes of a pool reboot one after another.
func (p *planner) recordReturn() {
	boots := p.status.Boots
	if !countFor(p.Record, boots) || boots.ReturnedTime != nil || p.Record.Spec.Complete || !p.isBack() {
		return
	}
	now := stamp(p.Now)
	boots.ReturnedTime = &now
	p.needs, p.obstacles = nil, nil
	for i := range p.status.Locks {
		p.status.Locks[i].ConfirmedTime = nil
	}
	p.emit(event.NodeReturned(p.Record, fmt.Sprintf("Node %s is back%s. Its pods are ready and its locks are released.", p.Record.Name, p.sinceBoots())))
}

// isBack reports whether the node has rebooted as often as expected, or is annotated as back, and
// its pods are ready again.
func (p *planner) isBack() bool {
	expected := p.expectedReboots()
	rebooted := expected > 0 && p.status.Boots.RebootCount >= expected
	waits := func(pod *corev1.Pod) bool { return !p.isServing(pod) }
	return (rebooted || p.isMarkedBack()) && podclass.NodeReady(p.Node) && !slices.ContainsFunc(p.underLocks(), waits)
}

func (p *planner) hasReturned() bool {
	return countFor(p.Record, p.status.Boots) && p.status.Boots.ReturnedTime != nil
}

// expectedReboots returns the number of reboots after which the node is back; 0 is never.
func (v *view) expectedReboots() int32 {
	return ptr.Deref(v.record.Spec.InPlace.ExpectedRebootCount, 1)
}

func (p *planner) sinceBoots() string {
	switch boots := p.status.Boots; {
	case boots.RebootCount == 1:
		return " after a reboot"
	case boots.RebootCount > 1:
		return fmt.Sprintf(" after %d reboots", boots.RebootCount)
	default:
		return " (annotation " + v1alpha1.BackAnnotation + ")"
	}
}
