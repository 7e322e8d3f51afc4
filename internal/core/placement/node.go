package placement

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// The scheduler takes a container without requests for one that requests this much
// when it compares nodes.
const (
	usualMilliCPU = 100
	usualMemory   = 200 << 20
)

type node struct {
	*corev1.Node
	at       int32 // in Estimate.nodes, which are ordered by name
	cordoned bool
	free     []int64 // by resource
	slots    int64   // how many more pods it takes
	ports    map[port]int

	allCPU, allMemory int64 // allocatable
	cpu, memory       int64 // asked for, where nothing is asked the usual
	fill              float64
}

func (e *Estimate) newNode(at int32, from *corev1.Node) *node {
	n := &node{Node: from, at: at, cordoned: from.Spec.Unschedulable, ports: map[port]int{}}
	for name, quantity := range from.Status.Allocatable {
		if name == corev1.ResourcePods {
			n.slots = quantity.Value()
			continue
		}
		i := e.resourceAt(name)
		n.grow(i)
		n.free[i] = valueOf(name, quantity)
	}
	n.allCPU = from.Status.Allocatable.Cpu().MilliValue()
	n.allMemory = from.Status.Allocatable.Memory().Value()
	return n
}

func (n *node) grow(to int) {
	for len(n.free) <= to {
		n.free = append(n.free, 0)
	}
}

// charge returns what a pod takes from a node, or gives back.
func (n *node) charge(r *resident, by int64) {
	n.slots -= by
	n.cpu += by * r.cpu
	n.memory += by * r.memory
	for _, a := range r.request {
		n.grow(a.resource)
		n.free[a.resource] -= by * a.value
	}
	for _, p := range r.ports {
		n.ports[p] += int(by)
	}
	n.fill = (share(n.cpu, n.allCPU) + share(n.memory, n.allMemory)) / 2
}

func share(asked, all int64) float64 {
	if all <= 0 {
		return 1
	}
	return float64(asked) / float64(all)
}

func (n *node) rooms(c *class) obstacle {
	for _, p := range c.ports {
		if n.taken(p) {
			return obstacle{kind: portTaken, detail: p.number}
		}
	}
	if n.slots < 1 {
		return obstacle{kind: tooManyPods}
	}
	for _, a := range c.request {
		if a.resource >= len(n.free) || n.free[a.resource] < a.value {
			return obstacle{kind: tooLittle, detail: int32(a.resource)}
		}
	}
	return fit
}

// taken reports whether a port of the node is in use, on its address or on all.
func (n *node) taken(p port) bool {
	if len(n.ports) == 0 {
		return false
	}
	for other, count := range n.ports {
		same := other.number == p.number && other.protocol == p.protocol
		if count > 0 && same && (other.address == p.address || other.address == everyAddress || p.address == everyAddress) {
			return true
		}
	}
	return false
}

func byFill(a, b *node) int {
	return cmp.Or(cmp.Compare(a.fill, b.fill), cmp.Compare(a.at, b.at))
}

func (e *Estimate) reorder(n *node, change func()) {
	from, _ := slices.BinarySearchFunc(e.order, n, byFill)
	change()
	rest := slices.Delete(e.order, from, from+1)
	to, _ := slices.BinarySearchFunc(rest, n, byFill)
	e.order = slices.Insert(rest, to, n)
}
