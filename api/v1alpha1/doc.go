// Package v1alpha1 is the Ebbtide API. Keys that a source document defines (finalizers,
// annotations, labels) are kept to the letter in keys.go; everything that Ebbtide adds is under
// ebbtide.dev. Every condition type, reason and event reason is a constant of this package.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +groupName=ebbtide.dev
package v1alpha1
