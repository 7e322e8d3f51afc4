package maintenance

import (
	"slices"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/maintenance/announcement"
	"ebbtide.dev/ebbtide/internal/core/maintenance/status"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

type blockedPod struct {
	// index is its place among the pods of the node.
	index   int
	blocker v1alpha1.Blocker
}

func (t *targeted) block(o *outcome) {
	facts := blocker.Facts{Now: t.Now, Node: o.object, DrainStarted: o.drainStarted()}
	for i := range o.pods {
		p := &o.pods[i]
		if !o.covered[i] || !p.counted {
			continue
		}
		found, blocked := t.blockAgent(o, p)
		if !blocked {
			found, blocked = t.blockPod(o, i, facts)
		}
		if blocked {
			o.blocked = append(o.blocked, blockedPod{index: i, blocker: found})
		}
		if p.requestState == evictionrequest.Asked && evictionrequest.AwaitsAnswer(p.request) && !p.request.CreationTimestamp.IsZero() {
			o.wake(t.Now, t.Now.Add(t.Requester.Left(p.request)))
		}
		if deleted := p.object.DeletionTimestamp; deleted != nil {
			// No watch event reports that it is overdue. Deadlines have whole seconds.
			o.wake(t.Now, deleted.Add(blocker.GraceSlack+time.Second))
			o.wake(t.Now, podclass.GivenUpTime(p.object, o.object))
		}
	}
}

func (t *targeted) blockPod(o *outcome, i int, facts blocker.Facts) (v1alpha1.Blocker, bool) {
	p, due := &o.pods[i], o.due(i)
	if _, late := o.deletions[i]; late {
		if refusal, refused := t.Refused[Write{Kind: WriteDeletion, Pod: p.object.UID}]; refused {
			return blocker.DeletionRefused(p.object, refusal), true
		}
	}
	facts.Pod, facts.Evacuation, facts.Treatment = p.object, p.evacuation, *p.treatment
	if p.requestState == evictionrequest.Asked {
		facts.Request, facts.Eviction = p.request, p.eviction
	}
	if due {
		facts.Waits = t.undecidedReason(p)
	}
	if p.eviction != nil || p.evacuation != nil && len(p.evacuation.Status.Conditions) > 0 {
		// Compiling budgets takes a while, so only refused pods look for theirs.
		facts.Budgets = t.budgets.in(p.object.Namespace)
	}
	found, blocked := blocker.Of(&facts)
	if due && p.needsRequest() && (!blocked || p.object.DeletionTimestamp == nil) {
		if refusal, refused := t.Refused[Write{Kind: WriteEvacuation, Pod: p.object.UID}]; refused {
			return blocker.EvacuationRefused(p.mechanism.Kind(), p.object, refusal), true
		}
	}
	return found, blocked
}

// drainStarted returns when the drain of this node began: when the oldest Drain stage was
// recorded or, on a node that came later, when the drain was announced on it; zero if unknown.
// MaintenanceInProgress begins when all pods have left, so what comes later came back.
func (n *node) drainStarted() time.Time {
	if n.ledger == nil || len(n.ledger.Holders) == 0 {
		return time.Time{}
	}
	announced := n.drainAnnounced()
	var oldest time.Time
	for _, one := range n.drains {
		if began := one.maintenance.began; !began.IsZero() && (oldest.IsZero() || began.Before(oldest)) {
			oldest = began
		}
	}
	if oldest.After(announced) {
		return oldest
	}
	return announced
}

func (n *node) drainAnnounced() time.Time {
	if since := announcement.Since(n.object, v1alpha1.NodeMaintenanceInProgress); !since.IsZero() {
		return since
	}
	return announcement.Since(n.object, v1alpha1.NodeDrainInProgress)
}

type obstacles struct {
	// shown sums up all of them, cut to a few.
	shown []v1alpha1.Blocker
	// kinds leaves out those that are only work in progress.
	kinds []status.Obstacle
}

type concern struct{ pods, locks, cordon, writes, foreign bool }

func (o *outcome) obstaclesFor(one *selection) obstacles {
	m := one.maintenance
	of := concern{
		pods: m.stage == v1alpha1.StageDrain, locks: m.inPlace != nil,
		cordon: o.cordon.Blocker != nil && m.holds(), writes: m.stage != v1alpha1.StageIdle,
		foreign: m.holds() || m.stage == v1alpha1.StageComplete && o.cordon.Awaited,
	}
	if len(o.blocked)+len(o.refusals)+len(o.lock.Blockers)+len(o.foreign) == 0 && !of.cordon {
		return obstacles{}
	}
	pods := o.blocked
	if !of.pods {
		pods = nil
	}
	ignored := func(b blockedPod) bool { return !one.waitsFor(b.index) }
	if slices.ContainsFunc(pods, ignored) {
		return o.obstaclesOf(of, slices.DeleteFunc(slices.Clone(pods), ignored))
	}
	known, found := o.obstacles[of]
	if !found {
		known = o.obstaclesOf(of, pods)
		if o.obstacles == nil {
			o.obstacles = map[concern]obstacles{}
		}
		o.obstacles[of] = known
	}
	return known
}

func (o *outcome) obstaclesOf(of concern, pods []blockedPod) obstacles {
	blockers := make([]v1alpha1.Blocker, 0, len(pods))
	for i := range pods {
		blockers = append(blockers, pods[i].blocker)
	}
	if of.locks {
		blockers = append(blockers, o.lock.Blockers...)
	}
	if of.cordon {
		blockers = append(blockers, *o.cordon.Blocker)
	}
	if of.writes {
		blockers = append(blockers, o.refusals...)
	}
	if of.foreign {
		blockers = append(blockers, o.foreign...)
	}
	if len(blockers) == 0 {
		return obstacles{}
	}
	return obstacles{shown: blocker.Sum(blockers), kinds: status.Obstacles(blockers)}
}

func (c *conclusion) blockedPods() map[string]map[v1alpha1.BlockerType]int32 {
	blocked := map[string]map[v1alpha1.BlockerType]int32{}
	for i := range c.nodes {
		o := &c.nodes[i]
		for _, one := range o.blocked {
			if blocked[o.name()] == nil {
				blocked[o.name()] = map[v1alpha1.BlockerType]int32{}
			}
			blocked[o.name()][one.blocker.Type]++
		}
	}
	return blocked
}
