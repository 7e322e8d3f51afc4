package nodemaintenance

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"

	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// watched holds the nodes whose pods the last passes have read. Event handlers drop the events of all
// other pods and budgets.
type watched struct {
	mu    sync.RWMutex
	nodes map[string]*watchedNode
	in    index // by namespace of pods
}

type watchedNode struct {
	namespaces sets.Set[string]
	// inPlace is true if pods may stay on the node, so that a change of budgets is urgent; blocked if
	// its status may name a budget.
	inPlace, blocked bool
}

func newWatched() *watched {
	return &watched{nodes: map[string]*watchedNode{}, in: index{}}
}

// set watches those nodes of a group that are read, and no others.
func (w *watched) set(nodes []string, read sets.Set[string]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range nodes {
		switch known := w.nodes[name]; {
		case known == nil && read.Has(name):
			w.nodes[name] = &watchedNode{}
		case known != nil && !read.Has(name):
			w.move(name, known, nil)
			delete(w.nodes, name)
		}
	}
}

// namespaces notes the namespaces of the pods of watched nodes, and returns all.
func (w *watched) namespaces(pods map[string][]maintenance.Pod, inPlace bool) sets.Set[string] {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := sets.New[string]()
	for name, onNode := range pods {
		namespaces := sets.New[string]()
		for _, pod := range onNode {
			namespaces.Insert(pod.Object.Namespace)
			all.Insert(pod.Object.Namespace)
		}
		if known := w.nodes[name]; known != nil {
			known.inPlace = inPlace
			w.move(name, known, namespaces)
		}
	}
	return all
}

func (w *watched) move(name string, node *watchedNode, to sets.Set[string]) {
	for namespace := range node.namespaces.Difference(to) {
		w.in.remove(namespace, name)
	}
	for namespace := range to.Difference(node.namespaces) {
		w.in.insert(namespace, name)
	}
	node.namespaces = to
}

// block notes which nodes of a group have blocked pods.
func (w *watched) block(nodes []string, blocked func(node string) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range nodes {
		if known := w.nodes[name]; known != nil {
			known.blocked = blocked(name)
		}
	}
}

// has returns true if the pods of a node are read.
func (w *watched) has(node string) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.nodes[node] != nil
}

func (w *watched) all() []group.Member {
	w.mu.RLock()
	defer w.mu.RUnlock()
	found := make([]group.Member, 0, len(w.nodes))
	for name := range w.nodes {
		found = append(found, group.Node(name))
	}
	return found
}

// withPodsIn returns the matching watched nodes with pods in a namespace.
func (w *watched) withPodsIn(namespace string, match func(*watchedNode) bool) []group.Member {
	w.mu.RLock()
	defer w.mu.RUnlock()
	var found []group.Member
	for name := range w.in[namespace] {
		if match(w.nodes[name]) {
			found = append(found, group.Node(name))
		}
	}
	return found
}
