package kube

import "unicode/utf8"

// maxNote is how many bytes the events API takes as a note; it refuses longer ones.
const maxNote = 1024

// Note is a message that the events API takes: one that is too long is cut and
// ends in an ellipsis.
func Note(message string) string {
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
