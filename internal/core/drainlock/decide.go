package drainlock

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Decide returns what happens next to the locks of the node of the record.
func Decide(s Snapshot) Decision {
	if s.Record == nil {
		return Decision{}
	}
	p := newPass(s)
	p.adopt()
	p.weigh()
	p.confirm()
	p.followBoots()
	p.comeBack()
	p.withdraw()
	p.tell()
	p.act()
	p.wait()
	if !equality.Semantic.DeepEqual(s.Record.Status, p.status) {
		p.decision.Status = &p.status
	}
	return p.decision
}

// weigh finds out what is needed, what is there, and what is in the way.
func (p *pass) weigh() {
	p.look()
	p.queueUp()
	p.takeBack()
	p.runClock()
	p.giveUp()
	p.dropOutdated()
	p.yield()
}

// pass is one decision in the making.
type pass struct {
	Snapshot
	*view
	// obstacles are in the way of locks that are needed and were not confirmed.
	obstacles []obstacle
	// outdated is true while the spec still asks for budgets that were given up.
	outdated bool
	// status is as it is to be.
	status   v1alpha1.DrainRecordStatus
	decision Decision
}

func newPass(s Snapshot) *pass {
	return &pass{
		Snapshot: s,
		view:     newView(Facts{Now: s.Now, ClockSkewed: s.ClockSkewed, Record: s.Record, Pods: s.Pods, Budgets: s.Budgets, Longest: s.Longest}),
		status:   *s.Record.Status.DeepCopy(),
	}
}

// stamp is the time as the API stores it.
func stamp(now time.Time) metav1.Time { return metav1.NewTime(now.UTC()).Rfc3339Copy() }

// stampAfter is the first time that the API can store and that is not before now.
func stampAfter(now time.Time) metav1.Time {
	if at := stamp(now); !at.Time.Before(now) {
		return at
	}
	return stamp(now.Add(time.Second))
}

// wake asks for another decision at a time that is still to come.
func (p *pass) wake(at time.Time) {
	after := at.Sub(p.Now)
	if after > 0 && (p.decision.RequeueAfter == 0 || after < p.decision.RequeueAfter) {
		p.decision.RequeueAfter = after
	}
}
