package surge

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const (
	// firstReport is the delay of the first report. Most pods are quicker.
	firstReport = 10 * time.Second
	// nextReport keeps our turn: half of the shortest progress deadline.
	nextReport = 5 * time.Minute
)

// waiting returns the evacuations in our turn of pods that are not detached, oldest first.
func (p *pass) waiting() []waitingPod {
	var waiting []waitingPod
	for _, pod := range p.Pods {
		_, detached := p.records[pod.UID]
		e := p.wanted[pod.UID]
		if !detached && ourTurn(e) && pod.DeletionTimestamp == nil && !podclass.Terminal(pod) {
			waiting = append(waiting, waitingPod{pod, e})
		}
	}
	slices.SortFunc(waiting, func(a, b waitingPod) int {
		return cmp.Or(a.evacuation.CreationTimestamp.Compare(b.evacuation.CreationTimestamp.Time), cmp.Compare(a.evacuation.Name, b.evacuation.Name))
	})
	return waiting
}

type waitingPod struct {
	pod        *corev1.Pod
	evacuation *v1alpha1.Evacuation
}

// Begins reports whether a pod is about to be surged, which needs the claims.
func Begins(s Snapshot) bool {
	return len(newPass(s).waiting()) > 0
}

// begin detaches a pod, says why it cannot be detached, or lets it wait.
func (p *pass) begin(w waitingPod) {
	pod, e := w.pod, w.evacuation
	if why := p.ineligible(pod); why != "" {
		p.add(unsurged(complete(p.Now, e, Refused, cannot(p.Name, why))))
		return
	}
	if p.Unread != "" {
		p.report(e, v1alpha1.ReasonWaitingForClaims, fmt.Sprintf("Waits: the volume claims of Deployment %s cannot be read: %s.", p.Name, p.Unread))
		return
	}
	most := maxSurge(p.Deployment)
	if len(p.moving) >= most {
		p.report(e, v1alpha1.ReasonWaitingForMaxSurge, fmt.Sprintf("Waits: maxSurge of Deployment %s allows %s at a time, %s now.",
			p.Name, phrase.Count(most, "pod"), list(p.moving, "is moving", "are moving")))
		return
	}
	p.detach(pod)
}

func (p *pass) ineligible(pod *corev1.Pod) string {
	owner := podclass.Owner(pod)
	switch {
	case p.Mode == Off:
		return switchedOff
	case p.Deployment == nil:
		return "it is gone"
	case owner == nil || p.sets[owner.UID] == nil || p.sets[owner.UID].DeletionTimestamp != nil:
		return fmt.Sprintf("pod %s is in none of its ReplicaSets", pod.Name)
	case Lost(pod):
		return fmt.Sprintf("annotation %s of pod %s cannot be read any more", v1alpha1.SurgeAnnotation, pod.Name)
	case pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == "":
		return fmt.Sprintf("pod %s has no label %s", pod.Name, appsv1.DefaultDeploymentUniqueLabelKey)
	}
	if why := Ineligible(p.Deployment); why != "" {
		return why
	}
	return Exclusive(p.Claims)
}

func (p *pass) detach(pod *corev1.Pod) {
	owner := podclass.Owner(pod)
	record := Record{
		Pod:        pod.UID,
		Deployment: Reference{p.Deployment.Name, p.Deployment.UID},
		ReplicaSet: Reference{owner.Name, owner.UID},
		Hash:       pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey],
		Since:      metav1.NewTime(p.Now),
		Need:       p.needed(pod),
	}
	message := fmt.Sprintf("Detached from ReplicaSet %s, which makes a replacement; serves on until that is available.", owner.Name)
	p.add(Move{{
		Pod: pod, Changed: detach(pod, record), Message: message,
		Events: []event.Event{event.PodDetached(pod, message)},
	}})
	p.detached = append(p.detached, detachedPod{pod, record})
	p.moving = append(p.moving, pod.Name)
}

