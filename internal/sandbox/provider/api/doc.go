// Package api holds the kinds of the sandbox's provider, with their CRDs: SandboxMachine is
// infrastructure and SandboxConfig creates bootstrap data, as Cluster API's contract wants it.
// Nothing here is for a real cluster.
//
// +kubebuilder:object:generate=true
// +groupName=sandbox.ebbtide.dev
// +versionName=v1alpha1
package api
