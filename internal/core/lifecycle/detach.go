package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodedrain"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/core/volume"
)

// namedPods is how many pods a message of ours names.
const namedPods = 3

// detachStep is phases 5 and 6 of the deletion-process page.
var detachStep = step{
	name:  StepVolumeDetach,
	title: func(p *pass) string { return "Waiting for the volumes of " + p.nodeName() },
	look:  (*pass).lookDetach,
	tell:  (*pass).tellDetach,
	began: func(d *v1alpha1.MachineDeletionStatus) **metav1.Time { return &d.WaitForNodeVolumeDetachStartTime },
	limit: detachLimit,
}

func detachLimit(m *v1alpha1.Machine) time.Duration {
	return seconds(m.Spec.Deletion.NodeVolumeDetachTimeoutSeconds)
}

func (p *pass) lookDetach() verdict {
	if p.detached() {
		return verdict{}
	}
	p.decision.NodeMissing = p.absent()
	if why := p.unwaited(); why != "" {
		return verdict{outcome: skipped, message: "Volumes are not waited for: " + why}
	}
	over := p.expired(p.began().WaitForNodeVolumeDetachStartTime, detachLimit(p.Machine))
	if problem := cmp.Or(p.unclear, p.sight.problem(), p.VolumesProblem); problem != "" {
		if over {
			return verdict{outcome: timedOut, message: problem}
		}
		return verdict{outcome: stuck, message: p.advised(problem)}
	}
	w := p.attached()
	switch {
	case w.Done:
		return verdict{outcome: done, message: fmt.Sprintf("No volume is attached to %s that matters.%s", p.nodeName(), w.note)}
	case over:
		return verdict{outcome: timedOut, message: w.Message + w.note}
	default:
		return verdict{outcome: waits, message: w.Message + w.note, wake: w.late.RequeueAfter, act: func(d *Decision) {
			if len(w.late.Evict) > 0 {
				d.Drain = &w.late
			}
		}}
	}
}

// unwaited is why nobody waits for volumes although nothing went wrong; empty if
// somebody does.
func (p *pass) unwaited() string {
	switch {
	case p.untouchable != "":
		return p.untouchable
	case p.excluded(v1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation):
		return fmt.Sprintf("Annotation %s is set.", v1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation)
	case p.leftControlPlane():
		return "The KubeadmControlPlane has taken the Node out of the control plane: its pre-terminate hook is gone."
	case p.instance() != "":
		return p.instance()
	case p.sight.missing():
		return p.sight.message
	case p.sight.node != nil && podclass.Unreachable(p.sight.node):
		return p.nodeName() + " is unreachable."
	default:
		return ""
	}
}

// detached tells whether the wait was over before: a step behind it has begun.
func (p *pass) detached() bool {
	return p.began().PreTerminateHookWaitStartTime != nil || p.began().InfrastructureDeletionStartTime != nil || p.terminated()
}

// attached is what becomes of the volumes.
type attached struct {
	volume.Decision
	// note says what else there is to know of them.
	note string
	// late are pods that came after the drain: while they are there, their volumes
	// are never detached.
	late nodedrain.Decision
}

// attached decides on the volumes. Whose they are is known only while pods can be read.
func (p *pass) attached() (w attached) {
	s := p.Volumes
	s.Node, s.Problem = p.sight.node, cmp.Or(p.DrainProblem, s.Problem)
	drain, left := nodedrain.Decision{}, ""
	if p.DrainProblem == "" {
		drain = p.pods()
		left = nodedrain.Names(drain.Left(), namedPods)
	}
	s.Ignored = drain.Skipped
	switch {
	case left == "":
	case p.leftPods():
		s.Ignored = slices.Concat(drain.Skipped, drain.Left())
		w.note = "\nNobody waits for the volumes of pods that were still there when the drain was given up: " + left
	case p.excluded(v1alpha1.ExcludeNodeDrainingAnnotation):
		w.note = fmt.Sprintf("\nThe pods that use them may never leave, because annotation %s is set. Annotation %s leaves out this wait, too.",
			v1alpha1.ExcludeNodeDrainingAnnotation, v1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation)
	case p.began().NodeDrainStartTime != nil && len(preDrainHooks(p.Machine)) == 0:
		w.late, w.note = drain, "\nPods that came after the drain have to leave, too: "+left
	}
	w.Decision = volume.Decide(s)
	return w
}

// leftPods tells whether the drain had to leave pods because its time was over.
func (p *pass) leftPods() bool {
	drain, limit := p.began().NodeDrainStartTime, drainLimit(p.Machine)
	if ended := p.began().WaitForNodeVolumeDetachStartTime; ended != nil {
		return p.overAt(ended.Time, drain, limit)
	}
	return p.expired(drain, limit)
}

func (p *pass) tellDetach(v verdict) {
	status, reason, message := metav1.ConditionFalse, v1alpha1.ReasonWaitingForVolumeDetach, v.message
	switch v.outcome {
	case done:
		status, reason = metav1.ConditionTrue, v1alpha1.ReasonVolumesDetached
	case skipped:
		reason = v1alpha1.ReasonSkipped
	case timedOut:
		reason = v1alpha1.ReasonTimedOut
		message = fmt.Sprintf("Waiting for the volumes of %s was given up after %s (nodeVolumeDetachTimeoutSeconds). %s",
			p.nodeName(), detachLimit(p.Machine), v.message)
	case stuck:
		status, reason = metav1.ConditionUnknown, v1alpha1.ReasonUnknown
	}
	p.set(v1alpha1.ConditionVolumeDetachSucceeded, status, reason, message)
}