// needed returns how many available pods the Deployment has to keep, besides one of its own; all
// that may be available, while that is unknown.
func (p *pass) needed(pod *corev1.Pod) int32 {
	if p.ClockSkewed && p.Deployment.Spec.MinReadySeconds > 0 {
		return replicas(p.Deployment)
	}
	if p.needs == nil {
		p.needs = p.countServing(func(pod *corev1.Pod) bool { return p.untilAvailable(pod) == 0 })
	}
	return min(replicas(p.Deployment), p.needs.but(pod)+1)
}

// report writes the state of a pod if the reason changed or to keep our turn.
func (p *pass) report(e *v1alpha1.Evacuation, reason, message string) {
	if !ourTurn(e) {
		return
	}
	pause := firstReport
	if told := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionSurged); told != nil && told.Reason == reason {
		pause = nextReport
	}
	progress := e.Status.EvacuationProgressTimestamp
	if progress == nil {
		return // The evacuation controller is about to set it.
	}
	if left := progress.Add(pause).Sub(p.Now); left > 0 {
		p.lookAgain(left)
		return
	}
	status := e.Status.DeepCopy()
	status.EvacuationProgressTimestamp = &metav1.Time{Time: p.Now}
	status.Message = message
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionSurged, Status: metav1.ConditionUnknown, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(p.Now),
	})
	p.lookAgain(nextReport)
	p.add(Move{{Evacuation: e, Status: status, Message: message}})
}

// unplaced returns the scheduler's message for a replacement without a node, if any.
func (p *pass) unplaced(d detachedPod) string {
	for _, pod := range p.newcomers(d).lacking {
		if c := podclass.Unscheduled(pod); c != nil && c.Reason == corev1.PodReasonUnschedulable {
			return cmp.Or(c.Message, "The scheduler does not say why.")
		}
	}
	return ""
}

// tellUnplaced says on an Evacuation at once that its replacement fits nowhere, or fits after
// all. It returns true if that is news; other words of the scheduler are none.
func (p *pass) tellUnplaced(e *v1alpha1.Evacuation, words string) bool {
	told := meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionReplacementUnschedulable)
	if !ourTurn(e) || told == (words != "") {
		return false
	}
	status := e.Status.DeepCopy()
	if words == "" {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionReplacementUnschedulable)
		p.add(Move{{Evacuation: e, Status: status, Message: "There is a node for the replacement."}})
		return true
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReplacementUnschedulable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUnschedulable,
		Message: words, LastTransitionTime: metav1.NewTime(p.Now),
	})
	p.add(Move{{Evacuation: e, Status: status, Message: "No node has room for the replacement."}})
	return true
}

// complete ends our turn. It is an event unless the eviction that follows is what
// everybody waits for.
func complete(now time.Time, e *v1alpha1.Evacuation, result Result, message string) Move {
	status := e.Status.DeepCopy()
	status.ActiveEvacuatorCompleted = true
	status.EvacuationProgressTimestamp = &metav1.Time{Time: now}
	status.ExpectedEvacuationFinishTime = nil
	status.Message = message
	meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionReplacementUnschedulable)
	meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionSurged)
	write := Write{Evacuation: e, Status: status, Message: message, Result: result}
	if result != Completed {
		write.Events = []event.Event{event.NotSurged(e, message)}
	}
	return Move{write}
}

// unsurged returns the end of our turn about a pod that stays in its ReplicaSet, or goes back:
// who requests nothing but its replacement does not want it evicted then.
func unsurged(move Move) Move {
	for i := range move {
		meta.SetStatusCondition(&move[i].Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionSurged, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotSurged,
			Message: move[i].Message, LastTransitionTime: *move[i].Status.EvacuationProgressTimestamp,
		})
	}
	return move
}

// DecideAlone returns what happens to an evacuation whose pod belongs to no
// Deployment: our turn, if it is ours, is over at once.
func DecideAlone(now time.Time, e *v1alpha1.Evacuation) Decision {
	if !ourTurn(e) {
		return Decision{}
	}
	return Decision{Moves: []Move{unsurged(complete(now, e, Refused, ofNobody(e.Spec.PodRef.Name)))}}
}
