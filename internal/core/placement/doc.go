// Package placement estimates where the scheduler would put a pod, and says why a pod
// fits nowhere. It asks what the filters of the default scheduler ask and of all its
// scores takes one: the node that is least filled.
//
// What it does not know it never takes for a yes: a pod of another scheduler, with
// claims for devices, or with volumes that could not be read gets no node and a reason
// that IsUnknown tells from one of a pod that fits nowhere. Ignores says what else is left out.
//
// It holds 20,000 pods on 1,000 nodes and may place all of them again. Pods that are
// equal to the scheduler share one search; what other pods have to say is counted as pods
// come and go, never by looking at all of them.
package placement
