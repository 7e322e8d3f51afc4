package placement

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helper "k8s.io/component-helpers/resource"
)

const everyAddress = "0.0.0.0"

type port struct {
	number   int32
	protocol corev1.Protocol
	address  string
}

// amount counts milli-cores of CPU, and units of every other resource.
type amount struct {
	resource int
	value    int64
}

// resident is a pod on a node, or a copy of one that was placed.
type resident struct {
	node        *node
	kin         *kin
	request     []amount
	cpu, memory int64
	ports       []port
	holds       []*term // its required anti-affinity
	claims      []string
	terminating bool
	original    bool
}

func (r *resident) copied() bool { return !r.original }

func (e *Estimate) newResident(pod *corev1.Pod, n *node) *resident {
	r := &resident{node: n, kin: e.kinOf(pod), ports: portsOf(pod), claims: claimsOf(pod), original: true}
	// What a kubelet has granted counts where it is more than the pod requests now.
	r.request, r.cpu, r.memory = e.requestOf(pod, helper.PodResourcesOptions{
		UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true,
	})
	r.holds = e.antiTerms(pod)
	return r
}

// add counts a pod, or no longer.
func (e *Estimate) add(r *resident, by int32) {
	r.node.charge(r, int64(by))
	r.kin.add(r, by)
	for _, t := range r.holds {
		t.holders.add(r.node.at, by)
	}
	for _, claim := range r.claims {
		e.users[claim] += int(by)
	}
}

// requestOf returns the requests of a pod, and its CPU and memory for scoring.
func (e *Estimate) requestOf(pod *corev1.Pod, options helper.PodResourcesOptions) (all []amount, cpu, memory int64) {
	cpu, memory = usualMilliCPU, usualMemory
	for name, quantity := range helper.PodRequests(pod, options) {
		value := valueOf(name, quantity)
		if value <= 0 {
			continue
		}
		switch name {
		case corev1.ResourceCPU:
			cpu = value
		case corev1.ResourceMemory:
			memory = value
		}
		all = append(all, amount{e.resourceAt(name), value})
	}
	slices.SortFunc(all, func(a, b amount) int { return cmp.Compare(a.resource, b.resource) })
	return all, cpu, memory
}

func (e *Estimate) resourceAt(name corev1.ResourceName) int {
	i, known := e.resources[name]
	if !known {
		i = len(e.resource)
		e.resources[name] = i
		e.resource = append(e.resource, name)
	}
	return i
}

func valueOf(name corev1.ResourceName, quantity resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}

func portsOf(pod *corev1.Pod) (all []port) {
	of := func(list []corev1.Container, runs func(*corev1.Container) bool) {
		for i := range list {
			for _, p := range list[i].Ports {
				if p.HostPort > 0 && runs(&list[i]) {
					all = append(all, port{p.HostPort, cmp.Or(p.Protocol, corev1.ProtocolTCP), cmp.Or(p.HostIP, everyAddress)})
				}
			}
		}
	}
	of(pod.Spec.InitContainers, func(c *corev1.Container) bool {
		return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
	of(pod.Spec.Containers, func(*corev1.Container) bool { return true })
	return all
}

// claimsOf returns the named claims of a pod. Ephemeral ones differ in each copy.
func claimsOf(pod *corev1.Pod) (all []string) {
	for i := range pod.Spec.Volumes {
		if claim := pod.Spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			all = append(all, pod.Namespace+"/"+claim.ClaimName)
		}
	}
	return all
}
