package lifecycle

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

type step struct {
	name  Step
	title func(*planner) string
	look  func(*planner) verdict
	// report writes the conditions of this step; optional.
	report func(*planner, verdict)
	// began returns the field that records its start.
	began func(*v1alpha1.MachineDeletionStatus) **metav1.Time
	// limit returns the timeout of the step; optional.
	limit func(*v1alpha1.Machine) time.Duration
}

var steps = []step{preDrainHooksStep, drainStep, detachStep, preTerminateHooksStep, infrastructureStep, bootstrapStep, nodeStep}

type outcome int

const (
	// settled earlier, or nothing to do: there is nothing new to report.
	settled outcome = iota
	done
	skipped
	timedOut
	// stuck because something could not be read.
	stuck
	waits
)

// verdict is the state of a step and the next action.
type verdict struct {
	outcome outcome
	message string
	// failed is true if what is waited for does not resolve by itself.
	failed bool
	// act is done while the step waits; optional.
	act func(*Decision)
	// wake is the delay until time alone changes the verdict, apart from the limit; 0 is never.
	wake time.Duration
}

// isOpen reports whether the step blocks later steps.
func (v verdict) isOpen() bool { return v.outcome == waits || v.outcome == stuck }

func (p *planner) delete() {
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
		if v.isOpen() && p.start(s) {
			p.decision.Step = s.name
			p.setDeleting(s, v)
			return
		}
		if s.report != nil && v.outcome != settled {
			s.report(p, v)
		}
		if v.isOpen() {
			p.carryOut(s, v)
			return
		}
	}
	p.finish()
}

func (p *planner) start(s step) bool {
	began := s.began(p.decision.Status.Deletion)
	if *began != nil {
		return false
	}
	now := p.now()
	*began, p.decision.Record = &now, true
	return true
}

func (p *planner) carryOut(s step, v verdict) {
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

func (p *planner) end(s step) (end time.Time, limited bool) {
	began := *s.began(p.decision.Status.Deletion)
	if began == nil || s.limit == nil || s.limit(p.Machine) == 0 {
		return time.Time{}, false
	}
	return p.since(began).Add(s.limit(p.Machine)), true
}

// since returns the start of a limit, but no earlier than the deletion.
func (p *planner) since(began *metav1.Time) time.Time {
	if deleted := p.Machine.DeletionTimestamp; deleted != nil && began.Before(deleted) {
		return deleted.Time
	}
	return began.Time
}

func (p *planner) setDeleting(s step, v verdict) {
	var text strings.Builder
	text.WriteString(s.title(p))
	if began := *s.began(p.decision.Status.Deletion); began != nil {
		p.decision.Since = began.Time
		text.WriteString(" since " + phrase.Time(began.Time))
	}
	if end, limited := p.end(s); limited {
		fmt.Fprintf(&text, ", until %s at the latest", phrase.Time(end))
	}
	if v.message == "" {
		text.WriteString(".")
	} else {
		text.WriteString(": " + v.message)
	}
	p.set(v1alpha1.ConditionDeleting, metav1.ConditionTrue, string(s.name), text.String())
}

func (p *planner) finish() {
	p.decision.Step = StepDone
	message := "Deletion completed."
	if len(p.left) > 0 {
		message = "Left behind: " + strings.Join(p.left, " ")
	}
	p.set(v1alpha1.ConditionDeleting, metav1.ConditionTrue, v1alpha1.ReasonDeletionCompleted, message)
	p.decision.DropFinalizer = true
}

func (p *planner) began() v1alpha1.MachineDeletionStatus {
	return ptr.Deref(p.Machine.Status.Deletion, v1alpha1.MachineDeletionStatus{})
}

// expired reports whether a step has used up its limit; never while the clock is skewed.
func (p *planner) expired(began *metav1.Time, limit time.Duration) bool {
	return !p.ClockSkewed && p.overAt(p.Now, began, limit)
}

func (p *planner) overAt(at time.Time, began *metav1.Time, limit time.Duration) bool {
	return began != nil && limit > 0 && !at.Before(p.since(began).Add(limit))
}

func seconds(limit *int32) time.Duration {
	if limit == nil || *limit < 0 {
		return 0
	}
	return time.Duration(*limit) * time.Second
}

func (p *planner) excluded(annotation string) bool {
	_, present := p.Machine.Annotations[annotation]
	return present
}
