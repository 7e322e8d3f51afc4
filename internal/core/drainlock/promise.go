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

// promise is the value of v1alpha1.RebootPromiseAnnotation. A node writes its own before it reads
// those of others, and may go down after that. Therefore at least one of two nodes with pods under
// one budget sees the other, whatever happened to their records and the budget.
type promise struct {
	// RecordUID identifies the record that wrote it. A promise of another record may already have
	// been acted on.
	RecordUID               string                        `json:"recordUID"`
	MaintenanceRef          v1alpha1.MaintenanceReference `json:"maintenanceRef"`
	BootID                  string                        `json:"bootID"`
	ExpectedDowntimeSeconds int32                         `json:"expectedDowntimeSeconds"`
	Time                    metav1.Time                   `json:"time"`
}

// Promised reports whether a node may be down or may go down at any moment, judged by the node
// alone.
func Promised(node *corev1.Node) bool {
	_, promised := promiseOn(node)
	return promised
}

// SamePromise reports whether two versions of a node have the same promise.
func SamePromise(a, b *corev1.Node) bool {
	return Promised(a) && Promised(b) && a.Annotations[v1alpha1.RebootPromiseAnnotation] == b.Annotations[v1alpha1.RebootPromiseAnnotation]
}

// promiseOn reads the promise on a node. An unreadable one counts as a promise at an unknown time.
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

// isPromised reports whether the node may have been told that it may go down, and is not back
// since.
func (p *planner) isPromised() bool {
	boots := p.status.Boots
	return boots != nil && boots.ReturnedTime == nil && boots.RevokedTime == nil
}

// isStillUp reports whether a promised node has not gone down yet.
func (p *planner) isStillUp() bool {
	return p.isPromised() && podclass.NodeReady(p.Node) && p.status.Boots.RebootCount == 0 && p.status.Boots.BootID == bootID(p.Node)
}

// withdraw takes back a promise that no longer stands. A client may act on it for as long as a
// reboot takes; only then is it revoked.
func (p *planner) withdraw() {
	boots := p.status.Boots
	switch now := stamp(p.Now); {
	case !p.isPromised() || p.Record.Spec.Complete:
		return
	case p.isPromisable() && !p.hasUnconfirmed():
		boots.WithdrawnTime = nil
		return
	case boots.WithdrawnTime == nil || boots.WithdrawnTime.After(stampAfter(p.Now).Time):
		boots.WithdrawnTime = &now
	}
	ends := boots.WithdrawnTime.Add(max(p.downtime(), reportSettle))
	if p.wake(ends); p.ClockSkewed || p.Now.Before(ends) || !p.isStillUp() {
		return
	}
	now := stamp(p.Now)
	boots.RevokedTime = &now
	for i := range p.status.Locks {
		p.status.Locks[i].ConfirmedTime = nil
	}
}

// adopt takes over a promise that is older than this record.
func (p *planner) adopt() {
	if on, promised := promiseOn(p.Node); promised && p.status.Boots == nil && on.RecordUID != string(p.Record.UID) {
		p.status.Boots = &v1alpha1.RecordedBoots{MaintenanceUID: on.MaintenanceRef.UID, BootID: on.BootID, Pods: p.runs(nil, true)}
	}
}

func (p *planner) isPromisable() bool {
	spec := p.Record.Spec
	return !spec.Complete && !spec.Emptying && !p.outdated && !p.hasReturned() && len(p.obstacles) == 0 && !p.isMissing()
}

func (p *planner) isCurrent(on promise) bool {
	return on.RecordUID == string(p.Record.UID) && on.MaintenanceRef.UID == p.Record.Spec.MaintenanceRef.UID &&
		on.BootID == bootID(p.Node) && !on.Time.After(p.Now.Add(clockSkew))
}

// isPromiseVisible reports whether the promise has been on the node for so long that every other
// node has seen it, and a recreated budget would have been seen. A node that is gone needs none.
func (p *planner) isPromiseVisible() bool {
	on, promised := promiseOn(p.Node)
	return p.Node == nil || promised && p.Watched && (p.isPromised() || p.isCurrent(on) && !p.Now.Before(on.Time.Add(Settle)))
}

// Wavers reports whether a promise would be withdrawn if the observed state is current. Caches may
// show a budget that counts the pods of a departed node as down beside older states of these pods.
func Wavers(s Snapshot) bool {
	s.Live = true
	p := newPlanner(s)
	p.assess()
	return p.isStillUp() && p.status.Boots.WithdrawnTime == nil &&
		slices.ContainsFunc(p.obstacles, func(o obstacle) bool { return p.confirmed(o.BudgetReference) })
}

// elsewhere returns the obstacle of another node that may be down with a pod under the budget.
func (p *planner) elsewhere(b v1alpha1.BudgetReference) (o obstacle, found bool) {
	node, found := p.Away[b.UID]
	return obstacle{
		BudgetReference: b, kind: v1alpha1.BlockerPDBLocked, ofDrain: true, away: true,
		message: fmt.Sprintf("Node %s may be down and has a pod under %s.", node, named(b)),
	}, found
}

// writePromise records on the node what it is about to be told, or was told.
func writePromise(p *planner) (Step, bool) {
	on, promised := promiseOn(p.Node)
	next := promise{
		RecordUID: string(p.Record.UID), MaintenanceRef: p.Record.Spec.MaintenanceRef, BootID: bootID(p.Node),
		ExpectedDowntimeSeconds: p.Record.Spec.InPlace.ExpectedDowntimeSeconds, Time: stamp(p.Now),
	}
	var writes bool
	switch boots := p.status.Boots; {
	case p.Node == nil, p.isRefused(p.Node.UID):
	case p.isPromised() && !promised:
		next.MaintenanceRef.UID, next.BootID = boots.MaintenanceUID, boots.BootID
		writes = !p.Record.Spec.Complete
	case !p.isPromised() || !countFor(p.Record, boots) && p.isSteady():
		writes = p.isPromisable() && !(promised && p.isCurrent(on))
	}
	// Strings, numbers and times always marshal.
	text, _ := json.Marshal(next)
	return Step{Kind: WritePromise, Node: p.Node, Promise: string(text)}, writes
}

func removePromise(p *planner) (Step, bool) {
	if !Promised(p.Node) || p.isRefused(p.Node.UID) {
		return Step{}, false
	}
	return Step{Kind: RemovePromise, Node: p.Node}, p.isRevocable()
}

// isRevocable reports whether the promise is to be removed: after the maintenance, once the status
// of every staying pod dates from after a reboot or the downtime has passed.
func (p *planner) isRevocable() bool {
	if p.isPromised() {
		return p.Record.Spec.Complete && !p.hasStale()
	}
	return !p.isPromisable()
}

func (p *planner) hasStale() bool {
	return slices.ContainsFunc(p.remaining(), func(pod *corev1.Pod) bool { return p.isStale(pod.UID) })
}

func (p *planner) promisedAt() time.Time {
	on, promised := promiseOn(p.Node)
	if !promised {
		return time.Time{}
	}
	return on.Time.Add(Settle)
}

// Remake returns the spec of a completed record for a node that bears a promise but has no record.
// Pods beyond the limits of a record are left out.
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
