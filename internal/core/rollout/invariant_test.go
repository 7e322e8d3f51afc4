package rollout_test

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/rollout"
)

// oracle judges the starts of a decision by what the snapshot says, in its own words.
type oracle struct {
	*simulation
	view *rollout.Snapshot
	// started are the nodes of this decision so far.
	started map[string]bool
	// admitted are nodes that NodeMaintenances of users have under a NodeBudget that applies to all, or
	// get by this decision.
	admitted map[string]bool
	// unread are those whose NodeMaintenance could not be read, begun those that only some budgets list.
	unread, begun map[string]bool
	// selected caches the nodes of budgets.
	selected map[*v1alpha1.NodeBudget][]*corev1.Node
	// unknown are nodes of which it is unknown whether they were started.
	unknown map[string]bool
	// ours are the NodeMaintenances of rollouts, by node, and live those that are not finished.
	ours, live map[string][]*v1alpha1.NodeMaintenance
}

// fate is what a node is to a rollout.
type fate struct {
	node *corev1.Node
	what string // waiting, working, done, failed or skipped
	at   time.Time
	// kept is true if it is done and stays drained.
	kept   bool
	latest *v1alpha1.NodeMaintenance
}

// check checks the starts of a decision.
func (s *simulation) check(view *rollout.Snapshot, d *rollout.Decision) {
	o := &oracle{simulation: s, view: view, started: map[string]bool{}, admitted: map[string]bool{}, unread: map[string]bool{}, begun: map[string]bool{}, unknown: map[string]bool{}, ours: map[string][]*v1alpha1.NodeMaintenance{}, live: map[string][]*v1alpha1.NodeMaintenance{}}
	for _, m := range view.Maintenances {
		if m.Labels[v1alpha1.RolloutLabel] == "" {
			continue
		}
		o.ours[nodeOf(m)] = append(o.ours[nodeOf(m)], m)
		if isLive(m) {
			o.live[nodeOf(m)] = append(o.live[nodeOf(m)], m)
		}
	}
	for _, r := range view.Rollouts {
		for _, n := range view.Nodes {
			if latest := o.latest(r, n); (latest == nil || !isLive(latest)) && o.isUnread(r, n) {
				o.unknown[n.Name] = true
			}
		}
	}
	o.observeLedgers()
	o.observeAdmitted(d)
	for i := range d.Rollouts {
		o.checkRollout(&d.Rollouts[i])
	}
	o.checkLedgers(d)
	o.checkWaits()
}

func (o *oracle) checkRollout(d *rollout.RolloutDecision) {
	r := d.Rollout
	if slices.ContainsFunc(r.Spec.Windows, isInvalid) {
		o.seen.invalid++
		if reason := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionRolloutComplete).Reason; len(d.Starts) > 0 || reason != v1alpha1.ReasonInvalidSpec {
			o.t.Errorf("%s is invalid, and starts %d nodes, Complete %s", r.Name, len(d.Starts), reason)
		}
		return
	}
	if r.Status.CompletedGeneration == r.Generation && len(d.Starts) == 0 && equality.Semantic.DeepEqual(d.Status, r.Status) {
		return // It is history.
	}
	fates := o.fates(r)
	o.checkCounts(d, fates)
	if len(d.Starts) == 0 {
		return
	}
	if problem := o.forbids(r, fates); problem != "" {
		o.t.Fatalf("%s starts %d nodes, although %s", r.Name, len(d.Starts), problem)
	}
	unavailable := map[string]bool{}
	for _, f := range fates {
		if o.counts(r, f) {
			unavailable[f.node.Name] = true
		}
	}
	for _, m := range d.Starts {
		o.checkStart(r, m, fates)
		o.checkBudgets(d, m)
		o.seen.starts++
		unavailable[nodeOf(m)], o.started[nodeOf(m)] = true, true
	}
	if most := portion(r.Spec.MaxUnavailable, len(fates)); len(unavailable) > most {
		o.t.Errorf("%s: %d of %d nodes are unavailable after %d starts, at most %d may be", r.Name, len(unavailable), len(fates), len(d.Starts), most)
	}
	o.checkDomain(r, unavailable)
	o.checkCanary(r, fates, len(d.Starts))
}

// fates returns what the nodes of a rollout are to it.
func (o *oracle) fates(r *v1alpha1.NodeRollout) (fates []fate) {
	selector, err := nodeaffinity.NewNodeSelector(r.Spec.NodeSelector)
	if err != nil {
		o.t.Fatal(err)
	}
	for _, n := range o.view.Nodes {
		latest := o.latest(r, n)
		_, isControlPlane := n.Labels[controlPlaneLabel]
		included := !isControlPlane || r.Spec.ControlPlane == v1alpha1.ControlPlaneFirst || r.Spec.ControlPlane == v1alpha1.ControlPlaneLast
		if f := o.fate(r, n, latest); included && selector.Match(n) || latest != nil && isLive(latest) || f.what == "unknown" {
			fates = append(fates, f)
		}
	}
	return fates
}

