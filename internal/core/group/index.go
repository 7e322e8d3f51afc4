package group

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/labelindex"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

// everyNode is a pair that every node is filed under. No label has an empty key.
var everyNode = labelindex.Pair{}

// Index holds all NodeMaintenances and nodes and their relations. The zero value is empty. It is not
// safe for concurrent use.
type Index struct {
	maintenances map[string]*selecting
	nodes        map[string]*selected
	// selectors indexes maintenances by their selectors, labelled nodes by labels and name, held
	// nodes by the maintenances in their ledgers.
	selectors labelindex.Index[string]
	labelled  map[labelindex.Pair]map[string]bool
	held      map[string]map[string]bool
}

type selecting struct {
	// selector is nil if it selects no node.
	selector *maintenance.NodeSelector
	terms    []labelindex.Term
	// over is true if the maintenance is finished and belongs to no node.
	over  bool
	nodes map[string]bool
	group *Group
}

type selected struct {
	object       *corev1.Node
	holders      []string
	maintenances map[string]bool
	group        *Group
}

// SetMaintenance adds or changes a maintenance, and returns the nodes that no longer belong to it.
func (x *Index) SetMaintenance(m *v1alpha1.NodeMaintenance) []Member {
	x.init()
	known := x.maintenances[m.Name]
	if known == nil {
		known = &selecting{nodes: map[string]bool{}}
		x.maintenances[m.Name] = known
	}
	known.over = maintenance.Finished(m)
	known.terms = nil
	if known.selector = maintenance.Selector(m); known.selector != nil {
		known.terms = labelindex.OfNodeSelector(m.Spec.NodeSelector)
	}
	x.selectors.Put(m.Name, known.terms...)
	nodes := map[string]bool{}
	for _, candidates := range x.candidates(m.Name, known) {
		for name := range candidates {
			if known.has(m.Name, x.nodes[name]) {
				nodes[name] = true
			}
		}
	}
	return x.relate(Maintenance(m.Name), known.nodes, nodes)
}

// DeleteMaintenance removes a maintenance, and returns the nodes that belonged to it.
func (x *Index) DeleteMaintenance(name string) []Member {
	known := x.maintenances[name]
	if known == nil {
		return nil
	}
	left := x.relate(Maintenance(name), known.nodes, nil)
	x.selectors.Delete(name)
	delete(x.maintenances, name)
	return left
}

// SetNode adds or changes a node, and returns the maintenances that it no longer belongs to.
func (x *Index) SetNode(node *corev1.Node) []Member {
	x.init()
	known := x.nodes[node.Name]
	if known == nil {
		known = &selected{object: &corev1.Node{}, maintenances: map[string]bool{}}
		x.nodes[node.Name] = known
		x.file(everyNode, node.Name)
		x.file(labelindex.Name(node.Name), node.Name)
	}
	before := known.object
	known.object = node
	sameLabels := maps.Equal(before.Labels, node.Labels)
	sameLedger := before.Annotations[v1alpha1.CordonAnnotation] == node.Annotations[v1alpha1.CordonAnnotation]
	if before.Name != "" && sameLabels && sameLedger {
		return nil
	}
	x.relabel(node.Name, before.Labels, node.Labels)
	x.hold(node.Name, known, cordon.Holders(node))
	return x.relate(Node(node.Name), known.maintenances, x.selecting(known))
}

// DeleteNode removes a node, and returns the maintenances that it belonged to.
func (x *Index) DeleteNode(name string) []Member {
	known := x.nodes[name]
	if known == nil {
		return nil
	}
	left := x.relate(Node(name), known.maintenances, nil)
	x.relabel(name, known.object.Labels, nil)
	x.unfile(everyNode, name)
	x.unfile(labelindex.Name(name), name)
	x.hold(name, known, nil)
	delete(x.nodes, name)
	return left
}

// Selected returns true if the node belongs to a maintenance.
func (x *Index) Selected(node string) bool {
	known := x.nodes[node]
	return known != nil && len(known.maintenances) > 0
}

func (x *Index) init() {
	if x.nodes == nil {
		x.nodes, x.maintenances = map[string]*selected{}, map[string]*selecting{}
		x.labelled, x.held = map[labelindex.Pair]map[string]bool{}, map[string]map[string]bool{}
	}
}

func (s *selecting) has(name string, node *selected) bool {
	if s.over || node == nil {
		return false
	}
	return s.selector != nil && s.selector.Match(node.object) || slices.Contains(node.holders, name)
}

// candidates returns sets of nodes, one of which contains every node that belongs to a maintenance.
func (x *Index) candidates(name string, m *selecting) []map[string]bool {
	sets := []map[string]bool{x.held[name]}
	for _, term := range m.terms {
		pairs, found := term.Anchor(func(p labelindex.Pair) int { return len(x.labelled[p]) })
		if !found {
			pairs = labelindex.Condition{everyNode}
		}
		for _, pair := range pairs {
			sets = append(sets, x.labelled[pair])
		}
	}
	return sets
}

func (x *Index) selecting(node *selected) map[string]bool {
	names := map[string]bool{}
	candidates := x.selectors.Candidates(node.object.Labels, labelindex.Name(node.object.Name))
	for _, name := range slices.Concat(candidates, node.holders) {
		if m := x.maintenances[name]; m != nil && m.has(name, node) {
			names[name] = true
		}
	}
	return names
}

func (x *Index) relabel(name string, before, now map[string]string) {
	for key, value := range before {
		x.unfile(labelindex.Pair{Key: key, Value: value}, name)
	}
	for key, value := range now {
		x.file(labelindex.Pair{Key: key, Value: value}, name)
	}
}

func (x *Index) file(pair labelindex.Pair, name string)   { insert(x.labelled, pair, name) }
func (x *Index) unfile(pair labelindex.Pair, name string) { remove(x.labelled, pair, name) }

func (x *Index) hold(name string, node *selected, holders []string) {
	for _, holder := range node.holders {
		remove(x.held, holder, name)
	}
	for _, holder := range holders {
		insert(x.held, holder, name)
	}
	node.holders = holders
}

func insert[K comparable](sets map[K]map[string]bool, key K, name string) {
	if sets[key] == nil {
		sets[key] = map[string]bool{}
	}
	sets[key][name] = true
}

func remove[K comparable](sets map[K]map[string]bool, key K, name string) {
	delete(sets[key], name)
	if len(sets[key]) == 0 {
		delete(sets, key)
	}
}

// NodesOf returns the nodes that belong to a maintenance, in no order.
func (x *Index) NodesOf(maintenance string) []string {
	known := x.maintenances[maintenance]
	if known == nil {
		return nil
	}
	return slices.Collect(maps.Keys(known.nodes))
}
