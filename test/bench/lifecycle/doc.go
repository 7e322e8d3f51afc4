// Package lifecycle holds what Ebbtide decides about EvictionRequests to the validation of
// Kubernetes 1.37 as it ships, by a clock that a test sets: no API server waits 20 minutes
// for a responder. It is a module of its own, so that nothing else depends on Kubernetes.
package lifecycle
