// Package scenario holds stories on a real control plane: real
// kube-controller-manager, kube-scheduler and kwok nodes, and the manager as a
// process under its own ClusterRole. Each applies objects and waits for states.
package scenario
