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

// view holds the dependencies of a Machine that is being deleted or waits for its Node.
type view struct {
	cluster types.NamespacedName
	// evictions is nil unless it may hold pods of the Machine.
	evictions *eviction.Queue
	// around are objects that the pods of the node belong to or use.
	around sets.Set[surrounding]
}

// surrounding is an object whose change matters to Machines with related pods.
type surrounding struct {
	kind string
	types.NamespacedName
}

// surroundingsOf returns the namespaces, DaemonSets and claims of pods.
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

// views index the dependencies of Machines, so that other events are ignored. It is safe for
// concurrent use.
type views struct {
	*workload.WatchIndex[types.NamespacedName, view]
	// logged is the last logged drain message of each Machine.
	logged sync.Map
}

func newViews() *views {
	return &views{WatchIndex: workload.NewWatchIndex[types.NamespacedName, view]()}
}

// surround must be called before the surroundings are read.
func (v *views) surround(machine types.NamespacedName, around sets.Set[surrounding]) {
	if place, at, known := v.Of(machine); known {
		at.around = around
		v.Watch(machine, place, at)
	}
}

// in returns the Machines that depend on any node of a cluster.
func (v *views) in(cluster types.NamespacedName) []types.NamespacedName {
	return v.Where(func(_ types.NamespacedName, at workload.Place, _ view) bool {
		return at.Cluster == cluster && at.Node != ""
	})
}

// around returns the Machines of a cluster with pods related to an object.
func (v *views) around(cluster types.NamespacedName, object surrounding) []types.NamespacedName {
	return v.Where(func(_ types.NamespacedName, at workload.Place, seen view) bool {
		return at.Cluster == cluster && at.Node != "" && seen.around.Has(object)
	})
}

// within returns the Machines of a namespace that depend on a node.
func (v *views) within(namespace string) []types.NamespacedName {
	return v.Where(func(machine types.NamespacedName, at workload.Place, _ view) bool {
		return machine.Namespace == namespace && at.Node != ""
	})
}

// isLogged reports whether the message of a drain was logged last, and notes it.
func (v *views) isLogged(machine types.NamespacedName, message string) bool {
	before, _ := v.logged.Swap(machine, message)
	text, _ := before.(string)
	return text == message
}
