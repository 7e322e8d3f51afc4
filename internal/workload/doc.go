// Package workload keeps the connections to the clusters of Machines: the local one and remote
// ones by kubeconfig. Nothing waits for a connection: Use returns the reason if there is none.
// Each cluster has its own goroutine, so a slow one delays no other. When a probe fails, the
// cache is dropped and read again later. A kubeconfig may not run commands or read files, and no
// secret of it reaches a message.
package workload
