package evictionrequest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

const (
	// SurgeFieldManager is who the responder is in server-side apply that surges Deployments.
	SurgeFieldManager = "ebbtide-deployment-surge"

	// firstWord is after what time it is told that a pod is evacuated: most are quicker.
	firstWord = 5 * time.Second
)

// OurTurn returns which responder of ours has its turn; empty if none has.
func OurTurn(status *lifecyclev1alpha1.EvictionStatus) string {
	for _, name := range []string{v1alpha1.DeploymentSurgeResponder, DefaultEvictor} {
		if StateOf(status, name) == lifecyclev1alpha1.ResponderStateActive && !Final(status) {
			return name
		}
	}
	return ""
}

// ManagerOf is who a responder of ours is in server-side apply: who applies what one reports
// removes what the same manager has reported for another.
func ManagerOf(responder string) string {
	if responder == v1alpha1.DeploymentSurgeResponder {
		return SurgeFieldManager
	}
	return EvictorFieldManager
}

// TurnSnapshot is what a responder of ours knows in its turn.
type TurnSnapshot struct {
	// Now is the API server's time.
	Now      time.Time
	Eviction *lifecyclev1alpha1.Eviction
	// Pod is the target as the API server has it; nil if it is gone.
	Pod *corev1.Pod
	// Responder is whose turn it is: v1alpha1.DeploymentSurgeResponder or DefaultEvictor.
	Responder string
	// Clock is the time that Evacuations go by; ClockSkewed is true while it is not trusted.
	Clock       time.Time
	ClockSkewed bool
	// Fresh is for how much longer Ebbtide's own evacuators may be silent.
	Fresh time.Duration
	// Evacuation is that of the pod; nil if there is none.
	Evacuation *v1alpha1.Evacuation
	// Evacuators are those that are registered for the pod.
	Evacuators []v1alpha1.Evacuator
	// Unable is why the pod cannot be replaced, a sentence; empty if it may.
	Unable string
}

// TurnDecision is what it does. What it asks for is written before it reports.
type TurnDecision struct {
	// Report is to be written as what the responder has to say; nil if it has nothing new.
	Report *lifecyclev1alpha1.ResponderStatus
	// RequeueAfter is when it has to say something, whatever happens; 0 is never.
	RequeueAfter time.Duration
	// Ask is the Evacuation as it is to be, which is created if there is none; nil if
	// nothing is to be asked for.
	Ask *v1alpha1.Evacuation
}

// DecideTurn decides what a responder of ours does: it asks for the Evacuation of the pod,
// which is the only engine that moves pods, and repeats what that says.
func DecideTurn(s TurnSnapshot) TurnDecision {
	own := ResponderOf(&s.Eviction.Status, s.Responder)
	if own == nil || own.CompletionTime != nil || OurTurn(&s.Eviction.Status) != s.Responder {
		return TurnDecision{}
	}
	if words := s.done(); words != "" {
		return TurnDecision{Report: completion(own, s.Now, excerpt.Of(words, maxMessage))}
	}
	switch {
	case s.Pod.DeletionTimestamp != nil:
		return s.tell(own, word{text: terminates(s.Pod), patient: true})
	case s.Evacuation != nil && s.Evacuation.DeletionTimestamp != nil && !evacuation.ForTurn(s.Evacuation):
		return s.tell(own, word{text: s.ending()})
	}
	return s.mirror(own)
}

// done is why the responder has nothing more to do; empty if it has.
func (s TurnSnapshot) done() string {
	if words := ended(s.Eviction, s.Pod); words != "" {
		return words
	}
	if s.Responder == DefaultEvictor {
		return unevictable(s.Pod)
	}
	if s.Evacuation != nil && evacuation.ForTurn(s.Evacuation) {
		return ""
	}
	return s.Unable
}

func (s TurnSnapshot) ending() string {
	return fmt.Sprintf("An earlier evacuation of pod %s is being deleted; it is asked for again when that is gone.", s.Pod.Name)
}

