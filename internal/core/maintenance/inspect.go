package maintenance

import (
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
)

// NodeVerdict holds what a decision means for a node to one of its maintenances.
type NodeVerdict struct {
	Name string
	// Read is true if the pods of the node are known.
	Read bool
	// Pods holds those that have not finished, in no order.
	Pods               []PodVerdict
	Targets            []v1alpha1.DrainPlanEntry
	Blockers, Retained []v1alpha1.Blocker
	Explanation
	// Waves completes the message of the explanation if later waves wait.
	Waves string
	Relation
	// Others are the other maintenances of the node that are not complete, oldest first.
	Others []Neighbour
	// Emptied is true if nothing is left that the maintenance waits for.
	Emptied bool
}

// Relation relates a maintenance in Drain to the others of a node.
type Relation struct {
	// Limiter and ForwardedBy name maintenances that delay or advance the target; empty if none
	// does.
	Limiter, ForwardedBy string
}

// Neighbour is another maintenance of a node.
type Neighbour struct {
	Name  string
	Stage v1alpha1.NodeMaintenanceStage
	Relation
}

// PodVerdict holds what a decision means for a pod to one of the maintenances of its node.
type PodVerdict struct {
	// Pod has no UID if it stands in for a static pod that only its agent reports.
	Pod *corev1.Pod
	// Counted is true if the maintenance waits for the pod, Covered if it leaves now.
	Counted, Covered bool
	Treatment        drainrule.Treatment
	// Retained is nil if the maintenance waits for it.
	Retained *v1alpha1.Blocker
	// Blocker is nil if nothing blocks it.
	Blocker *v1alpha1.Blocker
}

// Inspect returns the Decision and its verdict on each node of a valid maintenance in Drain.
func Inspect(snapshot Snapshot, name string) (Decision, []NodeVerdict) {
	c := conclude(snapshot)
	var verdicts []NodeVerdict
	for _, m := range c.maintenances {
		if m.name() != name || m.stage != v1alpha1.StageDrain {
			continue
		}
		for _, one := range m.selections {
			verdicts = append(verdicts, c.verdict(one))
		}
	}
	return c.decision(), verdicts
}

func (c *conclusion) verdict(one *selection) NodeVerdict {
	o := &c.nodes[one.node.index]
	v := NodeVerdict{
		Name: o.name(), Read: o.read, Pods: make([]PodVerdict, len(o.pods)), Explanation: c.explain(o, one), Waves: o.waveText(),
		Targets: o.target.shown.Full.Lines, Blockers: o.obstaclesFor(one).shown, Retained: o.retainedBy(one),
		Relation: o.relation(one), Emptied: o.emptied(one),
	}
	for _, other := range o.selections {
		if m := other.maintenance; other != one && m.stage != v1alpha1.StageComplete {
			v.Others = append(v.Others, Neighbour{m.name(), m.stage, o.relation(other)})
		}
	}
	for i := range o.pods {
		p := &o.pods[i]
		v.Pods[i] = PodVerdict{Pod: p.object, Counted: one.waitsFor(i), Covered: o.covered[i], Treatment: *p.treatment}
		if !v.Pods[i].Counted {
			retained := o.retain(retention{why: one.maintenance.whyRetained(p), example: p})
			v.Pods[i].Retained = &retained
		}
	}
	for i := range o.blocked {
		v.Pods[o.blocked[i].index].Blocker = &o.blocked[i].blocker
	}
	return v
}

func (o *outcome) relation(one *selection) Relation {
	if one.maintenance.stage != v1alpha1.StageDrain {
		return Relation{}
	}
	progress := &o.progress[one.place]
	r := Relation{ForwardedBy: progress.ForwardedBy}
	if progress.Limiter != nil && progress.Limiter.Age != one.maintenance.age {
		r.Limiter = progress.Limiter.Name
	}
	return r
}
