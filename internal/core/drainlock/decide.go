package drainlock

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Decide returns the next step for the locks of the node of the record.
func Decide(s Snapshot) Decision {
	if s.Record == nil {
		return Decision{}
	}
	p := newPlanner(s)
	p.adopt()
	p.assess()
	p.confirm()
	p.followBoots()
	p.recordReturn()
	p.withdraw()
	p.report()
	p.act()
	p.wait()
	if !equality.Semantic.DeepEqual(s.Record.Status, p.status) {
		p.decision.Status = &p.status
	}
	return p.decision
}

func (p *planner) assess() {
	p.updateLocks()
	p.yieldToAhead()
	p.takeBack()
	p.updateTimeoutStart()
	p.giveUp()
	p.dropOutdated()
	p.dropUnconfirmed()
}

type planner struct {
	Snapshot
	*view
	// obstacles prevent locks that are needed and not confirmed.
	obstacles []obstacle
	// outdated is true while the spec still asks for budgets that were given up.
	outdated bool
	status   v1alpha1.DrainRecordStatus
	decision Decision
}

func newPlanner(s Snapshot) *planner {
	return &planner{
		Snapshot: s,
		view:     newView(Facts{Now: s.Now, ClockSkewed: s.ClockSkewed, Record: s.Record, Pods: s.Pods, Budgets: s.Budgets, Longest: s.Longest}),
		status:   *s.Record.Status.DeepCopy(),
	}
}

// stamp returns the time as the API stores it.
func stamp(now time.Time) metav1.Time { return metav1.NewTime(now.UTC()).Rfc3339Copy() }

func stampAfter(now time.Time) metav1.Time {
	if at := stamp(now); !at.Time.Before(now) {
		return at
	}
	return stamp(now.Add(time.Second))
}

func (p *planner) wake(at time.Time) {
	after := at.Sub(p.Now)
	if after > 0 && (p.decision.RequeueAfter == 0 || after < p.decision.RequeueAfter) {
		p.decision.RequeueAfter = after
	}
}
