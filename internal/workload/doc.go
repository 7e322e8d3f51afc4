// Package workload keeps the connections to the clusters that the nodes of
// Machines are in: the one that Ebbtide runs in, and others by kubeconfig.
//
// A cluster is connected when somebody uses it and for a while after the last
// one has left. Nobody waits for it: until everything that Machines need is
// read, and whenever the cluster has stopped to answer, Use says why there is
// no connection. Each cluster has a goroutine of its own, so that one that does
// not answer slows down no other.
//
// What a connection has read is never older than its last answered probe: when
// a probe fails it is thrown away and read anew once the cluster is back, under
// a kubeconfig that is read anew, too. A kubeconfig may neither run commands nor
// read files, and nothing that is secret in it gets into a message.
package workload
