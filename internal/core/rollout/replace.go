package rollout

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// Replacement deletes the object that owns the machine of a drained node, unless its NodeMaintenance
// or the node has changed.
type Replacement struct {
	Node    string
	NodeUID types.UID
	// Maintenance is the NodeMaintenance of the snapshot.
	Maintenance *v1alpha1.NodeMaintenance
}

// Unreplaced says why a machine was not deleted, by one of the reasons of the API.
type Unreplaced struct{ Reason, Message string }

// Replaced is the part of an Attempt that is written before the machine of its node is deleted. It
// remains when the node is gone.
type Replaced struct {
	// Since is the time when the node was drained.
	Since metav1.Time `json:"since"`
	// Unneeded is true if no other node has to join, as Karpenter decides how many there are.
	Unneeded bool `json:"unneeded,omitempty"`
	// Budgets are the NodeBudgets that selected the node, Domains the labels that these and the rollout
	// need.
	Budgets []string          `json:"budgets,omitempty"`
	Domains map[string]string `json:"domains,omitempty"`
	// Done is the time when the node was gone and another one Ready; By is the UID of that one.
	Done *metav1.Time `json:"done,omitempty"`
	By   types.UID    `json:"by,omitempty"`
}

func (r *rollout) replaces() bool { return r.object.Spec.After == v1alpha1.AfterReplace }

// running returns true if nodes that are drained may be replaced.
func (r *rollout) running() bool {
	return r.spec != nil && r.object.DeletionTimestamp == nil && r.object.Spec.State != v1alpha1.RolloutPaused && r.object.Spec.State != v1alpha1.RolloutAborted
}

// joinedLater returns true for nodes that are not replaced, so that replacements come to an end.
func (r *rollout) joinedLater(node *corev1.Node) bool {
	return node.CreationTimestamp.After(r.object.CreationTimestamp.Time)
}

// isReplacement returns true for nodes that joined after a rollout was created that replaces.
func (r *rollout) isReplacement(node *corev1.Node) bool { return r.replaces() && r.joinedLater(node) }

// judgeJoined lets a node fail that joined later and has not what the rollout is for.
func (r *rollout) judgeJoined(u *unit) {
	named := func(other *unit) bool { return other.Name == u.Name && other.state != done }
	if !u.ready || r.complete() || r.spec == nil || !r.spec.Selects(u.Node, r.object.Spec.ControlPlane) || r.spec.target == nil || r.spec.target.Met(u.Node) || r.spec.byName[u.Name].Skip || slices.ContainsFunc(r.units, named) {
		return
	}
	u.record = nil
	u.state, u.reason = failed, v1alpha1.RolloutNodeTargetNotMet
	u.message = "The node joined after the rollout was created and does not meet the target. Change the template of its machine. " + r.skipping(u)
	r.units = append(r.units, u)
}

func (r *rollout) skipping(u *unit) string {
	return "To continue without it: " + command.Of("kubectl ebbtide rollout skip %s %s", r.object.Name, u.Name)
}

// judgeReplaced determines the state of a node that is drained since then, and still there.
func (r *rollout) judgeReplaced(u *unit, since time.Time) {
	u.state, u.reason, u.message = working, v1alpha1.RolloutNodeDrained, "The node is drained. Its machine is deleted next."
	unreplaced, refused := r.Unreplaced[u.record.object.Name]
	switch {
	case r.spec != nil && r.spec.byName[u.Name].Skip:
		u.state, u.reason, u.message = skipped, "", ""
	case !r.running():
		u.message = "The node is drained. Its machine is not deleted while the rollout is not running."
	case refused:
		u.state, u.reason = failed, unreplaced.Reason
		u.message = excerpt.Line(unreplaced.Message, maxUnreplaced) + " The node stays drained, and is tried again. " + r.skipping(u)
	case r.timedOut(since):
		r.failReplaced(u)
	case u.record.Replaced != nil:
		u.reason, u.message = v1alpha1.RolloutNodeReplacing, "Its machine is being deleted."
	}
}

