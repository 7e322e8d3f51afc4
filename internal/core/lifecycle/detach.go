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

const namedPods = 3

// detachStep is phases 5 and 6 of the deletion-process page.
var detachStep = step{
	name:   StepVolumeDetach,
	title:  func(p *planner) string { return "Waiting for the volumes of " + p.nodeName() },
	look:   (*planner).lookDetach,
	report: (*planner).reportDetach,
	began:  func(d *v1alpha1.MachineDeletionStatus) **metav1.Time { return &d.WaitForNodeVolumeDetachStartTime },
	limit:  detachLimit,
}

func detachLimit(m *v1alpha1.Machine) time.Duration {
	return seconds(m.Spec.Deletion.NodeVolumeDetachTimeoutSeconds)
}

func (p *planner) lookDetach() verdict {
	if p.isDetached() {
		return verdict{}
	}
	p.decision.NodeMissing = p.isAbsent()
	if why := p.skipDetach(); why != "" {
		return verdict{outcome: skipped, message: "Not waiting for volumes: " + why}
	}
	over := p.expired(p.began().WaitForNodeVolumeDetachStartTime, detachLimit(p.Machine))
	if problem := cmp.Or(p.unclear, p.node.problem(), p.VolumesProblem); problem != "" {
		if over {
			return verdict{outcome: timedOut, message: problem}
		}
		return verdict{outcome: stuck, message: p.advised(problem)}
	}
	w := p.attached()
	switch {
	case w.Done:
		return verdict{outcome: done, message: fmt.Sprintf("No relevant volume is attached to %s.%s", p.nodeName(), w.note)}
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

// skipDetach returns the reason why volumes are not waited for, although nothing failed.
func (p *planner) skipDetach() string {
	switch {
	case p.untouchable != "":
		return p.untouchable
	case p.excluded(v1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation):
		return fmt.Sprintf("Annotation %s is set.", v1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation)
	case p.leftControlPlane():
		return "The KubeadmControlPlane has removed its pre-terminate hook, so the Node has left the control plane."
	case p.instance() != "":
		return p.instance()
	case p.node.missing():
		return p.node.message
	case p.node.node != nil && podclass.Unreachable(p.node.node):
		return p.nodeName() + " is unreachable."
	default:
		return ""
	}
}

// isDetached reports whether the wait is over because a later step has begun.
func (p *planner) isDetached() bool {
	return p.began().PreTerminateHookWaitStartTime != nil || p.began().InfrastructureDeletionStartTime != nil || p.terminated()
}

type attached struct {
	volume.Decision
	note string
	// late are pods that came after the drain. Their volumes are not detached while they are there.
	late nodedrain.Decision
}

// attached decides on the volumes. Their pods are only known while pods can be read.
func (p *planner) attached() (w attached) {
	s := p.Volumes
	s.Node, s.Problem = p.node.node, cmp.Or(p.DrainProblem, s.Problem)
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
		w.note = "\nNot waiting for the volumes of pods that remained after the drain: " + left
	case p.excluded(v1alpha1.ExcludeNodeDrainingAnnotation):
		w.note = fmt.Sprintf("\nThe pods that use them may never leave because annotation %s is set. To skip this wait, set annotation %s.",
			v1alpha1.ExcludeNodeDrainingAnnotation, v1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation)
	case p.began().NodeDrainStartTime != nil && len(preDrainHooks(p.Machine)) == 0:
		w.late, w.note = drain, "\nEvicting pods that came after the drain: "+left
	}
	w.Decision = volume.Decide(s)
	return w
}

// leftPods reports whether the drain left pods behind because it timed out.
func (p *planner) leftPods() bool {
	drain, limit := p.began().NodeDrainStartTime, drainLimit(p.Machine)
	if ended := p.began().WaitForNodeVolumeDetachStartTime; ended != nil {
		return p.overAt(ended.Time, drain, limit)
	}
	return p.expired(drain, limit)
}

func (p *planner) reportDetach(v verdict) {
	status, reason, message := metav1.ConditionFalse, v1alpha1.ReasonWaitingForVolumeDetach, v.message
	switch v.outcome {
	case done:
		status, reason = metav1.ConditionTrue, v1alpha1.ReasonVolumesDetached
	case skipped:
		reason = v1alpha1.ReasonSkipped
	case timedOut:
		reason = v1alpha1.ReasonTimedOut
		message = fmt.Sprintf("Gave up waiting for the volumes of %s after %s (nodeVolumeDetachTimeoutSeconds). %s",
			p.nodeName(), detachLimit(p.Machine), v.message)
	case stuck:
		status, reason = metav1.ConditionUnknown, v1alpha1.ReasonUnknown
	}
	p.set(v1alpha1.ConditionVolumeDetachSucceeded, status, reason, message)
}
