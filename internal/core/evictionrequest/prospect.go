package evictionrequest

import (
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
)

// longestAnswer is how long a request may have no answer while others have one.
const longestAnswer = 10 * time.Minute

// Prospect is what is known of asking pods to leave by EvictionRequests. Its zero value is
// that nobody does.
type Prospect struct {
	// Unknown is why it is not known whether that can be done, in a sentence; empty if it is
	// known. Pods with evictionResponders wait meanwhile.
	Unknown string
	// Served is true if the requests that there are can be seen, Able if new ones are made:
	// somebody answers them, or may.
	Served, Able bool
	// Acting is true while Ebbtide answers them, Answered when somebody has answered one of
	// ours last.
	Acting   bool
	Answered time.Time
	// Since is when this manager has begun to see the requests.
	Since time.Time
	// Now is the API server's time.
	Now time.Time
}

// Way is by what a pod is asked to leave.
type Way string

const (
	// ByEvacuation is an Evacuation.
	ByEvacuation Way = ""
	// ByRequest is an EvictionRequest.
	ByRequest Way = "EvictionRequest"
	// ByNobody is that the pod waits until one of both is the right one.
	ByNobody Way = "Nobody"
)

// Kind is that of the object by which the pod is asked, or will be if nobody can be asked otherwise.
func (w Way) Kind() string {
	if w == ByRequest {
		return "EvictionRequest"
	}
	return "Evacuation"
}

// Way chooses by what a pod is asked to leave that is Requestable: there are never both for
// one pod. What was begun is not begun by the other way, unless nobody answers: that is
// what unanswered says of the request.
func (p Prospect) Way(standing Standing, unanswered bool) Way {
	switch {
	case p.Unknown != "":
		return ByNobody
	case !p.Served, standing == Taken, standing == Unanswered:
		return ByEvacuation
	case standing == Asked && unanswered:
		// It is withdrawn first.
		return ByNobody
	case standing == Withdrawn && p.Able:
		// It is deleted before there is another one, so that nobody takes its end for that one's.
		return ByNobody
	case standing == Asked, p.Able:
		return ByRequest
	}
	return ByEvacuation
}

// Unanswered reports whether nobody answers a request that asks.
func (p Prospect) Unanswered(request *lifecyclev1alpha1.EvictionRequest) bool {
	return AwaitsAnswer(request) && !request.CreationTimestamp.IsZero() && !p.Acting && p.Left(request) <= 0
}

// Left is how long an answer to a request is waited for still: a controller that has answered
// another one meanwhile is there, and has much to do. What had no answer when the manager
// before was gone waits anew, as that may have been who had to answer.
func (p Prospect) Left(request *lifecyclev1alpha1.EvictionRequest) time.Duration {
	since := request.CreationTimestamp.Time
	if p.Since.After(since) {
		since = p.Since
	}
	if p.Answered.After(since) && p.Answered.Sub(since) < longestAnswer {
		since = p.Answered
	}
	return since.Add(AnswerDeadline).Sub(p.Now)
}
