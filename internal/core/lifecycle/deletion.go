package lifecycle

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// step is one of a deletion.
type step struct {
	name Step
	// title says what is done in it.
	title func(*pass) string
	// look says where it stands.
	look func(*pass) verdict
	// tell writes the conditions that are about this step alone; nil if none is.
	tell func(*pass, verdict)
	// began is where its beginning is recorded.
	began func(*v1alpha1.MachineDeletionStatus) **metav1.Time
	// limit is how long it may take; nil if it has no limit.
	limit func(*v1alpha1.Machine) time.Duration
}

// steps are in the order in which they are settled.
var steps = []step{preDrainHooksStep, drainStep, detachStep, preTerminateHooksStep, infrastructureStep, bootstrapStep, nodeStep}

// outcome is where a step stands.
type outcome int

const (
	// settled before, or nothing to do: there is nothing new to tell.
	settled outcome = iota
	// done now.
	done
	// skipped, the message says why.
	skipped
	// timedOut, the message says what is left.
	timedOut
	// stuck, because something could not be read; the message says what.
	stuck
	// waits, the message says for what.
	waits
)

// verdict is where a step stands and what is to be done.
type verdict struct {
	outcome outcome
	message string
	// failed is true if what is waited for does not pass by itself.
	failed bool
	// act is what is done while the step waits; nil if nothing is.
	act func(*Decision)
	// wake is when time alone would change the verdict, beside the limit; 0 is never.
	wake time.Duration
}

// open tells whether the step holds those behind it.
func (v verdict) open() bool { return v.outcome == waits || v.outcome == stuck }

// delete settles one step after the other.
func (p *pass) delete() {
	p.observe()
	p.decision.Status.Phase = v1alpha1.MachineDeleting
	if p.decision.Status.Deletion == nil {
		p.decision.Status.Deletion = &v1alpha1.MachineDeletionStatus{}
	}
	p.recordHookSeen()
	p.recordProviderID()
	p.recordNode()
	if p.decision.Record {
		p.decision.Step = StepRecord
		return
	}
	for _, s := range steps {
		v := s.look(p)
		if v.open() && p.begin(s) {
			p.decision.Step = s.name
			p.setDeleting(s, v)
			return
		}
		if s.tell != nil && v.outcome != settled {
			s.tell(p, v)
		}
		if v.open() {
			p.hold(s, v)
			return
		}
	}
	p.finish()
}

// begin records the beginning of a step; it is false if that was recorded before.
func (p *pass) begin(s step) bool {
	began := s.began(p.decision.Status.Deletion)
	if *began != nil {
		return false
	}
	now := p.now()
	*began, p.decision.Record = &now, true
	return true
}

// hold does what is to be done in the step that is open.
func (p *pass) hold(s step, v verdict) {
	p.decision.Step = s.name
	p.setDeleting(s, v)
	if v.act != nil {
		v.act(&p.decision)
	}
	p.cordon()
	p.decision.RequeueAfter = v.wake
	if end, limited := p.end(s); limited {
		if left := end.Sub(p.Now); left > 0 && (v.wake == 0 || left < v.wake) {
			p.decision.RequeueAfter = left
		}
	}
}

// end is when a step that has begun is given up.
func (p *pass) end(s step) (end time.Time, limited bool) {
	began := *s.began(p.decision.Status.Deletion)
	if began == nil || s.limit == nil || s.limit(p.Machine) == 0 {
		return time.Time{}, false
	}
	return p.since(began).Add(s.limit(p.Machine)), true
}

// since is from when a limit counts. No step begins before the deletion does,
// whatever was written down before.
func (p *pass) since(began *metav1.Time) time.Time {
	if deleted := p.Machine.DeletionTimestamp; deleted != nil && began.Before(deleted) {
		return deleted.Time
	}
	return began.Time
}

// setDeleting says in which step the deletion is, what it waits for and since when.
func (p *pass) setDeleting(s step, v verdict) {
	var text strings.Builder
	text.WriteString(s.title(p))
	if began := *s.began(p.decision.Status.Deletion); began != nil {
		p.decision.Since = began.Time
		text.WriteString(" since " + phrase.Time(began.Time))
	}
	if end, limited := p.end(s); limited {
		fmt.Fprintf(&text, ", until %s at the longest", phrase.Time(end))
	}
	if v.message == "" {
		text.WriteString(".")
	} else {
		text.WriteString(": " + v.message)
	}
	p.set(v1alpha1.ConditionDeleting, metav1.ConditionTrue, string(s.name), text.String())
}

// finish lets the Machine go.
func (p *pass) finish() {
	p.decision.Step = StepDone
	message := "Everything is gone."
	if len(p.left) > 0 {
		message = "Left behind: " + strings.Join(p.left, " ")
	}
	p.set(v1alpha1.ConditionDeleting, metav1.ConditionTrue, v1alpha1.ReasonDeletionCompleted, message)
	p.decision.DropFinalizer = true
}

// began is when the steps began, as it was recorded.
func (p *pass) began() v1alpha1.MachineDeletionStatus {
	if p.Machine.Status.Deletion == nil {
		return v1alpha1.MachineDeletionStatus{}
	}
	return *p.Machine.Status.Deletion
}

// expired tells whether a step has used up its time; one without limit never does, nor
// does any while the clock is skewed.
func (p *pass) expired(began *metav1.Time, limit time.Duration) bool {
	return !p.ClockSkewed && p.overAt(p.Now, began, limit)
}

func (p *pass) overAt(at time.Time, began *metav1.Time, limit time.Duration) bool {
	return began != nil && limit > 0 && !at.Before(p.since(began).Add(limit))
}

// seconds is a limit of the API: 0 is none.
func seconds(limit *int32) time.Duration {
	if limit == nil || *limit < 0 {
		return 0
	}
	return time.Duration(*limit) * time.Second
}

// excluded tells whether an annotation leaves out a step.
func (p *pass) excluded(annotation string) bool {
	_, present := p.Machine.Annotations[annotation]
	return present
}
