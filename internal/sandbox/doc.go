// Package sandbox builds and runs a real Kubernetes control plane out of Go
// modules, without containers. On request, it downloads the official programs of
// Kubernetes instead of building them.
//
// Build compiles etcd, kube-apiserver, kube-controller-manager, kube-scheduler
// and kwok, each from a wrapper module of its own, so that their dependencies
// never meet each other's or ours. Start runs them as processes on free
// loopback ports; kwok plays the kubelets of nodes that carry its annotation.
//
// Invariants: a binary is either complete or absent; two builders of the same
// directory do not disturb each other; no process outlives the one that
// started it; everything listens on 127.0.0.1 only; what a component logs goes
// to a file and is shown only when the component fails. It refuses Kubernetes
// versions that it does not know.
package sandbox
