package kube

import (
	"unicode/utf8"

	"k8s.io/client-go/tools/events"

	"ebbtide.dev/ebbtide/internal/core/event"
)

// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Emitter returns what publishes events through a recorder, each on the object
// that it is about. Call it when the write that makes them true has succeeded.
func Emitter(recorder events.EventRecorder) func(...event.Event) {
	return func(happened ...event.Event) {
		for i := range happened {
			e := &happened[i]
			recorder.Eventf(&e.Regarding, nil, e.Type, e.Reason, e.Action, "%s", note(e.Message))
		}
	}
}

// maxNote is how many bytes the events API takes as a note; it refuses longer ones.
const maxNote = 1024

// note is a message that the events API takes: one that is too long is cut and
// ends in an ellipsis.
func note(message string) string {
	const ellipsis = "…"
	if len(message) <= maxNote {
		return message
	}
	end := maxNote - len(ellipsis)
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + ellipsis
}
