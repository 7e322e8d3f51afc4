package maintenance

import (
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/foreigndrain"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/maintenance/drainrecord"
	"ebbtide.dev/ebbtide/internal/core/maintenance/handover"
	"ebbtide.dev/ebbtide/internal/core/maintenance/status"
)

// Decide decides about maintenances and their nodes. It needs every maintenance that shares a
// node with one of them, directly or through others.
func Decide(snapshot Snapshot) Decision { return conclude(snapshot).decision() }

// conclude reads the snapshot, sets the targets of nodes by the plans, and decides about each node.
func conclude(snapshot Snapshot) *conclusion {
	t := target(read(snapshot))
	c := &conclusion{
		targeted: t, nodes: make([]outcome, len(t.nodes)),
		waiting: map[[2]int]Explanation{}, planned: map[string]*status.Targets{},
	}
	for i := range t.nodes {
		c.nodes[i] = t.decideNode(&t.nodes[i])
	}
	return c
}

// decideNode decides about a node. Each step uses the results of those before it.
func (t *targeted) decideNode(n *targetedNode) outcome {
	o := outcome{targetedNode: n}
	for _, m := range n.waits {
		o.wake(t.Now, t.blockedFrom(m))
		if m.completeWhen != nil {
			o.wake(t.Now, t.handOver(m, n.node, false).Verdict.WakeTime)
		}
	}
	o.deletions = t.dueDeletions(&o)
	t.block(&o)
	t.checkAgent(&o)
	o.lock = t.lockOf(&o)
	t.decideHandOver(&o)
	o.cordon = t.cordonOf(&o)
	if b, found := foreigndrain.Blocker(o.object, o.cordon.Awaited); found {
		o.foreign = []v1alpha1.Blocker{b}
	}
	o.wake(t.Now, o.cordon.Calm)
	if !o.unclear {
		t.withdraw(&o)
	}
	t.blockRefused(&o)
	return o
}

// decision puts together what is done and what is reported.
func (c *conclusion) decision() Decision {
	d := Decision{
		Maintenances: make([]MaintenanceDecision, 0, len(c.maintenances)), Blocked: c.blockedPods(), RequeueAfter: c.requeueAfter(),
	}
	for _, m := range c.maintenances {
		d.Maintenances = append(d.Maintenances, c.maintenanceDecision(m))
	}
	for i := range c.nodes {
		if c.nodes[i].hold != nil {
			d.Waiting = append(d.Waiting, c.nodes[i].name())
		}
		if node, any := c.nodeDecision(&c.nodes[i]); any {
			d.Nodes = append(d.Nodes, node)
		}
	}
	return d
}

// conclusion holds what is done to every node.
type conclusion struct {
	*targeted
	// nodes shadows targeted.nodes, in the same order.
	nodes []outcome
	// waiting caches explanations by the ages of the limiting and the waiting maintenance.
	waiting map[[2]int]Explanation
	// planned caches the targets of maintenances in Idle, by their text.
	planned                          map[string]*status.Targets
	deletionEvents, unansweredEvents int
}

type outcome struct {
	*targetedNode
	cordon cordon.Decision
	lock   drainrecord.Decision
	// handovers are by drain, handedOverTo the names of the maintenances that have the node.
	handovers    []handover.Decision
	handedOverTo []string
	// deletions are the pods that are deleted for a deadline, by index.
	deletions map[int]dueDeletion
	blocked   []blockedPod
	// refusals are refused writes for the node, and an agent that does not bring pods back.
	refusals    []v1alpha1.Blocker
	agentEvents []event.Event
	foreign     []v1alpha1.Blocker
	// withdrawals and withdrawRequests are no longer wanted or not answered; forbidden are the
	// Evacuations that must not be withdrawn.
	withdrawals      []*v1alpha1.Evacuation
	withdrawRequests []RequestWithdrawal
	forbidden        []string
	// wakeTime is the time at which time alone changes the outcome; zero is never.
	wakeTime time.Time
	// obstacles caches those of maintenances that wait for all pods.
	obstacles map[concern]obstacles
}

func (o *outcome) wake(now, at time.Time) {
	if at.After(now) && (o.wakeTime.IsZero() || at.Before(o.wakeTime)) {
		o.wakeTime = at
	}
}

func (c *conclusion) requeueAfter() time.Duration {
	var all outcome
	for i := range c.nodes {
		all.wake(c.Now, c.nodes[i].wakeTime)
	}
	for _, refusal := range c.Refused {
		all.wake(c.Now, refusal.Again)
	}
	if all.wakeTime.IsZero() {
		return 0
	}
	return all.wakeTime.Sub(c.Now)
}

// drained reports whether the node is emptied, cordoned and, if needed, handed over.
func (o *outcome) drained(one *selection) bool {
	return o.emptied(one) && o.object.Spec.Unschedulable && !o.awaitsHandOver(one)
}

// emptied returns true if no pod has to leave and, if the maintenance is in place, no lock is
// missing. A node that is back for one maintenance has no locks for another one.
func (o *outcome) emptied(one *selection) bool {
	locked := o.lock.Complete && (o.lock.Returned.IsZero() || one.maintenance == o.inPlace)
	return o.read && one.counted() == 0 && (one.maintenance.inPlace == nil || locked)
}

func (o *outcome) back(one *selection) bool {
	return !o.lock.Returned.IsZero() && one.maintenance == o.inPlace && o.emptied(one)
}
