package placement

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"

	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Ignores lists the limits of the estimate, for people, one per line.
var Ignores = []string{
	"preemption: a pod that would only fit by removing others of lower priority counts as one that fits nowhere",
	"all scores but one: it takes the node that is least filled, and the scheduler may prefer another",
	"how many volumes a node can attach, and how much storage a provisioner has left",
	"disks that pods name themselves, without a claim",
	"nodes that an autoscaler would add, and pods that wait for a node already",
	"groups of pods that are scheduled together, extenders and plugins of the scheduler",
	"templates that name their node themselves, past the scheduler",
}

// World holds the objects that the scheduler reads.
type World struct {
	Nodes []*corev1.Node
	// Pods may be all of the cluster: those without a node, and those that are done, take no room.
	Pods       []*corev1.Pod
	Claims     []*corev1.PersistentVolumeClaim
	Volumes    []*corev1.PersistentVolume
	Classes    []*storagev1.StorageClass
	Namespaces []*corev1.Namespace
	Unread     Unread
}

// Unread says for each kind why its objects could not be read; empty if they were.
type Unread struct{ Claims, Volumes, Classes, Namespaces string }

// unknownPrefix begins the reasons of pods of which it is not known whether they fit.
const unknownPrefix = "unknown: "

// IsUnknown reports whether Place could not tell if a pod fits.
func IsUnknown(why string) bool { return strings.HasPrefix(why, unknownPrefix) }

// Estimate is a hypothetical cluster. It is not safe for concurrent use.
type Estimate struct {
	nodes     []*node
	byName    map[string]*node
	order     []*node // the least filled first
	resources map[corev1.ResourceName]int
	resource  []corev1.ResourceName

	pods    map[string][]*resident
	users   map[string]int // of claims
	classes map[string]*class
	sites   map[string]*site
	reaches map[string]*reach
	reasons []string
	said    map[string]int32

	kins       map[string]*kin
	withPair   map[pair][]*kin
	allKins    []*kin
	terms      map[string]*term
	allTerms   []*term
	topologies map[string]*topology
	namespaces map[string]labels.Set

	storage
	unread Unread

	// freed counts what may let a pod fit that nothing but room keeps away, changes everything.
	freed, changes int
}

// New returns the cluster as it is.
func New(w World) *Estimate {
	e := &Estimate{
		byName: make(map[string]*node, len(w.Nodes)), resources: map[corev1.ResourceName]int{},
		pods: make(map[string][]*resident, len(w.Pods)), users: map[string]int{}, classes: map[string]*class{},
		sites: map[string]*site{}, reaches: map[string]*reach{}, said: map[string]int32{},
		kins: map[string]*kin{}, withPair: map[pair][]*kin{}, terms: map[string]*term{},
		topologies: map[string]*topology{}, namespaces: make(map[string]labels.Set, len(w.Namespaces)),
		storage: newStorage(w), unread: w.Unread,
	}
	for _, ns := range w.Namespaces {
		e.namespaces[ns.Name] = ns.Labels
	}
	nodes := slices.Clone(w.Nodes)
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	for i, n := range nodes {
		one := e.newNode(int32(i), n)
		e.nodes, e.byName[n.Name] = append(e.nodes, one), one
	}
	present := slices.DeleteFunc(slices.Clone(w.Pods), func(pod *corev1.Pod) bool {
		return e.byName[pod.Spec.NodeName] == nil || podclass.Terminal(pod)
	})
	// Selectors find pods by their labels, so those come first.
	for _, pod := range present {
		e.kinOf(pod)
	}
	for _, pod := range present {
		e.settle(pod, e.byName[pod.Spec.NodeName])
	}
	e.order = slices.Clone(e.nodes)
	slices.SortFunc(e.order, byFill)
	return e
}

// settle is put before there is an order.
func (e *Estimate) settle(pod *corev1.Pod, n *node) {
	r := e.newResident(pod, n)
	r.terminating = pod.DeletionTimestamp != nil
	e.add(r, 1)
	e.pods[identity(pod)] = append(e.pods[identity(pod)], r)
}

// Place puts a copy of a pod on the node that the scheduler would choose, or says why none fits.
func (e *Estimate) Place(pod *corev1.Pod) (name string, why string) {
	c := e.classOf(pod)
	if c.problem != "" {
		return "", c.problem
	}
	if c.failed != "" && c.failedAt == e.age(c) {
		return "", c.failed
	}
	n, why := e.search(c)
	if n == nil {
		c.failed, c.failedAt = why, e.age(c)
		return "", why
	}
	r := &resident{node: n, kin: c.kin, request: c.request, cpu: c.cpu, memory: c.memory, ports: c.ports, holds: c.anti, claims: c.claims}
	e.bind(c, n)
	e.put(r, 1)
	e.pods[identity(pod)] = append(e.pods[identity(pod)], r)
	return n.Name, ""
}

// age returns when a failed search has to be made again.
func (e *Estimate) age(c *class) int {
	if c.local() {
		return e.freed
	}
	return e.changes
}

// Remove forgets the original of a pod, or the last placed copy.
func (e *Estimate) Remove(pod *corev1.Pod) {
	id := identity(pod)
	all := e.pods[id]
	if len(all) == 0 {
		return
	}
	gone := 0
	if all[0].copied() {
		gone = len(all) - 1
	}
	r := all[gone]
	if e.pods[id] = slices.Delete(all, gone, gone+1); len(e.pods[id]) == 0 {
		delete(e.pods, id)
	}
	e.put(r, -1)
	if !r.node.cordoned {
		e.freed++
	}
}

// Cordon takes a node out of the choice, for pods that do not tolerate that.
func (e *Estimate) Cordon(name string) {
	n := e.byName[name]
	if n == nil || n.cordoned {
		return
	}
	n.cordoned = true
	e.freed++
	e.changes++
	for _, t := range e.allTerms {
		if t.eligible != nil && t.eligible.taints {
			t.stale = true
		}
	}
}

// search returns the least filled of the nodes that fit, or why none does.
func (e *Estimate) search(c *class) (*node, string) {
	e.refresh(c)
	for _, n := range e.order {
		if e.fits(c, n) == fit {
			return n, ""
		}
	}
	return nil, e.explain(c)
}

// fits returns what keeps the pods of a class away from a node, in the order of the scheduler.
func (e *Estimate) fits(c *class, n *node) obstacle {
	if n.cordoned && !c.site.toleratesCordon {
		return obstacle{kind: cordoned}
	}
	if o := e.allows(c.site, n); o != fit {
		return o
	}
	if o := n.rooms(c); o != fit {
		return o
	}
	if o := e.reachable(c, n); o != fit {
		return o
	}
	return e.agrees(c, n)
}

// put is add, with the node at its new place in the order.
func (e *Estimate) put(r *resident, by int32) {
	e.changes++
	e.reorder(r.node, func() { e.add(r, by) })
}

func identity(pod *corev1.Pod) string {
	if pod.UID != "" {
		return string(pod.UID)
	}
	return pod.Namespace + "/" + pod.Name
}