// maxUnreplaced bounds an error of the API server in a message, in bytes.
const maxUnreplaced = 400

func (r *rollout) failReplaced(u *unit) {
	u.state, u.reason = failed, v1alpha1.RolloutNodeNotReplaced
	u.message = fmt.Sprintf("The node was not replaced by a Ready one within %s after its drain. %s", r.spec.workTimeout, r.skipping(u))
}

// replace decides which machines are deleted. Nodes that do not get what they need show that others
// would not either.
func (r *rollout) replace() {
	if slices.ContainsFunc(r.units, func(u *unit) bool { return u.gone }) {
		slices.SortStableFunc(r.units, func(a, b *unit) int { return strings.Compare(a.Name, b.Name) })
	}
	if !r.replaces() || !r.running() {
		return
	}
	stop := r.stopsReplacing()
	for _, u := range r.units {
		if (u.state == working || u.state == failed) && !u.gone && u.record != nil && u.record.live() {
			r.replaceDrained(u, stop)
		}
	}
}

// stopsReplacing returns why no further machine is deleted; empty if it is.
func (r *rollout) stopsReplacing() string {
	limit, _ := share(r.object.Spec.Failure.MaxFailures, len(r.units))
	unmet := 0
	for _, u := range r.units {
		if u.state == failed && (u.reason == v1alpha1.RolloutNodeTargetNotMet || u.reason == v1alpha1.RolloutNodeNotReplaced && u.record.Replaced != nil) {
			unmet++
		}
	}
	if unmet < limit {
		return ""
	}
	return fmt.Sprintf("%s did not get what they need, and failure.maxFailures is %d", phrase.Count(unmet, "node"), limit)
}

// replaceDrained has the machine of a node deleted if it is drained, after that is recorded.
func (r *rollout) replaceDrained(u *unit, stop string) {
	since, drained := u.record.drained()
	switch {
	case !drained:
	case u.record.Replaced != nil:
		r.replacements = append(r.replacements, Replacement{Node: u.Name, NodeUID: u.UID, Maintenance: u.record.object})
	case stop != "" && u.state == working:
		u.message = "The node is drained. Its machine is not deleted, as " + stop + "."
	case stop == "" && u.record.Target == r.target: // Otherwise this is written first.
		r.changes = append(r.changes, u.record.replaced(r.replacedOf(u, since)))
	}
}

// replacedOf returns what has to be known of a node when it is gone.
func (r *rollout) replacedOf(u *unit, since time.Time) Replaced {
	replaced := Replaced{Since: metav1.NewTime(since), Unneeded: MachineKinds{Karpenter}.mayOwn(u.Node), Domains: map[string]string{}}
	keys := []string{r.object.Spec.TopologyKey}
	for _, b := range u.budgets {
		replaced.Budgets = append(replaced.Budgets, b.object.Name)
		keys = append(keys, b.topologyKey)
	}
	for _, key := range keys {
		if domain := u.domain(key); domain != "" {
			replaced.Domains[key] = domain
		}
	}
	return replaced
}

// countGone has the nodes that others have to replace count for the NodeBudgets that selected them.
func (f *fleet) countGone() {
	for _, u := range f.gone {
		for _, b := range f.budgets {
			if slices.Contains(u.record.Replaced.Budgets, b.object.Name) {
				b.add(u.node)
			}
		}
	}
}

