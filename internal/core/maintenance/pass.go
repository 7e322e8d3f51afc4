package maintenance

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
)

// pass is the working state of one Decide.
type pass struct {
	snapshot Snapshot
	// intents are oldest first, then by name.
	intents []*intent
	// sites are by name.
	sites []*site
	// targets, parsed and ledgers keep what is the same for many sites.
	targets map[string]target
	parsed  map[string]parsedTargets
	ledgers map[string]parsedLedger
	// budgets are compiled, by namespace.
	budgets map[string]budget.Compiled
	// due is when time alone changes the decision; zero is never.
	due time.Time
}

// site is a node in a pass.
type site struct {
	node *corev1.Node
	// shares are those of all intents that match the node, oldest first; drains
	// those of intents in Drain.
	shares, drains []*share
	// known is true if the pods of a node in Drain were read; pods are those
	// that are not done.
	known bool
	pods  []subject
	// depth is the greatest drainDepth of the intents in Drain.
	depth int
	// ruling is the intent whose drain plan the target follows.
	ruling *intent
	target target
	// record is the node's DrainRecord; nil if there is none. lock is what becomes
	// of it.
	record *v1alpha1.DrainRecord
	lock   lock

	cordon cordon
	// frozen is true if an intent holds the site that cannot be understood any
	// more: what it asks for is unknown, so nothing is taken back.
	frozen bool
	// wave is the order of the pods whose turn it is, later the lowest one that
	// pods wait for; noOrder if there is none.
	wave, later int64
	withdraw    []*v1alpha1.Evacuation
	// forbidden are Evacuations that would be withdrawn if their evacuator let us.
	forbidden []string
	// held are the blockers of its pods.
	held []heldPod
}

// target is which pods a site loses, as a set and as a status shows it.
type target struct {
	set drainplan.Set
	// full has a line for every selector, brief only those that the set needs.
	full, brief rendering
	suppression suppression
}

// rendering is a target as drainTargets.
type rendering struct {
	lines []v1alpha1.DrainPlanEntry
	// size is how many bytes the lines take in an object.
	size int
}

// share is what one intent has to do with one site.
type share struct {
	intent *intent
	site   *site
	// previous is the target that the intent's status recorded for the site.
	previous parsedTargets
	// observed is the site in the intent's status; nil if it is not listed.
	observed *v1alpha1.NodeMaintenanceNodeStatus
	// pending and evacuating are the counted pods without and with an
	// Evacuation, retained the pods that stay.
	pending, evacuating, retained int32
	// left are the counted pods under the target of the site.
	left int
	// beyond is true if a counted pod is selected by the intent's plan up to its
	// position but not by the target.
	beyond bool
	// blockers are what holds its pods, summed up and cut to a few; hindering are
	// those that are more than somebody at work, one by one.
	blockers, hindering []v1alpha1.Blocker
	message             string
	// turns is what follows the message: whose order has not come yet.
	turns string
}

// counted is how many pods the intent waits for on the site.
func (s *share) counted() int32 { return s.pending + s.evacuating }

// drained returns true if nothing is left, for all that is known, and nothing
// new can come: a node that still takes pods is not drained.
func (s *share) drained() bool { return s.done() && s.site.node.Spec.Unschedulable }

// done returns true if nothing is left, for all that is known: no pod that has to
// leave and, if the intent is in place, no lock that is missing.
func (s *share) done() bool {
	return s.site.known && s.counted() == 0 && (s.intent.inPlace == nil || s.site.lock.held)
}

func open(snapshot Snapshot) *pass {
	p := &pass{
		snapshot: snapshot,
		intents:  newIntents(snapshot.Maintenances),
		targets:  map[string]target{},
		parsed:   map[string]parsedTargets{},
		ledgers:  map[string]parsedLedger{},
		budgets:  map[string]budget.Compiled{},
	}
	nodes := slices.SortedFunc(slices.Values(snapshot.Nodes), func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	for _, node := range nodes {
		p.sites = append(p.sites, p.enter(node))
	}
	p.addVanished()
	return p
}

// addVanished adds the nodes that are gone and whose pods are still there. Nobody
// matches them, so the evacuations of their pods are withdrawn.
func (p *pass) addVanished() {
	vanished := maps.Clone(p.snapshot.Pods)
	for _, s := range p.sites {
		delete(vanished, s.node.Name)
	}
	for name := range vanished {
		gone := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.sites = append(p.sites, &site{node: gone, record: p.snapshot.Records[name]})
	}
	slices.SortFunc(p.sites, func(a, b *site) int { return cmp.Compare(a.node.Name, b.node.Name) })
}

// enter finds out who asks what of a node.
func (p *pass) enter(node *corev1.Node) *site {
	s := &site{node: node, record: p.snapshot.Records[node.Name]}
	for _, i := range p.intents {
		if !i.matches(node) {
			continue
		}
		one := &share{intent: i, site: s}
		i.shares = append(i.shares, one)
		s.shares = append(s.shares, one)
		if i.stage == v1alpha1.StageDrain {
			s.drains = append(s.drains, one)
			s.depth = max(s.depth, i.depth)
		}
	}
	s.cordon = p.newCordon(s)
	s.frozen = slices.ContainsFunc(p.intents, func(i *intent) bool { return i.keepsUnread(s.cordon.ledger) })
	return s
}

// requeue asks for another pass at a time.
func (p *pass) requeue(at time.Time) {
	if at.After(p.snapshot.Now) && (p.due.IsZero() || at.Before(p.due)) {
		p.due = at
	}
}

func (p *pass) requeueAfter() time.Duration {
	if p.due.IsZero() {
		return 0
	}
	return p.due.Sub(p.snapshot.Now)
}
