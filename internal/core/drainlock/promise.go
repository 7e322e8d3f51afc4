package drainlock

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// promise is the value of v1alpha1.RebootPromiseAnnotation. Each node writes its own
// before it looks at those of others, and is told that it may go down after that. So of
// two nodes with pods under one budget at least one sees the other, whatever has become
// of their records and of the budget.
type promise struct {
	// RecordUID is that of the record by which it was written. By any other record the
	// node may have been told already.
	RecordUID string `json:"recordUID"`
	// MaintenanceRef is the maintenance for which the reboot counts.
	MaintenanceRef v1alpha1.MaintenanceReference `json:"maintenanceRef"`
	// BootID is the boot after which another one is a reboot.
	BootID string `json:"bootID"`
	// ExpectedDowntimeSeconds is that of the maintenance.
	ExpectedDowntimeSeconds int32 `json:"expectedDowntimeSeconds"`
	// Time is when it was written.
	Time metav1.Time `json:"time"`
}

// Promised reports whether a node may be away, or may go at any moment, for all that the
// node itself shows.
func Promised(node *corev1.Node) bool {
	_, promised := promiseOn(node)
	return promised
}

// SamePromise reports whether two views of a node show the same promise.
func SamePromise(a, b *corev1.Node) bool {
	return Promised(a) && Promised(b) && a.Annotations[v1alpha1.RebootPromiseAnnotation] == b.Annotations[v1alpha1.RebootPromiseAnnotation]
}

// promiseOn reads the promise on a node. One that cannot be read is one of nobody knows when.
func promiseOn(node *corev1.Node) (one promise, promised bool) {
	if node == nil {
		return promise{}, false
	}
	text, promised := node.Annotations[v1alpha1.RebootPromiseAnnotation]
	if json.Unmarshal([]byte(text), &one) != nil {
		return promise{}, promised
	}
	one.BootID = one.BootID[:min(len(one.BootID), maxBootID)]
	return one, promised
}

// told is true from when the node may have been told that it may go down until it is back,
// or does not go any more.
func (p *pass) told() bool {
	boots := p.status.Boots
	return boots != nil && boots.ReturnedTime == nil && boots.RevokedTime == nil
}

// here is true of a node that was told and has not gone, for all that is seen.
func (p *pass) here() bool {
	return p.told() && NodeReady(p.Node) && p.status.Boots.RebootCount == 0 && p.status.Boots.BootID == bootID(p.Node)
}

// withdraw takes a promise back that does not stand. Whoever has seen it may act on it for
// as long as a reboot takes: only then the node is one that was told nothing.
func (p *pass) withdraw() {
	boots := p.status.Boots
	switch now := stamp(p.Now); {
	case !p.told() || p.Record.Spec.Complete:
		return
	case p.promisable() && !p.unconfirmed():
		boots.WithdrawnTime = nil
		return
	case boots.WithdrawnTime == nil || boots.WithdrawnTime.After(stampAfter(p.Now).Time):
		boots.WithdrawnTime = &now
	}
	ends := boots.WithdrawnTime.Add(max(p.downtime(), reportSettle))
	if p.wake(ends); p.ClockSkewed || p.Now.Before(ends) || !p.here() {
		return
	}
	now := stamp(p.Now)
	boots.RevokedTime = &now
	for i := range p.status.Locks {
		p.status.Locks[i].ConfirmedTime = nil
	}
}

// adopt takes over a promise that was made before there was this record.
func (p *pass) adopt() {
	if on, promised := promiseOn(p.Node); promised && p.status.Boots == nil && on.RecordUID != string(p.Record.UID) {
		p.status.Boots = &v1alpha1.RecordedBoots{MaintenanceUID: on.MaintenanceRef.UID, BootID: on.BootID, Pods: p.runs(nil, true)}
	}
}

// promisable is true while nothing but time is in the way of the promise.
func (p *pass) promisable() bool {
	spec := p.Record.Spec
	return !spec.Complete && !spec.Emptying && !p.outdated && !p.returned() && len(p.obstacles) == 0 && !p.missing()
}

// fresh is true of a promise that was written for this maintenance and for what the node
// is now.
func (p *pass) fresh(on promise) bool {
	return on.RecordUID == string(p.Record.UID) && on.MaintenanceRef.UID == p.Record.Spec.MaintenanceRef.UID &&
		on.BootID == bootID(p.Node) && !on.Time.After(p.Now.Add(clockSkew))
}

// vouched is true if the promise is on the node for so long that no other node can have
// missed it, and a budget that was made anew would have been seen. A node that is gone
// goes nowhere.
func (p *pass) vouched() bool {
	on, promised := promiseOn(p.Node)
	return p.Node == nil || promised && p.Watched && (p.told() || p.fresh(on) && !p.Now.Before(on.Time.Add(Settle)))
}