func (o *oracle) latest(r *v1alpha1.NodeRollout, n *corev1.Node) (latest *v1alpha1.NodeMaintenance) {
	for _, m := range o.ours[n.Name] {
		if a := o.attempt(m); a.UID == string(r.UID) && a.NodeUID == string(n.UID) && (latest == nil || a.Attempt > o.attempt(latest).Attempt) {
			latest = m
		}
	}
	return latest
}

func (o *oracle) fate(r *v1alpha1.NodeRollout, n *corev1.Node, latest *v1alpha1.NodeMaintenance) fate {
	f := fate{node: n, what: "waiting", latest: latest}
	if (latest == nil || !isLive(latest)) && o.isUnread(r, n) {
		f.what = "unknown"
		return f
	}
	decision := v1alpha1.RolloutNodeSpec{}
	if at := slices.IndexFunc(r.Spec.Nodes, func(d v1alpha1.RolloutNodeSpec) bool { return d.Name == n.Name }); at >= 0 {
		decision = r.Spec.Nodes[at]
	}
	switch {
	case latest != nil && isLive(latest):
		o.fateOfLive(r, &f)
	case decision.Skip:
		f.what = "skipped"
	default:
		o.fateOfEnded(r, &f)
	}
	if f.what == "failed" && o.attempt(latest).Attempt <= decision.ForgivenAttemptCount {
		f.what = "waiting"
	}
	return f
}

func (o *oracle) isUnread(r *v1alpha1.NodeRollout, n *corev1.Node) bool {
	return slices.ContainsFunc(r.Status.Working, func(entry v1alpha1.RolloutNode) bool {
		return entry.Name == n.Name && o.view.Unknown[entry.NodeMaintenanceName]
	})
}

func (o *oracle) fateOfLive(r *v1alpha1.NodeRollout, f *fate) {
	f.what = "working"
	drained := meta.FindStatusCondition(f.latest.Status.Conditions, v1alpha1.ConditionDrained)
	if maintenance.Stage(f.latest) == v1alpha1.StageComplete || drained == nil || drained.Status != "True" {
		return
	}
	limit := time.Hour
	if r.Spec.Failure.WorkTimeoutSeconds != nil {
		limit = time.Duration(*r.Spec.Failure.WorkTimeoutSeconds) * time.Second
	}
	since := drained.LastTransitionTime.Time
	switch {
	case r.Spec.After == v1alpha1.AfterStayDrained:
		f.what, f.at, f.kept = "done", since, true
	case o.failsByJob(r, f):
		f.what = "failed"
	case limit > 0 && o.view.Now.Sub(since) >= limit && !o.view.ClockSkewed:
		f.what = "failed"
	}
}

func (o *oracle) fateOfEnded(r *v1alpha1.NodeRollout, f *fate) {
	how := &corev1.NodeCondition{}
	if f.latest != nil {
		if c := meta.FindStatusCondition(f.latest.Status.Conditions, v1alpha1.ConditionSucceeded); c != nil {
			how = &corev1.NodeCondition{Status: corev1.ConditionStatus(c.Status), Reason: c.Reason, LastTransitionTime: c.LastTransitionTime}
		}
	}
	succeeded := how.Status == "True" && how.Reason != v1alpha1.ReasonNotDraining
	if succeeded {
		f.at = how.LastTransitionTime.Time
	}
	returned := f.latest != nil && meta.IsStatusConditionTrue(f.latest.Status.Conditions, v1alpha1.ConditionReturned)
	switch {
	case !needs(r, f.node):
		f.what = "done"
	case f.latest == nil || !o.isFor(f.latest, r):
		f.at = time.Time{}
	case succeeded && (!completes(r) || returned):
		f.what = o.fateOfReturned(r, f)
	case !succeeded && how.Reason == v1alpha1.ReasonDeadlinePassed && o.attempt(f.latest).Try <= retries(r):
	case !succeeded && how.Reason != v1alpha1.ReasonDeadlinePassed && r.Spec.State == v1alpha1.RolloutAborted:
	default:
		f.what = "failed"
	}
}

// fateOfReturned returns the fate of a node that needs maintenance, and had it.
func (o *oracle) fateOfReturned(r *v1alpha1.NodeRollout, f *fate) string {
	asked := asks(r, f.node)
	later := asked != nil && asked.LastTransitionTime.After(f.at)
	handedOver, known := o.handedOver[f.latest.Name]
	switch {
	case r.Spec.Mode == v1alpha1.RolloutContinuous && (later || asked == nil && !hasVersion(r, f.node)):
		return "waiting"
	case asked != nil && !later && known && asked.LastHeartbeatTime.After(handedOver):
		return "failed"
	}
	return "done"
}
