package maintenance

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/labelindex"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/maintenance/plan"
	"ebbtide.dev/ebbtide/internal/core/maintenance/status"
)

// observation is what a snapshot says: its objects parsed, related and classified.
type observation struct {
	Snapshot
	// maintenances are oldest first, then by name.
	maintenances []*maintenance
	// nodes are by name.
	nodes []*node
	// budgets finds those of a pod.
	budgets budgets
}

// node is a node as it was seen.
type node struct {
	// object is the node; only a name if it is gone.
	object *corev1.Node
	gone   bool
	// index is its place in observation.nodes.
	index int
	// selections are those of all maintenances that select it, the oldest first;
	// drains those of maintenances in Drain.
	selections, drains []*selection
	// ledger is nil if there is none.
	ledger *cordon.Ledger
	// holders are the sorted names of the maintenances that hold the node from now on.
	holders []string
	// listing are the ages of the maintenances that the ledger lists.
	listing []int
	// unclear is true if a maintenance holds the node whose spec is not understood:
	// what it asks for is unknown, so nothing is taken back.
	unclear bool
	// record is the node's DrainRecord; nil if there is none.
	record *v1alpha1.DrainRecord
	// agent is what is known of the node's agent; nil if it has none.
	agent *Agent
	// inPlace is the oldest maintenance in Drain that leaves pods on the node; nil if
	// none does.
	inPlace *maintenance
	// depth is the greatest drainDepth of the maintenances in Drain.
	depth int
	// kubeletStops is true if the kubelet ends all pods of the node itself, because it shuts down.
	kubeletStops bool
	// read is true if the pods of the node are known; pods are those of a node in
	// Drain that are not finished, finished the others that have an Evacuation of ours.
	read     bool
	pods     []pod
	finished []Pod
}

func (n *node) name() string { return n.object.Name }

// selection is a node that a maintenance selects.
type selection struct {
	maintenance *maintenance
	node        *node
	// place is its place among the drains of the node; it means nothing before Drain.
	place int
	// observed is the node in the status of the maintenance; nil if it is not listed.
	observed *v1alpha1.NodeMaintenanceNodeStatus
	// previous is the target that the status has for the node.
	previous *plan.Past
	// pending and evacuating are the counted pods without and with an Evacuation,
	// retained the pods that stay.
	pending, evacuating, retained int32
	// counts is by pod whether the maintenance waits for it.
	counts []bool
}

// waitsFor returns true if the maintenance waits for the pod at this place.
func (s *selection) waitsFor(i int) bool { return i < len(s.counts) && s.counts[i] }

// counted is how many pods the maintenance waits for on the node.
func (s *selection) counted() int32 { return s.pending + s.evacuating }

// read reads a snapshot.
func read(snapshot Snapshot) *observation {
	s := &observation{Snapshot: snapshot, maintenances: readMaintenances(snapshot.Maintenances), budgets: newBudgets(snapshot.Budgets)}
	r := &reader{observation: s, byName: byName(s.maintenances), targets: plan.Pasts{}, ledgers: map[string]*cordon.Ledger{}}
	for _, object := range snapshot.Nodes {
		s.nodes = append(s.nodes, &node{object: object})
	}
	s.nodes = append(s.nodes, vanished(snapshot)...)
	slices.SortFunc(s.nodes, func(a, b *node) int { return cmp.Compare(a.name(), b.name()) })
	for index, n := range s.nodes {
		n.index = index
		r.read(n)
	}
	return s
}

// vanished are the nodes that are gone and whose pods are still there. Nobody
// selects them, so the Evacuations of their pods are withdrawn.
func vanished(snapshot Snapshot) []*node {
	present := make(map[string]bool, len(snapshot.Nodes))
	for _, object := range snapshot.Nodes {
		present[object.Name] = true
	}
	var gone []*node
	for name := range snapshot.Pods {
		if !present[name] {
			gone = append(gone, &node{gone: true, object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}})
		}
	}
	return gone
}

// reader reads nodes, and what is written on many of them only once.
type reader struct {
	*observation
	byName  map[string]*maintenance
	targets plan.Pasts
	ledgers map[string]*cordon.Ledger
	// selectors finds maintenances by what their selectors ask for, once it is indexed.
	selectors labelindex.Index[*maintenance]
	indexed   bool
}

// read finds out who asks what of a node, and what its pods are.
func (r *reader) read(n *node) {
	n.record = r.DrainRecords[n.name()]
	_, n.read = r.Pods[n.name()]
	if n.gone {
		return
	}
	if agent, found := r.Runners.Agents[n.name()]; found {
		n.agent = &agent
	}
	for _, m := range r.candidates(n.object) {
		if m.selects(n.object) {
			r.join(n, m)
		}
	}
	r.readHolders(n)
	for place, one := range n.drains {
		one.place = place
		one.observed, one.previous = r.previous(one)
	}
	if len(n.drains) > 0 {
		r.readPods(n)
	}
}

// fewMaintenances is up to how many maintenances are all tried on every node.
const fewMaintenances = 16

// candidates are the maintenances that can select a node, the oldest first.
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

func (r *reader) join(n *node, m *maintenance) {
	one := &selection{maintenance: m, node: n}
	m.selections = append(m.selections, one)
	n.selections = append(n.selections, one)
	n.kubeletStops = n.kubeletStops || m.leavesPodsToTheKubelet()
	if m.stage != v1alpha1.StageDrain {
		return
	}
	n.drains = append(n.drains, one)
	n.depth = max(n.depth, m.depth)
	if n.inPlace == nil && m.inPlace != nil {
		n.inPlace = m
	}
}

// readHolders reads the ledger of a node and finds out who holds it from now on. A
// maintenance that is not understood any more keeps what it holds: which nodes it
// means is unknown.
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

// previous reads what the status of a maintenance says of a node. Before its drain was
// recorded that is no more than what it was going to do.
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
