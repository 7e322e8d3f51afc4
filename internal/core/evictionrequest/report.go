package evictionrequest

import (
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

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

// report decides whether progress is due. A change waits for NewsEvery, a heartbeat for
// HeartbeatEvery.
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

// heartbeat returns the time of a report. It is never before an earlier one, whatever our clock
// shows.
func heartbeat(own *lifecyclev1alpha1.ResponderStatus, now time.Time) *metav1.Time {
	if last := lastSign(own); last.After(now) {
		now = last
	}
	return moment(now)
}

// acceptable returns the expected end if the API accepts it. One that was reported before stays,
// one that has passed is dropped.
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
