// Package machine runs real Kubernetes nodes on one Linux machine without a container engine.
// Each node is a process tree with its own root, network, cgroups, machine ID and boot ID; to
// kill its first process is a power cut. A rack is the nodes and the bridge that connects them.
// No process and no mount outlives the opener of a rack, and the host's settings do not change.
// Programs that open racks call Main first.
package machine
