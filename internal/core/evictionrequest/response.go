package evictionrequest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Field managers of our responders.
const (
	EvictorFieldManager = "ebbtide-evictor"
	SurgeFieldManager   = "ebbtide-deployment-surge"
)

// ManagerOf returns the field manager of our responder. Each has its own, as applies would clash.
func ManagerOf(responder string) string {
	if responder == v1alpha1.DeploymentSurgeResponder {
		return SurgeFieldManager
	}
	return EvictorFieldManager
}

// ResponseSnapshot is the state from which an active responder of ours decides.
type ResponseSnapshot struct {
	Now      time.Time
	Eviction *lifecyclev1alpha1.Eviction
	// Pod is the target as the API server has it; nil if it is gone.
	Pod *corev1.Pod
	// Responder is v1alpha1.DeploymentSurgeResponder or DefaultEvictor.
	Responder   string
	Clock       time.Time
	ClockSkewed bool
	// Fresh is for how much longer Ebbtide's own evacuators may be silent.
	Fresh time.Duration
	// Evacuation belongs to the pod; nil if there is none.
	Evacuation *v1alpha1.Evacuation
	// Evacuators lists those that are registered for the pod.
	Evacuators []v1alpha1.Evacuator
	// Unable is the reason why the pod cannot be replaced, a sentence; empty if it can.
	Unable string
}

// ResponseDecision is the next act of a responder. The Evacuation is written before the report.
type ResponseDecision struct {
	// Report is the new status of the responder; nil if it does not change.
	Report       *lifecyclev1alpha1.ResponderStatus
	RequeueAfter time.Duration
	// Evacuation is the Evacuation to create or update; nil if it stays.
	Evacuation *v1alpha1.Evacuation
}

// DecideResponse decides for our responder: it requests the Evacuation of the pod and reports its
// message.
func DecideResponse(s ResponseSnapshot) ResponseDecision {
	own := ResponderOf(&s.Eviction.Status, s.Responder)
	if own == nil || own.CompletionTime != nil || OwnResponder(&s.Eviction.Status) != s.Responder {
		return ResponseDecision{}
	}
	target, _ := EvictionTarget(s.Eviction)
	requested := s.Evacuation != nil && evacuation.IsForResponder(s.Evacuation)
	switch {
	case s.Pod == nil || podclass.Terminal(s.Pod):
		return completion(own, s.Now, endOf(target.Name, s.Pod))
	case s.Responder == DefaultEvictor && unevictable[podclass.Type(s.Pod)] != "":
		return completion(own, s.Now, unevictable[podclass.Type(s.Pod)])
	case s.Responder != DefaultEvictor && !requested && s.Unable != "":
		return completion(own, s.Now, s.Unable)
	case s.Pod.DeletionTimestamp != nil:
		message := fmt.Sprintf("Pod %s is terminating; its grace period ends at %s.", s.Pod.Name, s.Pod.DeletionTimestamp.UTC().Format(time.RFC3339))
		return progress{message: message, usual: true}.report(own, s.Now)
	case s.Evacuation != nil && s.Evacuation.DeletionTimestamp != nil && !requested:
		message := fmt.Sprintf("Waiting for the deletion of an earlier Evacuation of pod %s.", s.Pod.Name)
		return progress{message: message}.report(own, s.Now)
	}
	return s.evacuate(own)
}

// unevictable lists the pods that the default evictor leaves to NodeMaintenances.
var unevictable = map[v1alpha1.PodType]string{
	v1alpha1.PodTypeDaemonSet: "DaemonSet pods are not evicted: a NodeMaintenance removes them",
	v1alpha1.PodTypeStatic:    "Static pods are not evicted: a NodeMaintenance stops them",
}

func endOf(name string, pod *corev1.Pod) string {
	if pod == nil {
		return fmt.Sprintf("Pod %s is gone.", name)
	}
	return fmt.Sprintf("Pod %s has ended: %s.", name, pod.Status.Phase)
}

// evacuate requests the Evacuation, or leaves a pod that cannot be replaced to the next responders.
func (s ResponseSnapshot) evacuate(own *lifecyclev1alpha1.ResponderStatus) ResponseDecision {
	cause := evacuation.Cause{Name: s.Eviction.Name, UID: s.Eviction.UID, Responder: s.Responder}
	wanted := s.Evacuation
	if wanted == nil {
		wanted = evacuation.New(s.Pod, v1alpha1.LifecycleInstigator, s.Evacuators)
	}
	wanted = evacuation.ForResponder(wanted, cause)
	next := evacuation.Decide(evacuation.Snapshot{Now: s.Clock, ClockSkewed: s.ClockSkewed, Fresh: s.Fresh, Evacuation: wanted, Pod: s.Pod, Evacuators: s.Evacuators})
	if next.State == evacuation.StateHandedOver {
		return completion(own, s.Now, next.Message)
	}
	current := progress{message: next.Message, finish: wanted.Status.ExpectedEvacuationFinishTime, usual: next.State == evacuation.StateEvicting}
	if reported := wanted.Status.Message; reported != "" {
		current.message, current.usual = reported, false
	}
	d := current.report(own, s.Now)
	if next.RequeueAfter > 0 {
		d.RequeueAfter = min(d.RequeueAfter, next.RequeueAfter)
	}
	if s.Evacuation == nil || !evacuation.IsForResponder(s.Evacuation) || evacuation.CauseOf(s.Evacuation) != cause {
		d.Evacuation = wanted
	}
	return d
}