// classifyGone determines the state of nodes that are gone since their machine was deleted. It returns
// the other records.
func (r *rollout) classifyGone(records map[string][]*record) (others map[string][]*record) {
	isGone := func(one *record) bool {
		n := r.byName[one.node]
		return one.Replaced != nil && r.object.DeletionTimestamp == nil && (n == nil || string(n.UID) != one.NodeUID)
	}
	var gone []*record
	others = map[string][]*record{}
	for _, name := range slices.Sorted(maps.Keys(records)) {
		at := slices.IndexFunc(records[name], isGone)
		if others[name] = records[name]; at >= 0 {
			gone = append(gone, records[name][at])
			others[name] = slices.Delete(slices.Clone(records[name]), at, at+1)
		}
	}
	slices.SortStableFunc(gone, func(a, b *record) int { return a.Replaced.Since.Compare(b.Replaced.Since.Time) })
	joined := r.joined(gone)
	for _, one := range gone {
		r.units = append(r.units, r.judgeGone(one, &joined))
	}
	return others
}

// joined returns the Ready nodes that may replace others, the oldest first. Each replaces one.
func (r *rollout) joined(gone []*record) (joined []*node) {
	if len(gone) == 0 || r.spec == nil {
		return nil
	}
	used := map[types.UID]bool{}
	for _, one := range gone {
		used[one.Replaced.By] = true
	}
	for _, n := range r.nodes {
		if n.ready && !used[n.UID] && r.joinedLater(n.Node) && r.spec.Selects(n.Node, r.object.Spec.ControlPlane) {
			joined = append(joined, n)
		}
	}
	slices.SortStableFunc(joined, func(a, b *node) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return joined
}

// judgeGone determines the state of a node that is gone. It takes the node that replaces it.
func (r *rollout) judgeGone(last *record, joined *[]*node) *unit {
	u := &unit{rollout: r, record: last, node: &node{gone: true, Node: &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: last.node, UID: types.UID(last.NodeUID), Labels: last.Replaced.Domains},
	}}}
	after := *last.Replaced
	at := slices.IndexFunc(*joined, func(n *node) bool { return !n.CreationTimestamp.Before(&last.object.CreationTimestamp) })
	replaced := !last.live() && (after.Unneeded || at >= 0)
	switch {
	case after.Done != nil:
		u.state, u.doneTime = done, after.Done.Time
	case r.spec != nil && r.spec.byName[u.Name].Skip:
		u.state = skipped
	case !replaced && r.timedOut(after.Since.Time):
		r.failReplaced(u)
	case last.live(): // It may hold another node of this name.
		u.state, u.reason, u.message = working, v1alpha1.RolloutNodeReplacing, "The node is gone, and its NodeMaintenance is being completed."
	case replaced:
		u.state, u.doneTime = done, r.Now
		after.Done = new(metav1.NewTime(r.Now).Rfc3339Copy())
		if at >= 0 && !after.Unneeded {
			after.By = (*joined)[at].UID
			*joined = slices.Delete(*joined, at, at+1)
		}
	default:
		u.state, u.reason, u.message = working, v1alpha1.RolloutNodeReplacing, "The node is gone. Another node has to be Ready."
	}
	u.ready = u.state == done // Otherwise it is unavailable.
	if u.state == working {
		r.gone = append(r.gone, u)
	}
	if after.Done != nil && last.Replaced.Done == nil || !last.ends() {
		r.changes = append(r.changes, last.replaced(after))
	}
	return u
}

// AsReplaced returns the NodeMaintenance of a node that is gone and was replaced at a time, as a plan
// assumes.
func AsReplaced(m *v1alpha1.NodeMaintenance, now time.Time) *v1alpha1.NodeMaintenance {
	r, found := readRecord(m)
	if !found {
		return m
	}
	at := metav1.NewTime(now)
	r.Replaced = &Replaced{}
	return r.replaced(Replaced{Since: at, Done: &at}).After
}

// replaced records the state of a machine. A node that is gone must not leave a NodeMaintenance to
// another one of its name.
func (r *record) replaced(state Replaced) Change {
	attempt := r.Attempt
	attempt.Replaced = &state
	after := r.object.DeepCopy()
	attempt.write(after)
	if r.Replaced != nil {
		after.Spec.Stage = v1alpha1.StageComplete
	}
	return Change{Before: r.object, After: after}
}
