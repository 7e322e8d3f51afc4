// Package host holds what an agent outside of a pod additionally reads and writes: the Leases of
// API servers, the members of etcd, the claim on the control plane, and its own Lease. It needs
// rights that agents in pods do not have. A claim is never taken from another agent, and every
// write carries the version that was read.
package host
