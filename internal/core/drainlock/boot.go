package drainlock

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const (
	// maxBoots is up to how many reboots are counted; no maintenance expects more.
	maxBoots = 10
	// reportSettle is how long after a kubelet has reported a boot it may take to report
	// every pod: usually a second or two.
	reportSettle = 2 * time.Minute
	// maxBootID is how many characters of a boot ID are recorded.
	maxBootID = 128
)

// Returned reports whether the node is back from the reboots that the maintenance of
// its record expects, so that it needs no locks any more.
func Returned(r *v1alpha1.DrainRecord) bool { return !ReturnedTime(r).IsZero() }

// ReturnedTime is since when it is; zero if it is not.
func ReturnedTime(r *v1alpha1.DrainRecord) time.Time {
	boots := r.Status.Boots
	if !countFor(r, boots) || boots.ReturnedTime == nil {
		return time.Time{}
	}
	return boots.ReturnedTime.Time
}

// countFor reports whether reboots are those for the maintenance of a record: not for an
// earlier one, and something was promised.
func countFor(r *v1alpha1.DrainRecord, boots *v1alpha1.RecordedBoots) bool {
	return boots != nil && boots.RevokedTime == nil && boots.MaintenanceUID == r.Spec.MaintenanceRef.UID
}

// followBoots brings the recorded reboots to what the node and its pods show.
func (p *pass) followBoots() {
	switch now := stamp(p.Now); {
	case !p.Record.Spec.Complete:
		p.status.CompleteTime = nil
	case p.status.CompleteTime == nil || p.status.CompleteTime.After(stampAfter(p.Now).Time):
		p.status.CompleteTime = &now
	}
	if p.Record.Status.Boots != nil && p.told() {
		p.follow(p.status.Boots)
	}
	if p.begins() {
		p.status.Boots = &v1alpha1.RecordedBoots{
			MaintenanceUID: p.Record.Spec.MaintenanceRef.UID, BootID: bootID(p.Node), Pods: p.runs(nil, true),
		}
	}
}

func (p *pass) follow(boots *v1alpha1.RecordedBoots) {
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

// Booted reports whether a node has booted since the record has last heard of it. One
// that begins to report its boot need not have.
func Booted(r *v1alpha1.DrainRecord, node *corev1.Node) bool {
	boots, id := r.Status.Boots, bootID(node)
	return boots != nil && boots.ReturnedTime == nil && boots.BootID != "" && id != "" && id != boots.BootID
}

// begins is true if reboots count from now on: the node was just promised that it may
// go. Where another maintenance takes over what was promised, the reboot that is
// perhaps under way is followed to its end, and is not its own.
func (p *pass) begins() bool {
	sure := func(locks []v1alpha1.RecordedLock) bool {
		return slices.ContainsFunc(locks, func(lock v1alpha1.RecordedLock) bool { return lock.ConfirmedTime != nil })
	}
	boots := p.status.Boots
	switch {
	case p.Record.Spec.Complete:
		return boots == nil && sure(p.Record.Status.Locks)
	case countFor(p.Record, boots), !p.promisable(), p.unconfirmed(), !p.vouched():
		return false
	}
	on, promised := promiseOn(p.Node)
	return !p.told() || promised && p.fresh(on) && p.steady()
}

// steady is true while the node is not on its way: it and all pods that stay are
// ready, and that is known of the last boot that was seen.
func (p *pass) steady() bool {
	return NodeReady(p.Node) && !slices.ContainsFunc(p.underLocks(), func(pod *corev1.Pod) bool {
		return !podclass.Ready(pod) || p.status.Boots.RebootCount > 0 && p.stale(pod.UID)
	})
}

// underLocks are the pods that stay under budgets and are on the node.
func (p *pass) underLocks() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, one := range p.Record.Spec.Pods {
		if pod := p.pods[one.UID]; pod != nil && !podclass.Terminal(pod) && len(one.BudgetUIDs) > 0 {
			pods = append(pods, pod)
		}
	}
	return pods
}