// IsBacked reports whether our responder still requests an Evacuation: it is active in the Eviction
// by, or the pod is gone. If Ebbtide is not the controller, only its own requests count.
func IsBacked(e *v1alpha1.Evacuation, by *lifecyclev1alpha1.Eviction, controls bool) bool {
	if by == nil {
		return false
	}
	target, named := EvictionTarget(by)
	if !named || evacuation.CauseOf(e).UID != by.UID || e.Spec.PodRef.UID != target.UID {
		return false
	}
	switch OwnResponder(&by.Status) {
	case "":
		return meta.IsStatusConditionTrue(by.Status.Conditions, conditionEvicted)
	case DefaultEvictor:
		return controls || evacuation.CauseOf(e).Responder == DefaultEvictor
	}
	return true
}

// Released returns the event about an Evacuation that continues after our responder withdrew, if
// any.
func Released(e *v1alpha1.Evacuation) []event.Event {
	if e.Status.EvacuationCancellationPolicy != v1alpha1.CancellationForbid || e.Status.ActiveEvacuatorClass == "" {
		return nil
	}
	return []event.Event{event.EvacuationGoesOn(e, fmt.Sprintf(
		"The Eviction of pod %s is over, but evacuator %s does not allow cancellation. The evacuation will run to completion.",
		e.Spec.PodRef.Name, e.Status.ActiveEvacuatorClass))}
}

const (
	// HeartbeatEvery is the interval of heartbeats of a responder of ours.
	HeartbeatEvery = 3 * time.Minute
	// NewsEvery is the shortest interval of reports with another message.
	NewsEvery = 20 * time.Second

	// firstReport is the delay of the first report that a pod is evacuated: most are quicker.
	firstReport = 5 * time.Second
	// maxMessage is the API's limit of a message.
	maxMessage = 4000
	// longestFinish is the API's limit of an expected end; a day less, for clocks.
	longestFinish = (10*365 - 1) * 24 * time.Hour
)

type progress struct {
	message string
	// finish is the expected end; nil if it is not known.
	finish *metav1.Time
	// usual is true of what most pods come to, which is no reason for a first report.
	usual bool
}

// report decides whether progress is due, by NewsEvery and HeartbeatEvery.
func (p progress) report(own *lifecyclev1alpha1.ResponderStatus, now time.Time) ResponseDecision {
	message, finish := excerpt.Of(p.message, maxMessage), acceptable(own, p.finish, now)
	pause := HeartbeatEvery
	switch {
	case own.HeartbeatTime == nil && !p.usual:
		pause = firstReport
	case own.HeartbeatTime != nil && (ptr.Deref(own.Message, "") != message || !finish.Equal(own.ExpectedCompletionTime)):
		pause = NewsEvery
	}
	if wait := lastSign(own).Add(pause).Sub(now); wait > 0 {
		return ResponseDecision{RequeueAfter: wait}
	}
	return ResponseDecision{RequeueAfter: HeartbeatEvery, Report: &lifecyclev1alpha1.ResponderStatus{
		Name: own.Name, HeartbeatTime: heartbeat(own, now), Message: &message, ExpectedCompletionTime: finish,
	}}
}

func completion(own *lifecyclev1alpha1.ResponderStatus, now time.Time, message string) ResponseDecision {
	message, at := excerpt.Of(message, maxMessage), heartbeat(own, now)
	return ResponseDecision{Report: &lifecyclev1alpha1.ResponderStatus{Name: own.Name, HeartbeatTime: at, CompletionTime: at, Message: &message}}
}

// heartbeat returns the time of a report, which never goes back.
func heartbeat(own *lifecyclev1alpha1.ResponderStatus, now time.Time) *metav1.Time {
	if last := lastSign(own); last.After(now) {
		now = last
	}
	return moment(now)
}

// acceptable returns the expected end if the API accepts it and it has not passed.
func acceptable(own *lifecyclev1alpha1.ResponderStatus, finish *metav1.Time, now time.Time) *metav1.Time {
	if finish == nil {
		return nil
	}
	at := moment(finish.Time)
	if at.Equal(own.ExpectedCompletionTime) {
		return at
	}
	if at.Time.Before(now) || at.Time.After(now.Add(longestFinish)) || own.StartTime != nil && at.Before(own.StartTime) {
		return nil
	}
	return at
}

func lastSign(reported *lifecyclev1alpha1.ResponderStatus) time.Time {
	switch {
	case reported.HeartbeatTime != nil:
		return reported.HeartbeatTime.Time
	case reported.StartTime != nil:
		return reported.StartTime.Time
	}
	return time.Time{}
}
