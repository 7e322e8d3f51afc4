// Package api is the provider of the sandbox as Cluster API's contract wants
// it: SandboxMachine is infrastructure, SandboxConfig makes bootstrap data.
//
// It holds the two kinds, their CRDs, and what a manager needs in order to deal
// with them. Nothing here is for a real cluster.
//
// +kubebuilder:object:generate=true
// +groupName=sandbox.ebbtide.dev
// +versionName=v1alpha1
package api
