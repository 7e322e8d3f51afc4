// Package v1alpha1 is the Ebbtide API: what an administrator asks of nodes and
// what instigators and evacuators agree on for pods.
//
// Keys that a source document spells out (finalizers, annotations, labels) are
// kept to the letter in keys.go, whoever's domain they bear; everything that
// Ebbtide invents is under ebbtide.dev. Every condition type, reason and event
// reason that a user can meet is a constant of this package.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +groupName=ebbtide.dev
package v1alpha1
