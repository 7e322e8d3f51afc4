package machine

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"ebbtide.dev/ebbtide/internal/core/volume"
	"ebbtide.dev/ebbtide/internal/eviction"
)

// view is what a Machine that is being deleted, or waits for its Node, looks at.
type view struct {
	// cluster is the Cluster that it uses.
	cluster types.NamespacedName
	// place is its node. The name is empty while that is not known.
	place place
	// evictions has its pods; nil unless it may have been given some.
	evictions *eviction.Queue
	// around is what the pods of the node are in, belong to and use.
	around sets.Set[surrounding]
}

// surrounding is an object whose change matters to those on whose node a pod has
// to do with it.
type surrounding struct {
	kind string
	types.NamespacedName
}

// surroundingsOf are the namespaces, DaemonSets and claims of pods.
func surroundingsOf(pods []corev1.Pod) sets.Set[surrounding] {
	around := sets.New[surrounding]()
	for i := range pods {
		pod := &pods[i]
		around.Insert(surrounding{kindNamespace, types.NamespacedName{Name: pod.Namespace}})
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owner.Kind == kindDaemonSet {
			around.Insert(surrounding{kindDaemonSet, types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}})
		}
		for _, claim := range volume.Claims(pod) {
			around.Insert(surrounding{kindClaim, claim})
		}
	}
	return around
}

// Kinds of surroundings.
const (
	kindNamespace = "Namespace"
	kindDaemonSet = "DaemonSet"
	kindClaim     = "PersistentVolumeClaim"
)

// place is a node of a cluster, by workload.Identity.
type place struct {
	cluster types.NamespacedName
	node    string
}

// views tells which Machines look at what, so that events of everything else
// are dropped. It is safe for concurrent use.
type views struct {
	mu       sync.Mutex
	machines map[types.NamespacedName]view
	nodes    map[place]sets.Set[types.NamespacedName]
	// logged is what the log says last of the drain of each Machine.
	logged map[types.NamespacedName]string
}

func newViews() *views {
	return &views{
		machines: map[types.NamespacedName]view{}, nodes: map[place]sets.Set[types.NamespacedName]{},
		logged: map[types.NamespacedName]string{},
	}
}

// look notes what a Machine looks at, and returns what it looked at before. Call
// it before anything is read: an event that comes later finds the Machine.
func (v *views) look(machine types.NamespacedName, at view) (before view) {
	v.mu.Lock()
	defer v.mu.Unlock()
	before, known := v.machines[machine]
	if known && before.place != at.place {
		v.leave(machine, before.place)
	}
	v.machines[machine] = at
	if at.place.node == "" {
		return before
	}
	if v.nodes[at.place] == nil {
		v.nodes[at.place] = sets.New[types.NamespacedName]()
	}
	v.nodes[at.place].Insert(machine)
	return before
}

// away forgets what a Machine looked at and returns it.
func (v *views) away(machine types.NamespacedName) (before view, known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	before, known = v.machines[machine]
	if known {
		v.leave(machine, before.place)
		delete(v.machines, machine)
		delete(v.logged, machine)
	}
	return before, known
}

func (v *views) leave(machine types.NamespacedName, at place) {
	if v.nodes[at].Delete(machine); v.nodes[at].Len() == 0 {
		delete(v.nodes, at)
	}
}

// of returns the Machines that look at a node.
func (v *views) of(at place) []types.NamespacedName {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.nodes[at].UnsortedList()
}

// in returns the Machines that look at any node of a cluster.
func (v *views) in(cluster types.NamespacedName) []types.NamespacedName {
	return v.which(func(_ types.NamespacedName, at view) bool { return at.place.cluster == cluster })
}

// surround notes what is around the pods of a Machine's node. Call it before that
// is read.
func (v *views) surround(machine types.NamespacedName, around sets.Set[surrounding]) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if at, known := v.machines[machine]; known {
		at.around = around
		v.machines[machine] = at
	}
}

// around returns the Machines of a cluster on whose nodes a pod has to do with an
// object.
func (v *views) around(cluster types.NamespacedName, object surrounding) []types.NamespacedName {
	return v.which(func(_ types.NamespacedName, at view) bool {
		return at.place.cluster == cluster && at.around.Has(object)
	})
}

// within returns the Machines of a namespace that look at a node.
func (v *views) within(namespace string) []types.NamespacedName {
	return v.which(func(machine types.NamespacedName, _ view) bool { return machine.Namespace == namespace })
}

func (v *views) which(wanted func(types.NamespacedName, view) bool) (found []types.NamespacedName) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for machine, at := range v.machines {
		if at.place.node != "" && wanted(machine, at) {
			found = append(found, machine)
		}
	}
	return found
}

// told tells whether the log says this of the drain of a Machine already.
func (v *views) told(machine types.NamespacedName, message string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	before := v.logged[machine]
	v.logged[machine] = message
	return before == message
}
