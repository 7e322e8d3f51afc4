package maintenance

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/labelindex"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/maintenance/plan"
	"ebbtide.dev/ebbtide/internal/core/maintenance/status"
	"ebbtide.dev/ebbtide/internal/core/nodebudget"
)

// observation holds the objects of a snapshot, parsed, related and classified.
type observation struct {
	Snapshot
	maintenances []*maintenance // oldest first, then by name
	nodes        []*node        // by name
	budgets      budgets
}

type node struct {
	object *corev1.Node
	gone   bool
	index  int // in observation.nodes
	// selections are the maintenances that select it, oldest first, drains those in Drain.
	selections, drains []*selection
	// waits are the maintenances that select it and wait for a NodeBudget, hold says for which.
	waits  []*maintenance
	hold   *nodebudget.Hold
	ledger *cordon.Ledger
	// holders are the sorted names of the maintenances that hold the node from now on.
	holders []string
	// listing are the ages of the maintenances that the ledger lists.
	listing []int
	// unclear is true if an invalid maintenance holds the node, so nothing is withdrawn.
	unclear bool
	record  *v1alpha1.DrainRecord
	agent   *Agent
	// inPlace is the oldest maintenance in Drain that leaves pods on the node.
	inPlace *maintenance
	// depth is the greatest drainDepth of the maintenances in Drain.
	depth int
	// kubeletStops is true if the kubelet stops all pods of the node itself, because it shuts
	// down: they are not evacuated, but those of DaemonSets must not be created again meanwhile
	// (KEP-4212, "kubelet: Graceful Node Shutdown").
	kubeletStops bool
	// read is true if the pods of the node are known. If it is in Drain, pods are the unfinished
	// ones, finished the others that we have requested to leave.
	read     bool
	pods     []pod
	finished []Pod
}

func (n *node) name() string { return n.object.Name }

type selection struct {
	maintenance *maintenance
	node        *node
	place       int // in node.drains
	// observed is the node in the status of the maintenance; nil if it is not listed.
	observed *v1alpha1.NodeMaintenanceNodeStatus
	// previous is the target that the status has for the node.
	previous *plan.Past
	// counts is true, by pod, if the maintenance waits for it; the others are retained.
	counts                        []bool
	pending, evacuating, retained int32
}

func (s *selection) waitsFor(i int) bool { return i < len(s.counts) && s.counts[i] }

// counted returns the number of pods that the maintenance waits for on the node.
func (s *selection) counted() int32 { return s.pending + s.evacuating }

// read reads a snapshot. Nodes that are gone while their pods are still there are not selected,
// so the Evacuations of these pods are withdrawn.
func read(snapshot Snapshot) *observation {
	s := &observation{
		Snapshot: snapshot, maintenances: readMaintenances(snapshot.Maintenances),
		budgets: budgets{all: snapshot.Budgets, compiled: map[string]budget.Compiled{}},
	}
	r := &reader{observation: s, byName: make(map[string]*maintenance, len(s.maintenances)), targets: plan.Pasts{}, ledgers: map[string]*cordon.Ledger{}}
	for _, m := range s.maintenances {
		r.byName[m.name()] = m
	}
	present := make(map[string]bool, len(snapshot.Nodes))
	for _, object := range snapshot.Nodes {
		present[object.Name] = true
		s.nodes = append(s.nodes, &node{object: object})
	}
	for name := range snapshot.Pods {
		if !present[name] {
			s.nodes = append(s.nodes, &node{gone: true, object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}})
		}
	}
	slices.SortFunc(s.nodes, func(a, b *node) int { return cmp.Compare(a.name(), b.name()) })
	for index, n := range s.nodes {
		n.index = index
		r.read(n)
	}
	return s
}

// reader reads nodes. It parses what many of them repeat only once.
type reader struct {
	*observation
	byName    map[string]*maintenance
	targets   plan.Pasts
	ledgers   map[string]*cordon.Ledger
	selectors labelindex.Index[*maintenance]
	indexed   bool
}

