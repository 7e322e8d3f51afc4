// Package bridge decides what Ebbtide does for Machines of Cluster API and OpenShift. It puts a
// hook on a Machine before its deletion, drains its node, and removes the hook when the node is
// drained, when there is nothing to drain, when time is over, or when the bridge is switched
// off. Unknown removes no hook. Hooks of others go first and are never written. Without our
// hook, a Machine is not ours.
package bridge