// mirror asks for the Evacuation, and says of the Eviction what is said of that. Where the
// pod was to be replaced first and is not, it is left to the responders that come next.
func (s TurnSnapshot) mirror(own *lifecyclev1alpha1.ResponderStatus) TurnDecision {
	turn := evacuation.Turn{Name: s.Eviction.Name, UID: s.Eviction.UID, Responder: s.Responder}
	wanted := s.Evacuation
	if wanted == nil {
		wanted = evacuation.New(s.Pod, v1alpha1.LifecycleInstigator, s.Evacuators)
	}
	wanted = evacuation.InTurn(wanted, turn)
	next := evacuation.Decide(evacuation.Snapshot{Now: s.Clock, ClockSkewed: s.ClockSkewed, Fresh: s.Fresh, Evacuation: wanted, Pod: s.Pod, Evacuators: s.Evacuators})
	if next.State == evacuation.StateHandedOver {
		return TurnDecision{Report: completion(own, s.Now, excerpt.Of(next.Message, maxMessage))}
	}
	words := next.Message
	if told := wanted.Status.Message; told != "" {
		words = told
	}
	d := s.tell(own, word{
		text: excerpt.Of(words, maxMessage), finish: wanted.Status.ExpectedEvacuationFinishTime,
		patient: next.State == evacuation.StateEvicting && wanted.Status.Message == "",
	})
	if next.RequeueAfter > 0 {
		d.RequeueAfter = min(d.RequeueAfter, next.RequeueAfter)
	}
	if s.Evacuation == nil || !evacuation.ForTurn(s.Evacuation) || evacuation.TurnOf(s.Evacuation) != turn {
		d.Ask = wanted
	}
	return d
}

// word is what a responder has to say.
type word struct {
	text string
	// finish is when it expects to be done; nil if it does not say.
	finish *metav1.Time
	// patient is true of what most pods come to, and which is no first word.
	patient bool
}

// tell says something, if it is due. What has changed waits a little, what has not for the
// next heartbeat.
func (s TurnSnapshot) tell(own *lifecyclev1alpha1.ResponderStatus, w word) TurnDecision {
	told := ""
	if own.Message != nil {
		told = *own.Message
	}
	finish := s.believable(own, w.finish)
	pause := HeartbeatEvery
	switch {
	case own.HeartbeatTime == nil && !w.patient:
		pause = firstWord
	case own.HeartbeatTime != nil && (told != w.text || !finish.Equal(own.ExpectedCompletionTime)):
		pause = NewsEvery
	}
	if wait := lastSign(own).Add(pause).Sub(s.Now); wait > 0 {
		return TurnDecision{RequeueAfter: wait}
	}
	d := TurnDecision{RequeueAfter: HeartbeatEvery, Report: sign(own, s.Now, w.text)}
	d.Report.ExpectedCompletionTime = finish
	return d
}

// longestFinish is how far away the API lets anybody expect an end; a day less, for clocks.
const longestFinish = (10*365 - 1) * 24 * time.Hour

// believable is when the end is expected, as the API takes it: what was said before stays,
// and what has passed is expected no more.
func (s TurnSnapshot) believable(own *lifecyclev1alpha1.ResponderStatus, finish *metav1.Time) *metav1.Time {
	if finish == nil {
		return nil
	}
	at := moment(finish.Time)
	if at.Equal(own.ExpectedCompletionTime) {
		return at
	}
	if at.Time.Before(s.Now) || at.Time.After(s.Now.Add(longestFinish)) || own.StartTime != nil && at.Before(own.StartTime) {
		return nil
	}
	return at
}

// Backed reports whether an Evacuation that our responders ask for is still theirs to ask for:
// in a turn of ours of the Eviction that it names, or until it ends itself when the pod is gone.
// The Eviction is nil if there is none of this name. Controls is true while Ebbtide is the
// controller; while it is not, the turn of the default evictor may be somebody else's, so
// that only what was asked for in it stays.
func Backed(e *v1alpha1.Evacuation, by *lifecyclev1alpha1.Eviction, controls bool) bool {
	if by == nil {
		return false
	}
	target, named := EvictionTarget(by)
	if !named || evacuation.TurnOf(e).UID != by.UID || e.Spec.PodRef.UID != target.UID {
		return false
	}
	switch OurTurn(&by.Status) {
	case "":
		return meta.IsStatusConditionTrue(by.Status.Conditions, conditionEvicted)
	case DefaultEvictor:
		return controls || evacuation.TurnOf(e).Responder == DefaultEvictor
	}
	return true
}

// LetGo is what is told when our turn is over and its Evacuation is asked for no more by us:
// nothing, unless it goes on all the same.
func LetGo(e *v1alpha1.Evacuation) []event.Event {
	if e.Status.EvacuationCancellationPolicy != v1alpha1.CancellationForbid || e.Status.ActiveEvacuatorClass == "" {
		return nil
	}
	return []event.Event{event.EvacuationGoesOn(e, fmt.Sprintf(
		"The Eviction that pod %s was evacuated for is over, but evacuator %s has forbidden to cancel that: it goes on until the pod is gone.",
		e.Spec.PodRef.Name, e.Status.ActiveEvacuatorClass))}
}