func (r *reader) read(n *node) {
	n.record = r.DrainRecords[n.name()]
	_, n.read = r.Pods[n.name()]
	if n.gone {
		return
	}
	if agent, found := r.Runners.Agents[n.name()]; found {
		n.agent = &agent
	}
	r.join(n)
	r.readHolders(n)
	for _, one := range n.drains {
		one.observed, one.previous = r.previous(one)
	}
	if len(n.drains) > 0 {
		r.readPods(n)
	}
}

const fewMaintenances = 16

// candidates returns the maintenances that can select a node, oldest first.
func (r *reader) candidates(object *corev1.Node) []*maintenance {
	if len(r.maintenances) <= fewMaintenances {
		return r.maintenances
	}
	if !r.indexed {
		r.indexed = true
		for _, m := range r.maintenances {
			r.selectors.Put(m, labelindex.OfNodeSelector(m.object.Spec.NodeSelector)...)
		}
	}
	return r.selectors.Candidates(object.Labels, labelindex.Name(object.Name))
}

// join adds the maintenances that select a node. Those that a NodeBudget holds back only wait.
func (r *reader) join(n *node) {
	var all []*maintenance
	for _, m := range r.candidates(n.object) {
		if !m.finished && m.invalid == nil && m.selector.Match(n.object) {
			all = append(all, m)
		}
	}
	n.hold = r.holding(n.object, all)
	for _, m := range all {
		if n.hold == nil || !Limited(m.object) {
			join(n, m)
			continue
		}
		n.waits = append(n.waits, m)
		m.waiting = append(m.waiting, &selection{maintenance: m, node: n, observed: m.observed[n.name()], previous: r.targets.Read(nil)})
	}
}

// holding returns what keeps maintenances from a node; nil if nothing does.
func (r *reader) holding(object *corev1.Node, by []*maintenance) *nodebudget.Hold {
	if r.NodeBudgets.Empty() || len(cordon.Holders(object)) > 0 {
		return nil
	}
	var limited []types.UID
	for _, m := range by {
		if Limited(m.object) {
			limited = append(limited, m.object.UID)
		}
	}
	if len(limited) == 0 {
		return nil
	}
	return r.NodeBudgets.Holding(object, limited)
}

func join(n *node, m *maintenance) {
	one := &selection{maintenance: m, node: n, place: len(n.drains)}
	m.selections = append(m.selections, one)
	n.selections = append(n.selections, one)
	n.kubeletStops = n.kubeletStops || m.stage == v1alpha1.StageCordon && OfShutdown(m.object) != ""
	if m.stage != v1alpha1.StageDrain {
		return
	}
	n.drains = append(n.drains, one)
	n.depth = max(n.depth, m.depth)
	if n.inPlace == nil && m.inPlace != nil {
		n.inPlace = m
	}
}

// readHolders reads the old and new holders of a node. An invalid maintenance keeps its nodes.
func (r *reader) readHolders(n *node) {
	n.holders = []string{}
	for _, one := range n.selections {
		if one.maintenance.holds() {
			n.holders = append(n.holders, one.maintenance.name())
		}
	}
	if text, present := n.object.Annotations[v1alpha1.CordonAnnotation]; present {
		if r.ledgers[text] == nil {
			r.ledgers[text] = cordon.ReadLedger(text)
		}
		n.ledger = r.ledgers[text]
		for _, name := range n.ledger.Holders {
			m := r.byName[name]
			if m == nil {
				continue
			}
			m.listed = append(m.listed, n)
			n.listing = append(n.listing, m.age)
			if m.invalid != nil && m.holds() {
				n.unclear = true
				n.holders = append(n.holders, name)
			}
		}
	}
	slices.Sort(n.holders)
	n.holders = slices.Compact(n.holders)
}

// previous reads the record of a node in the status; a plan before its drain was recorded.
func (r *reader) previous(one *selection) (*v1alpha1.NodeMaintenanceNodeStatus, *plan.Past) {
	m := one.maintenance
	observed := m.observed[one.node.name()]
	var lines []v1alpha1.DrainPlanEntry
	switch {
	case hasStarted(m.object, v1alpha1.StageIdle) && !hasStarted(m.object, v1alpha1.StageDrain):
		return nil, r.targets.Read(nil)
	case observed != nil:
		lines = observed.DrainTargets
	case one.node.ledger.Lists(m.name()):
		lines = status.Omitted(&m.object.Status)
	}
	return observed, r.targets.Read(lines)
}
