// Package event holds every event that Ebbtide emits, as values.
//
// A decision returns events next to the actions that make them true; a shell publishes them
// after the write succeeded. Each event has one named constructor, so that its reason exists
// once.
package event

import corev1 "k8s.io/api/core/v1"

// Event is one event about one object.
type Event struct {
	Regarding corev1.ObjectReference
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type   string
	Reason string
	// Action names the action of Ebbtide, a CamelCase verb.
	Action string
	// Message describes what happened, with the names involved.
	Message string
}

type template struct{ kind, reason, action string }

func normal(reason, action string) template {
	return template{corev1.EventTypeNormal, reason, action}
}

func warning(reason, action string) template {
	return template{corev1.EventTypeWarning, reason, action}
}

func (t template) on(object corev1.ObjectReference, message string) Event {
	return Event{Regarding: object, Type: t.kind, Reason: t.reason, Action: t.action, Message: message}
}
