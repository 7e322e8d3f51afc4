// Package host is what an agent that runs as a unit of its host reads and writes besides: the
// Leases of API servers, the members of etcd, the claim on the control plane, and a Lease of
// its own that tells that it runs. All of it needs rights that agents in pods do not have.
//
// Invariants: a claim is taken from nobody; every write is made under the version that was
// read.
package host
