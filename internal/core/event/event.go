// Package event holds every event that Ebbtide emits, as values.
//
// A decision returns events next to the actions that make them true; a shell
// publishes them after the write succeeded. Each event has one named
// constructor, so that its reason and its words exist once.
package event

import corev1 "k8s.io/api/core/v1"

// Event is one event about one object.
type Event struct {
	// Regarding is the object that the event is shown on.
	Regarding corev1.ObjectReference
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type string
	// Reason is a CamelCase word that never changes.
	Reason string
	// Action is what Ebbtide was doing, a CamelCase verb.
	Action string
	// Message tells a person what happened, with the names involved.
	Message string
}
