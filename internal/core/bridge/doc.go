// Package bridge decides what Ebbtide does for the machines of other controllers (Cluster
// API, OpenShift): it drains the node of a Machine that is being deleted, behind a hook that
// these controllers wait for.
//
// The hook is put on before anything is deleted. It is taken off when the node is drained,
// when there is nothing to drain, when the time is over that the Machine has for it, and
// when nobody wants the bridge any more.
//
// Invariants: what we do not know of a node takes no hook off; hooks of others go first and
// are never written; once our hook is gone, the Machine is not ours.
package bridge
