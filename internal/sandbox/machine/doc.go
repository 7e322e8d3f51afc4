// Package machine runs real Kubernetes nodes on one Linux machine, without a container
// engine: each is one process tree in namespaces of its own, with its own root, network,
// cgroups, machine ID and boot ID. Its first process is this program, started again; when
// that is killed, the power is off and nothing of the node is left but its disk.
//
// A rack is a control machine, which has the bridge, and the nodes connected to it. Nothing
// listens, routes or is mounted in the host's namespaces. Who runs the control plane enters
// the network of the control machine.
//
// Invariants: no process and no mount outlives the process that opened the rack, however it
// ends; empty cgroups are removed by a janitor, or by whoever opens a rack next. Kernel
// settings of the host stay as they are. It refuses to begin where anything is missing, and
// names all of it. Main packages whose program opens racks call Main first.
package machine
