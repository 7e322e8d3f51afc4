package kube

import (
	"unicode/utf8"

	"k8s.io/client-go/tools/events"

	"ebbtide.dev/ebbtide/internal/core/event"
)

// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Emitter returns a function that publishes events on their objects. Call it after the write that
// makes them true.
func Emitter(recorder events.EventRecorder) func(...event.Event) {
	return func(happened ...event.Event) {
		for i := range happened {
			e := &happened[i]
			recorder.Eventf(&e.Regarding, nil, e.Type, e.Reason, e.Action, "%s", note(e.Message))
		}
	}
}

// maxNote is the limit of the events API.
const maxNote = 1024

// note cuts a message that is too long, with an ellipsis.
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
