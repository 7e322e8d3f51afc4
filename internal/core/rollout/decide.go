package rollout

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Decide decides about all rollouts, the oldest first.
func Decide(s *Snapshot) *Decision {
	f := observe(s)
	rollouts := slices.SortedFunc(slices.Values(s.Rollouts), func(a, b *v1alpha1.NodeRollout) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	all := make([]*rollout, 0, len(rollouts))
	for _, object := range rollouts {
		all = append(all, f.classify(object))
	}
	f.readBudgets()
	f.countGone()
	f.admit()
	d := &Decision{Orphans: f.orphans()}
	for _, r := range all {
		r.replace()
		r.start()
		d.Rollouts = append(d.Rollouts, r.conclude())
		d.WakeTime = earlier(d.WakeTime, r.wakeTime)
		d.NeedsLive = d.NeedsLive || r.needsLive
	}
	for _, b := range f.budgets {
		d.Budgets = append(d.Budgets, BudgetDecision{Budget: b.object, Status: b.status()})
	}
	d.ask(s, all)
	return d
}

// earlier returns the earlier of two times; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// fleet holds the facts that all rollouts share.
type fleet struct {
	*Snapshot
	// nodes are in the order of their names.
	nodes  []*node
	byName map[string]*node
	// records are by the UID of the rollout and the name of the node, the latest first.
	records map[string]map[string][]*record
	// jobsOf are the Jobs of rollouts by node.
	jobsOf  map[string][]*batchv1.Job
	budgets []*nodeBudget
	// requests are nodes that NodeMaintenances of users wait for, those of the oldest first.
	requests []request
	// gone are the nodes that others have to replace.
	gone []*unit
}

// node is a node with the decisions of rollouts about it.
type node struct {
	*corev1.Node
	ready, controlPlane bool
	// holders are the NodeMaintenances that keep it cordoned.
	holders []string
	// startedBy is the rollout that has it under maintenance, startedAs the NodeMaintenance.
	startedBy, startedAs string
	// admitted is the NodeMaintenance of a user that has it or takes it under a NodeBudget; nil without.
	admitted *v1alpha1.BudgetNode
	// pending is true if only the budgets that list admitted already list it.
	pending bool
	// budgets select it.
	budgets []*nodeBudget
	// gone is true if there is no such node any more.
	gone bool
}

// unavailable returns true if the node serves nobody, for whatever reason.
func (n *node) unavailable() bool {
	return !n.ready || n.Spec.Unschedulable || len(n.holders) > 0 || n.startedBy != "" || n.admitted != nil
}

func observe(s *Snapshot) *fleet {
	f := &fleet{Snapshot: s, byName: make(map[string]*node, len(s.Nodes)), records: map[string]map[string][]*record{}}
	for _, object := range sorted(s.Nodes, (*corev1.Node).GetName) {
		n := &node{Node: object, ready: podclass.NodeReady(object), controlPlane: podclass.IsControlPlane(object.Labels), holders: cordon.Holders(object)}
		f.nodes = append(f.nodes, n)
		f.byName[object.Name] = n
	}
	for _, m := range sorted(s.Maintenances, (*v1alpha1.NodeMaintenance).GetName) {
		r, found := readRecord(m)
		if !found {
			continue
		}
		of := f.records[r.UID]
		if of == nil {
			of = map[string][]*record{}
			f.records[r.UID] = of
		}
		of[r.node] = append(of[r.node], r)
		if n := f.byName[r.node]; n != nil && r.live() {
			n.startedBy, n.startedAs = m.Labels[v1alpha1.RolloutLabel], m.Name
		}
	}
	f.observeLedgers()
	for _, of := range f.records {
		for _, records := range of {
			slices.SortStableFunc(records, func(a, b *record) int { return cmp.Compare(b.Attempt.Attempt, a.Attempt.Attempt) })
		}
	}
	f.jobsOf = jobsByNode(s)
	return f
}

// orphans releases the records of rollouts that do not exist.
func (f *fleet) orphans() (changes []Change) {
	known := map[string]bool{}
	for _, r := range f.Rollouts {
		known[string(r.UID)] = true
	}
	for _, uid := range slices.Sorted(maps.Keys(f.records)) {
		if known[uid] {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(f.records[uid])) {
			for _, r := range f.records[uid][name] {
				changes = append(changes, r.release())
			}
		}
	}
	return changes
}
