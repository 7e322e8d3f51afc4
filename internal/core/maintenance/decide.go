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

// Decide decides about maintenances and their nodes. It needs every maintenance
// that shares a node with one of them, directly or through others.
func Decide(snapshot Snapshot) Decision { return conclude(snapshot).decision() }

// conclude decides what is done to every node: the snapshot is read, then the plans say which
// pods leave each node, then each node is decided about.
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

// decideNode decides about a node. Each step goes by what those before it have decided.
func (t *targeted) decideNode(n *targetedNode) outcome {
	o := outcome{targetedNode: n}
	o.deletions = t.dueDeletions(&o)
	t.block(&o)
	t.missAgent(&o)
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
	t.refuse(&o)
	return o
}

// decision puts together what is done and what is said.
func (c *conclusion) decision() Decision {
	d := Decision{
		Maintenances: make([]MaintenanceDecision, 0, len(c.maintenances)), Blocked: c.blockedPods(), RequeueAfter: c.requeueAfter(),
	}
	for _, m := range c.maintenances {
		d.Maintenances = append(d.Maintenances, c.maintenanceDecision(m))
	}
	for i := range c.nodes {
		if node, any := c.nodeDecision(&c.nodes[i]); any {
			d.Nodes = append(d.Nodes, node)
		}
	}
	return d
}

// conclusion is what is done to every node, and what follows for what is said.
type conclusion struct {
	*targeted
	// nodes are in the order of targeted.nodes, which they hide.
	nodes []outcome
	// waiting is what is said of nodes that are waited for, by which maintenance waits for
	// them and to which one it is said.
	waiting map[[2]int]Explanation
	// planned are the targets of maintenances in Idle, by what they are written as.
	planned map[string]*status.Targets
	// told is how many deletions have an event of their own.
	told int
	// unansweredTold is how many EvictionRequests that nobody answers have one.
	unansweredTold int
}

// outcome is what is done to a node.
type outcome struct {
	*targetedNode
	cordon cordon.Decision
	lock   drainrecord.Decision
	// handings are by drain how far the node is handed over, handedOverTo the names of the
	// maintenances that have it.
	handings     []handover.Decision
	handedOverTo []string
	// deletions are the pods that are deleted because a deadline has come, by their places.
	deletions map[int]dueDeletion
	// blocked are the pods that have to leave and that something holds.
	blocked []blockedPod
	// refusals are the writes for the node that are refused, as blockers, and an agent
	// that does not bring pods back.
	refusals []v1alpha1.Blocker
	// missed tells of an agent that is silent.
	missed []event.Event
	// foreign says who else drains the node; empty if nobody does.
	foreign []v1alpha1.Blocker
	// withdraw are the Evacuations that nobody asks for any more, forbidden those of
	// them whose evacuator does not let us.
	withdraw  []*v1alpha1.Evacuation
	forbidden []string
	// withdrawRequests are our EvictionRequests that nobody asks for any more, or that
	// nobody answers.
	withdrawRequests []RequestWithdrawal
	// wakeTime is when time alone changes the outcome; zero is never.
	wakeTime time.Time
	// obstacles are those of maintenances that wait for all pods.
	obstacles map[concern]obstacles
}

// wake has the outcome be decided again at a time.
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

// drained returns true if nothing is left on the node, for all that is known, and
// nothing new can come: a node that still takes pods is not drained. Nor is one that has
// to be handed over first.
func (o *outcome) drained(one *selection) bool {
	return o.emptied(one) && o.object.Spec.Unschedulable && !o.awaitsHandOver(one)
}

// emptied returns true if nothing is left, for all that is known: no pod that has to
// leave and, if the maintenance is in place, no lock that is missing. A node that is
// back for one maintenance has no locks for another one.
func (o *outcome) emptied(one *selection) bool {
	locked := o.lock.Complete && (o.lock.Returned.IsZero() || one.maintenance == o.inPlace)
	return o.read && one.counted() == 0 && (one.maintenance.inPlace == nil || locked)
}

// back returns true if the node has done what the maintenance has drained it for.
func (o *outcome) back(one *selection) bool {
	return !o.lock.Returned.IsZero() && one.maintenance == o.inPlace && o.emptied(one)
}
