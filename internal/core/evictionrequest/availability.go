package evictionrequest

import (
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
)

// longestAnswer bounds how long a request may stay unanswered while others are answered.
const longestAnswer = 10 * time.Minute

// Availability says whether pods can be asked to leave by EvictionRequests. Its zero value says
// that the API is not served.
type Availability struct {
	// Unknown is the message why this is unknown; empty if it is known. Pods with
	// evictionResponders wait meanwhile.
	Unknown string
	// Served is true if existing requests can be read, Able if new ones are created.
	Served, Able bool
	// Acting is true while Ebbtide is their controller. Answered is the time of the last answer
	// to one of Ebbtide's requests.
	Acting   bool
	Answered time.Time
	// Since is the time at which this manager first read the requests.
	Since time.Time
	// Now is the API server's time.
	Now time.Time
}

// Mechanism is the kind of object that asks a pod to leave.
type Mechanism string

const (
	// ByEvacuation is an Evacuation.
	ByEvacuation Mechanism = ""
	// ByRequest is an EvictionRequest.
	ByRequest Mechanism = "EvictionRequest"
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

// Mechanism chooses the mechanism for a pod that is Requestable. A pod never has both objects.
// One that was started stays, unless its request is unanswered.
func (a Availability) Mechanism(standing RequestState, unanswered bool) Mechanism {
	switch {
	case a.Unknown != "":
		return Undecided
	case !a.Served, standing == Taken, standing == Unanswered:
		return ByEvacuation
	case standing == Asked && unanswered:
		// It is withdrawn first.
		return Undecided
	case standing == Withdrawn && a.Able:
		// It is deleted before there is another one, so that nobody takes its end for that one's.
		return Undecided
	case standing == Asked, a.Able:
		return ByRequest
	}
	return ByEvacuation
}

// Unanswered reports whether nobody answers a request that asks.
func (a Availability) Unanswered(request *lifecyclev1alpha1.EvictionRequest) bool {
	return AwaitsAnswer(request) && !request.CreationTimestamp.IsZero() && !a.Acting && a.Left(request) <= 0
}

// Left is how long an answer to a request is waited for still: a controller that has answered
// another one meanwhile is there, and has much to do. What had no answer when the manager
// before was gone waits anew, as that may have been who had to answer.
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