// Wavers reports whether a promise would be taken back if what was seen is so. Caches may
// show a budget by which the pods of a node that has just gone are down, and these pods as
// they were before.
func Wavers(s Snapshot) bool {
	s.Live = true
	p := newPass(s)
	p.weigh()
	return p.here() && p.status.Boots.WithdrawnTime == nil &&
		slices.ContainsFunc(p.obstacles, func(o obstacle) bool { return p.confirmed(o.BudgetReference) })
}

// elsewhere is in the way of a lock while another node that may be away has a pod under
// the budget.
func (p *pass) elsewhere(b v1alpha1.BudgetReference) (o obstacle, found bool) {
	node, found := p.Away[b.UID]
	return obstacle{
		BudgetReference: b, kind: v1alpha1.BlockerPDBLocked, turn: true, away: true,
		message: fmt.Sprintf("Node %s may be away, and has a pod under %s.", node, named(b)),
	}, found
}

// writePromise records on the node what it is about to be told, or was told.
func writePromise(p *pass) (Step, bool) {
	on, promised := promiseOn(p.Node)
	next := promise{
		RecordUID: string(p.Record.UID), MaintenanceRef: p.Record.Spec.MaintenanceRef, BootID: bootID(p.Node),
		ExpectedDowntimeSeconds: p.Record.Spec.InPlace.ExpectedDowntimeSeconds, Time: stamp(p.Now),
	}
	var writes bool
	switch boots := p.status.Boots; {
	case p.Node == nil, p.refused(p.Node.UID):
	case p.told() && !promised:
		next.MaintenanceRef.UID, next.BootID = boots.MaintenanceUID, boots.BootID
		writes = !p.Record.Spec.Complete
	case !p.told() || !countFor(p.Record, boots) && p.steady():
		writes = p.promisable() && !(promised && p.fresh(on))
	}
	// Strings, numbers and times always marshal.
	text, _ := json.Marshal(next)
	return Step{Kind: WritePromise, Node: p.Node, Promise: string(text)}, writes
}

// removePromise takes it from a node that is back, or that was not told.
func removePromise(p *pass) (Step, bool) {
	if !Promised(p.Node) || p.refused(p.Node.UID) {
		return Step{}, false
	}
	return Step{Kind: RemovePromise, Node: p.Node}, p.revocable()
}

// revocable is true if the promise has to go. After the maintenance it goes when what is
// said of every pod that stayed is from after a reboot, or the downtime has passed.
func (p *pass) revocable() bool {
	if p.told() {
		return p.Record.Spec.Complete && !p.anyStale()
	}
	return !p.promisable()
}

func (p *pass) anyStale() bool {
	return slices.ContainsFunc(p.remaining(), func(pod *corev1.Pod) bool { return p.stale(pod.UID) })
}

// promisedAt is when the promise on the node has been there for long enough.
func (p *pass) promisedAt() time.Time {
	on, promised := promiseOn(p.Node)
	if !promised {
		return time.Time{}
	}
	return on.Time.Add(Settle)
}

// Remake returns the spec of a record for a node that bears a promise and has none any
// more: that of a maintenance that is over, until one that goes on takes over. Pods beyond
// what a record holds are left out.
func Remake(node *corev1.Node, pods []*corev1.Pod, budgets []*policyv1.PodDisruptionBudget) v1alpha1.DrainRecordSpec {
	on, _ := promiseOn(node)
	need := Need{Maintenance: &v1alpha1.NodeMaintenance{Spec: v1alpha1.NodeMaintenanceSpec{
		InPlace: &v1alpha1.InPlace{ExpectedDowntimeSeconds: min(max(on.ExpectedDowntimeSeconds, 1), 3600)},
	}}, Budgets: budgets}
	compiled, named := budget.Compile(budgets), map[v1alpha1.BudgetReference]bool{}
	for _, pod := range pods {
		applying := compiled.Applying(pod)
		if stays, _ := podclass.OnUpgrade(pod); !stays || podclass.Terminal(pod) || len(applying) > MaxBudgetsOfPod ||
			len(need.Staying) == MaxPods || len(named)+len(applying) > MaxBudgets {
			continue
		}
		need.Staying = append(need.Staying, pod)
		for _, b := range applying {
			named[ReferenceTo(b)] = true
		}
	}
	spec := Needs(need)
	if spec.MaintenanceRef = on.MaintenanceRef; spec.MaintenanceRef.Name == "" {
		spec.MaintenanceRef.Name = "unknown"
	}
	spec.Complete = true
	return spec
}
