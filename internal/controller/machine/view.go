package machine

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"ebbtide.dev/ebbtide/internal/core/volume"
	"ebbtide.dev/ebbtide/internal/eviction"
	"ebbtide.dev/ebbtide/internal/workload"
)

// view is what a Machine that is being deleted, or waits for its Node, looks at.
type view struct {
	// cluster is the Cluster that it uses.
	cluster types.NamespacedName
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

// views tells which Machines look at what, so that events of everything else
// are dropped. It is safe for concurrent use.
type views struct {
	*workload.WatchIndex[types.NamespacedName, view]
	// logged is what the log says last of the drain of each Machine.
	logged sync.Map
}

func newViews() *views {
	return &views{WatchIndex: workload.NewWatchIndex[types.NamespacedName, view]()}
}

// surround notes what is around the pods of a Machine's node. Call it before that
// is read.
func (v *views) surround(machine types.NamespacedName, around sets.Set[surrounding]) {
	if place, at, known := v.Of(machine); known {
		at.around = around
		v.Watch(machine, place, at)
	}
}

// in returns the Machines that look at any node of a cluster.
func (v *views) in(cluster types.NamespacedName) []types.NamespacedName {
	return v.Where(func(_ types.NamespacedName, at workload.Place, _ view) bool {
		return at.Cluster == cluster && at.Node != ""
	})
}

// around returns the Machines of a cluster on whose nodes a pod has to do with an
// object.
func (v *views) around(cluster types.NamespacedName, object surrounding) []types.NamespacedName {
	return v.Where(func(_ types.NamespacedName, at workload.Place, seen view) bool {
		return at.Cluster == cluster && at.Node != "" && seen.around.Has(object)
	})
}

// within returns the Machines of a namespace that look at a node.
func (v *views) within(namespace string) []types.NamespacedName {
	return v.Where(func(machine types.NamespacedName, at workload.Place, _ view) bool {
		return machine.Namespace == namespace && at.Node != ""
	})
}

// told tells whether the log says this of the drain of a Machine already.
func (v *views) told(machine types.NamespacedName, message string) bool {
	before, _ := v.logged.Swap(machine, message)
	text, _ := before.(string)
	return text == message
}
