// Package drainlock decides how the budgets of pods that stay on a node are locked while the
// node is away, and released afterwards (skip-drain-on-upgrade). A decision is at most one
// write besides the status. Locks are taken in order, under a mutex, and only if the budget
// allows all its pods on the node to go down. A node that cannot take all locks returns them.
// A confirmed lock stays until its pods are gone or ready again, and no lock stays forever.
package drainlock
