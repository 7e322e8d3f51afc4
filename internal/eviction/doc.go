// Package eviction evicts pods on behalf of their owners and decides when each eviction is sent.
// A Dispatcher makes the pods of a budget wait for that budget, and all others for their time. A
// Queue evicts the pods of one cluster without objects that ask for it. A refused eviction never
// occupies a worker, and no change of a budget is missed. Pods are evicted by UID, and nothing
// in memory is needed after a restart.
package eviction
