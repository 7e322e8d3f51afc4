package evacuation

import (
	"fmt"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

const maxSaid = 300

// Responding is the responder of a pod that somebody has asked to move it, by an Eviction of
// lifecycle.k8s.io, and whose turn it is. Its zero value is that there is none, or that it is
// the turn of the default evictor.
type Responding struct {
	Eviction, Responder string
	Says                string
	// Unknown is the reason why it is not known whether there is one, in a phrase; empty if it is.
	Unknown string
}

// responding returns what a caller is told who has to wait for a responder; empty if nobody has
// to. A pod that names none cannot have one, whatever is known. The responder itself may
// evict in its turn.
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
