package evictionrequest

import (
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
)

const longestAnswer = 10 * time.Minute

// Availability reports whether EvictionRequests can be used. The zero value means not served.
type Availability struct {
	// Unknown says why this is unknown; empty if it is known. Pods with evictionResponders then
	// wait.
	Unknown string
	// Served is true if existing requests can be read, Able if new ones are created.
	Served, Able bool
	// Acting is true while Ebbtide is their controller, Answered the time of its last answer to our
	// requests.
	Acting   bool
	Answered time.Time
	// Since is the time at which this manager first read the requests.
	Since time.Time
	Now   time.Time
}

// Mechanism is the kind of object by which a pod is evicted.
type Mechanism string

// Mechanisms.
const (
	ByEvacuation Mechanism = ""
	ByRequest    Mechanism = "EvictionRequest"
	// Undecided means that the pod waits until the mechanism is known.
	Undecided Mechanism = "Undecided"
)

// Kind returns the kind of the object; Evacuation while it is undecided.
func (m Mechanism) Kind() string {
	if m == ByRequest {
		return "EvictionRequest"
	}
	return "Evacuation"
}

// Mechanism chooses how a Requestable pod is moved. A started one stays unless it is unanswered.
func (a Availability) Mechanism(state RequestState, unanswered bool) Mechanism {
	switch {
	case a.Unknown != "":
		return Undecided
	case !a.Served, state == Taken, state == Unanswered:
		return ByEvacuation
	case state == Asked && unanswered:
		// It is withdrawn first.
		return Undecided
	case state == Withdrawn && a.Able:
		// It is deleted before there is another one, so that their ends are not confused.
		return Undecided
	case state == Asked, a.Able:
		return ByRequest
	}
	return ByEvacuation
}

// Unanswered reports whether a request has waited too long for an answer.
func (a Availability) Unanswered(request *lifecyclev1alpha1.EvictionRequest) bool {
	return AwaitsAnswer(request) && !request.CreationTimestamp.IsZero() && !a.Acting && a.Left(request) <= 0
}

// Left returns how much longer to wait for an answer. A controller that has answered another
// request meanwhile is only busy. After a restart of the manager, which may be the controller, the
// wait begins again.
func (a Availability) Left(request *lifecyclev1alpha1.EvictionRequest) time.Duration {
	since := request.CreationTimestamp.Time
	if a.Since.After(since) {
		since = a.Since
	}
	if a.Answered.After(since) && a.Answered.Sub(since) < longestAnswer {
		since = a.Answered
	}
	return since.Add(AnswerDeadline).Sub(a.Now)
}
