// Package eviction evicts pods and decides when each eviction is sent. Each cluster has one
// Dispatcher, the only caller of its eviction API. The pods of a budget wait for that
// budget, all others for their time. The controller of Evacuations calls it, and a Queue,
// which keeps in memory the pods of Machines. A refused eviction never occupies a worker, and no
// change of a budget is missed. Pods are evicted by UID; nothing in memory is needed after a restart.
package eviction
