package kube

import (
	"unicode/utf8"

	"k8s.io/client-go/tools/events"

	"ebbtide.dev/ebbtide/internal/core/event"
)

// maxNote is how many bytes the events API takes as a note.
const maxNote = 1024

// Publish hands events over to the recorder, each on the object that it is
// about. A message that is too long for the API ends in an ellipsis.
func Publish(recorder events.EventRecorder, happened []event.Event) {
	for i := range happened {
		e := &happened[i]
		recorder.Eventf(&e.Regarding, nil, e.Type, e.Reason, e.Action, "%s", shorten(e.Message))
	}
}

func shorten(message string) string {
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
