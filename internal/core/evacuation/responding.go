package evacuation

import (
	"fmt"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

const maxSaid = 300

// Responding is the active responder to an Eviction of the pod; zero if there is none but the
// default.
type Responding struct {
	Eviction, Responder string
	Says                string
	// Unknown is the reason why it is not known whether there is one, in a phrase; empty if it is.
	Unknown string
}

// responding returns the message for a caller that has to wait for a responder; empty if it need
// not. The responder itself may evict.
func (c Call) responding() string {
	r := c.Responding
	switch {
	case len(c.Pod.Spec.EvictionResponders) == 0:
		return ""
	case r.Unknown != "":
		return fmt.Sprintf("it is not known whether a responder moves pod %s: %s; try again", c.Pod.Name, r.Unknown)
	case r.Responder == "", c.As == r.Responder:
		return ""
	}
	words := fmt.Sprintf("eviction in progress: responder %s has its turn to move pod %s (Eviction %s); %s", r.Responder, c.Pod.Name, r.Eviction, tryAgain)
	// Words of others come last, so that they are not taken for ours.
	if said := excerpt.Line(r.Says, maxSaid); said != "" {
		words += ". It says: " + said
	}
	return words
}
