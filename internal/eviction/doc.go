// Package eviction evicts pods: who of the many that are to leave asks the API
// server when, for whoever wants them to leave.
//
// A Dispatcher makes pods of one budget wait for each other and for their budget, and
// all others for their time. A Queue evicts through it the pods of one cluster
// for many owners, without any object that asks for it. That a pod is to be
// evicted at all is decided elsewhere.
//
// Invariants: a refused eviction never holds a worker; no opening of a budget is
// lost; a pod is evicted by its UID, so that one that has come after it under its
// name stays; nothing in memory is needed to go on after a restart.
package eviction