// remaining are the pods that stay and are on the node.
func (p *pass) remaining() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, one := range p.Record.Spec.Pods {
		if pod := p.pods[one.UID]; pod != nil && !podclass.Terminal(pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// runs is what runs in the pods that stay. What has changed under one boot, or was
// not there before, has started under it. What is seen together with a new boot may
// be from before it: nothing counts that has not changed since.
func (p *pass) runs(before *v1alpha1.RecordedBoots, booted bool) []v1alpha1.RecordedPod {
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

// Containers is a hash of the containers that run in a pod; empty if none is known to.
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

// bootID is the boot that a node reports; empty if it reports none.
func bootID(node *corev1.Node) string {
	if node == nil {
		return ""
	}
	id := node.Status.NodeInfo.BootID
	return id[:min(len(id), maxBootID)]
}

// NodeReady is true of a node that says so.
func NodeReady(node *corev1.Node) bool {
	return node != nil && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// stale is true of a pod that may look ready only because nobody has reported since
// the node went.
func (p *pass) stale(pod types.UID) bool {
	believed := !p.ClockSkewed && p.status.Boots != nil && !p.Now.Before(p.believedTime())
	if p.status.Boots == nil || p.saidBack() || believed {
		return false
	}
	return p.status.Boots.RebootCount == 0 || !slices.ContainsFunc(p.status.Boots.Pods, func(one v1alpha1.RecordedPod) bool {
		return one.UID == pod && one.Fresh
	})
}

// awaitsReports is true while some pod is stale, and time alone ends that.
func (p *pass) awaitsReports() bool {
	passes := p.Record.Spec.Complete || p.status.Boots != nil && p.status.Boots.RebootCount > 0
	return passes && p.anyStale()
}

// saidBack is true if somebody who knows says that the node is back.
func (p *pass) saidBack() bool { return p.Record.Annotations[v1alpha1.BackAnnotation] == "true" }

// believedTime is from when on what is said of all pods is believed, however they look.
// Without a new boot the node may still be on its way, until a reboot that had begun
// before the maintenance was complete is over.
func (p *pass) believedTime() time.Time {
	switch {
	case p.status.Boots.BootTime != nil:
		return p.status.Boots.BootTime.Add(reportSettle)
	case p.status.CompleteTime != nil:
		return p.status.CompleteTime.Add(p.downtime())
	}
	return p.Now.Add(p.downtime())
}

func (p *pass) downtime() time.Duration {
	return time.Duration(p.Record.Spec.InPlace.ExpectedDowntimeSeconds) * time.Second
}

// awaited are the pods that stayed under a budget and are not known to be ready again.
func (p *pass) awaited(b v1alpha1.BudgetReference) []*corev1.Pod {
	return slices.DeleteFunc(p.there(b), p.serves)
}

// serves is true of a pod that is known to be ready since the node was on its way.
func (p *pass) serves(pod *corev1.Pod) bool { return podclass.Ready(pod) && !p.stale(pod.UID) }

// comeBack gives the locks of a node that is back to others, though its maintenance
// goes on: one of several nodes reboots them one after the other.
func (p *pass) comeBack() {
	boots := p.status.Boots
	if !countFor(p.Record, boots) || boots.ReturnedTime != nil || p.Record.Spec.Complete || !p.back() {
		return
	}
	now := stamp(p.Now)
	boots.ReturnedTime = &now
	p.needs, p.obstacles = nil, nil
	for i := range p.status.Locks {
		p.status.Locks[i].ConfirmedTime = nil
	}
	p.emit(event.NodeReturned(p.Record, fmt.Sprintf("Node %s is back%s: its pods are ready, and it holds no locks.", p.Record.Name, p.sinceBoots())))
}

// back is true of a node that has rebooted as often as is expected, or of which
// somebody says that it is back, and whose pods are ready again.
func (p *pass) back() bool {
	expected := p.expectedReboots()
	rebooted := expected > 0 && p.status.Boots.RebootCount >= expected
	waits := func(pod *corev1.Pod) bool { return !p.serves(pod) }
	return (rebooted || p.saidBack()) && NodeReady(p.Node) && !slices.ContainsFunc(p.underLocks(), waits)
}

// returned is true if the node is back, as it will be recorded.
func (p *pass) returned() bool {
	return countFor(p.Record, p.status.Boots) && p.status.Boots.ReturnedTime != nil
}

// expectedReboots is after how many reboots the node is back; 0 is never.
func (v *view) expectedReboots() int32 {
	if expected := v.record.Spec.InPlace.ExpectedRebootCount; expected != nil {
		return *expected
	}
	return 1
}

// sinceBoots says why a node is back.
func (p *pass) sinceBoots() string {
	switch boots := p.status.Boots; {
	case boots.RebootCount == 1:
		return " after a reboot"
	case boots.RebootCount > 1:
		return fmt.Sprintf(" after %d reboots", boots.RebootCount)
	default:
		return ", as annotation " + v1alpha1.BackAnnotation + " says"
	}
}
