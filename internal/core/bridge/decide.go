package bridge

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// Snapshot is all that a decision reads. It is never changed by Decide.
type Snapshot struct {
	Now         time.Time
	ClockSkewed bool
	// Machine is the Machine; nil if it is gone.
	Machine *Machine
	// Around holds its Cluster or set; nil if there is none. AroundUnread says why that is not
	// known.
	Around       *Around
	AroundUnread string
	// Node is the node of this cluster with the name of the Machine's; nil if there is none.
	Node *corev1.Node
	// Maintenance is the NodeMaintenance made for the Machine, maybe by an earlier version; nil if
	// there is none.
	Maintenance *v1alpha1.NodeMaintenance
	// Held is the node of this cluster with the name that Maintenance is for; nil if there is
	// none.
	Held     *corev1.Node
	Instance Instance
	// Ruled is true if MachineDrainRules apply to the Machine, so that it is not drained by a
	// maintenance.
	Ruled bool
	// Remote holds the state of a drain without a maintenance; nil if it has not begun.
	Remote *Remote
}

// Instance describes the object that represents the instance of a Machine. The zero value is an
// object that exists.
type Instance struct {
	Gone, Deleting bool
	// Unread is the reason why neither is known; empty if it is.
	Unread string
}

// Remote holds the state of a drain in another cluster.
type Remote struct {
	// Problem is the reason why nothing is known of it; empty if it is.
	Problem string
	// Done is true if no pod is waited for, or the node is gone; Left are those that are.
	Done bool
	Left int
	// Report lists what is awaited. Failed is true if some of it needs help.
	Report string
	Failed bool
}

// Step names an action on the hook of a Machine.
type Step int

// What is done to a hook.
const (
	// Keep leaves the Machine as it is.
	Keep Step = iota
	// Put has the Machine wait for us before it is drained.
	Put
	Begin
	Take
	// Finish does so and says that nothing is left to be drained.
	Finish
)

// Decision holds the actions for one Machine.
type Decision struct {
	// Create is to be created; nil if nothing is.
	Create *v1alpha1.NodeMaintenance
	// Update is Maintenance as it is to be before the hook is changed; nil if it is so.
	Update *v1alpha1.NodeMaintenance
	Delete bool
	// Hook is done to the Machine, under the version that was read.
	Hook Step
	// Remote is true if the node is drained through the Cluster's kubeconfig.
	Remote bool
	// Said is published once, after the action; nil publishes nothing.
	Said *event.Event
	// Condition is to be on the Machine; nil if that is so, or nothing is said there.
	Condition    *metav1.Condition
	RequeueAfter time.Duration
}

// Decide returns what becomes of one Machine.
func Decide(s Snapshot) Decision {
	d := s.decide()
	d.Condition = s.condition(d)
	if d.Said == nil || d.Delete || s.Maintenance == nil || !s.ours() || !Leaves(s.Machine.Node, s.Maintenance) {
		return d
	}
	switch d.Said.Reason {
	case v1alpha1.EventBridgeWaiting, v1alpha1.EventBridgeSkipped:
		// No pod leaves while we say that we wait, or that the node is not drained.
		d.Update = paused(s.Maintenance, true)
	case v1alpha1.EventBridgeDraining:
		d.Update = paused(s.Maintenance, false)
	}
	return d
}

// over returns why nothing runs on the node any more; empty if something may.
func (s Snapshot) over() string {
	of := s.Machine.Infrastructure
	name := excerpt.Line(of.Kind+" "+of.Name, maxWords)
	switch {
	case s.Instance.Gone, s.Instance.Unread != "" && of.Gone:
		return name + " is gone, and with it all that ran there"
	case s.Instance.Deleting:
		return name + " is being deleted"
	}
	return ""
}

func (s Snapshot) decide() Decision {
	if d, over := s.ended(); over {
		return d
	}
	m := s.Machine
	switch {
	case m == nil:
		return Decision{}
	case !m.Deleting:
		return s.beforeDeletion()
	case m.Taken && m.Waits && s.asked():
		return s.say(Decision{}, event.BridgeSkipped, "not drained: another tool has set the hook "+v1alpha1.BridgeHookAnnotation+" on the Machine; Cluster API waits for that tool")
	case !m.Hooked:
		// What somebody has let go is not ours, and a hook comes too late now.
		return Decision{}
	case s.AroundUnread != "":
		return s.say(Decision{}, event.BridgeWaiting, "waits: "+excerpt.Line(s.AroundUnread, maxWords))
	}
	if !s.asked() {
		return s.skip("it is no longer requested by label " + v1alpha1.DrainOptLabel)
	}
	if why := s.needless(); why != "" {
		return s.skip(why)
	}
	if m.Paused || s.Around != nil && s.Around.Paused {
		return s.say(Decision{}, event.BridgeWaiting, "waits: the Machine or its Cluster is paused")
	}
	if !m.Waits {
		return Decision{} // Its controller has not come so far.
	}
	return s.waiting()
}

// ended decides about a maintenance whose Machine or node is gone or has changed, by their UIDs.
func (s Snapshot) ended() (Decision, bool) {
	maintenance := s.Maintenance
	if maintenance == nil || !s.ours() || maintenance.DeletionTimestamp != nil {
		return Decision{}, false
	}
	m, node := s.Machine, NodeUnder(maintenance)
	switch machineUID, nodeUID := uidsOf(maintenance); {
	case m != nil && machineUID != "" && (m.Ref.UID != machineUID || m.Node != "" && m.Node != node):
		return Decision{Delete: true}, true
	case s.Held != nil && (nodeUID == "" || s.Held.UID == nodeUID):
		return Decision{}, false
	case m != nil && m.Deleting && m.Hooked && m.Node == node && s.Node == nil:
		return s.say(Decision{Hook: Finish}, event.BridgeDone, node+" is gone; the hook is removed"), true
	}
	return Decision{Delete: true}, true
}

// ours is true of a maintenance that was made for this Machine and is as it was made.
func (s Snapshot) ours() bool {
	bridge, namespace, name := MachineOf(s.Maintenance)
	named := s.Maintenance.Name == MaintenanceName(bridge, namespace, name) || s.Maintenance.Name == FormerName(namespace, name)
	if bridge == "" || NodeUnder(s.Maintenance) == "" || !named {
		return false
	}
	m := s.Machine
	return m == nil || m.Bridge == bridge && m.Ref.Namespace == namespace && m.Ref.Name == name
}

// asked is true if somebody wants Ebbtide to drain the node.
func (s Snapshot) asked() bool {
	if s.Machine.Opt != "" {
		return s.Machine.Opt == "true"
	}
	return s.Around != nil && s.Around.Opt == "true"
}

// beforeDeletion puts the hook on, or takes it off where nobody wants it any more.
func (s Snapshot) beforeDeletion() Decision {
	switch {
	case s.AroundUnread != "" || s.Machine.Paused || s.Around != nil && s.Around.Paused:
		return Decision{}
	case s.asked() && !s.Machine.Hooked && !s.Machine.Taken:
		return Decision{Hook: Put}
	case !s.asked() && s.Machine.Hooked:
		return Decision{Hook: Take}
	}
	return Decision{}
}

// needless returns why the controller of the Machine does not ask hooks, or nobody is to drain.
func (s Snapshot) needless() string {
	m := s.Machine
	switch {
	case m.Excluded != "":
		return "annotation " + m.Excluded + " is set"
	case m.Bridge == ClusterAPI && s.Around == nil:
		return "the Cluster is gone"
	case m.Bridge == ClusterAPI && s.Around.Deleting:
		return "the Cluster is being deleted"
	case s.over() != "":
		return s.over()
	case m.LaterStep != "":
		return fmt.Sprintf("Cluster API has not waited for hooks of the Machine (Deleting: %s)", excerpt.Line(m.LaterStep, maxWords))
	case m.Node == "" && m.Waits:
		// Before that it may be that its controller has only not named it yet.
		return "the Machine has no node"
	}
	return ""
}

func (s Snapshot) waiting() Decision {
	m := s.Machine
	over, after := s.timeout()
	switch {
	case over:
		return s.giveUp()
	case len(m.Others) > 0:
		return s.say(Decision{RequeueAfter: after}, event.BridgeWaiting, "waits for other pre-drain hooks: "+hooks(m.Others))
	case m.Bridge == ClusterAPI && m.DrainStart.IsZero() && !s.ClockSkewed:
		// Also without a limit: one that comes in the middle counts from there.
		return Decision{Hook: Begin}
	}
	d := s.drain()
	if d.Hook == Keep {
		d.RequeueAfter = after
	}
	return d
}

func (s Snapshot) timeout() (over bool, after time.Duration) {
	m := s.Machine
	if m.DrainTimeout == 0 || m.DrainStart.IsZero() || s.ClockSkewed {
		return false, 0
	}
	ahead := m.DrainStart.Add(m.DrainTimeout).Sub(s.Now)
	return ahead <= 0, max(ahead, 0)
}

func (s Snapshot) drain() Decision {
	m := s.Machine
	switch {
	case s.Maintenance != nil && s.Ruled && s.ours():
		return s.ruled()
	case s.Maintenance != nil:
		return s.maintained()
	case m.IsNode(s.Node) && !s.Ruled:
		return Decision{Create: maintenanceFor(m, s.Node)}
	case m.Bridge == OpenShift && s.Node == nil:
		return s.say(Decision{Hook: Finish}, event.BridgeDone, m.Node+" is gone; the hook is removed")
	case m.Bridge == OpenShift:
		return s.say(Decision{}, event.BridgeWaiting, fmt.Sprintf("waits: node %s does not say that it is of this Machine (annotation %s and the providerID)", m.Node, nodeOpenShiftAnnotation))
	}
	return s.elsewhere()
}

// ruled ends a maintenance once it is known that rules apply to the Machine.
func (s Snapshot) ruled() Decision {
	d := s.elsewhere()
	d.Delete = d.Hook == Keep && s.Remote != nil && s.Maintenance.DeletionTimestamp == nil
	return d
}

// maintained returns what happens while there is a NodeMaintenance of this name.
func (s Snapshot) maintained() Decision {
	maintenance, node := s.Maintenance, s.Machine.Node
	switch {
	case s.ours() && maintenance.DeletionTimestamp != nil:
		return s.say(Decision{}, event.BridgeWaiting, fmt.Sprintf("waits: NodeMaintenance %s is being deleted; another one is made when it is gone", maintenance.Name))
	case !s.ours() || NodeUnder(maintenance) != node:
		return s.say(Decision{}, event.BridgeWaiting, fmt.Sprintf("waits: NodeMaintenance %s is not for %s; delete it", maintenance.Name, node))
	case maintenance.Spec.Stage == v1alpha1.StageComplete:
		return s.say(Decision{}, event.BridgeWaiting, fmt.Sprintf("waits: NodeMaintenance %s was ended by hand; delete it, and another one is created", maintenance.Name))
	case maintenance.Spec.Stage != v1alpha1.StageDrain:
		return s.say(Decision{}, event.BridgeWaiting, fmt.Sprintf("waits: NodeMaintenance %s is in stage %s and drains nothing; set its stage to Drain, or delete it", maintenance.Name, maintenance.Spec.Stage))
	case drained(maintenance):
		return s.say(Decision{Hook: Finish}, event.BridgeDone, node+" is drained; the hook is removed")
	}
	pods, said := left(maintenance)
	if !said {
		return Decision{}
	}
	return s.say(Decision{}, event.BridgeDraining, fmt.Sprintf("%s is drained for Machine %s/%s by NodeMaintenance %s: %s left",
		node, s.Machine.Ref.Namespace, s.Machine.Ref.Name, maintenance.Name, phrase.Count(pods, "pod")))
}

// elsewhere returns what happens for a node of another cluster.
func (s Snapshot) elsewhere() Decision {
	m := s.Machine
	d := Decision{Remote: true}
	switch {
	case s.Remote == nil:
		return d
	case s.Remote.Problem != "":
		return s.say(d, event.BridgeWaiting, "waits: "+excerpt.Line(s.Remote.Problem, maxProblem))
	case s.Remote.Done:
		return s.say(Decision{Hook: Finish}, event.BridgeDone, m.Node+" is drained; the hook is removed")
	}
	text := fmt.Sprintf("%s is drained for Machine %s/%s in Cluster %s: %s left", m.Node, m.Ref.Namespace, m.Ref.Name, m.Around, phrase.Count(s.Remote.Left, "pod"))
	if s.Remote.Failed {
		return s.say(d, event.BridgeBlocked, text+". "+excerpt.Line(s.Remote.Report, maxProblem))
	}
	return s.say(d, event.BridgeDraining, text)
}

func (s Snapshot) skip(why string) Decision {
	return s.say(Decision{Hook: Take}, event.BridgeSkipped, "not drained: "+why)
}

// giveUp lets the Machine's controller continue without a drain of its own. The node stays
// cordoned.
func (s Snapshot) giveUp() Decision {
	what := "an unknown number of pods"
	if s.Maintenance != nil {
		if pods, said := left(s.Maintenance); said {
			what = phrase.Count(pods, "pod")
		}
	} else if s.Remote != nil && s.Remote.Problem == "" {
		what = phrase.Count(s.Remote.Left, "pod")
	}
	return s.say(Decision{Hook: Finish}, event.BridgeGivenUp, fmt.Sprintf("nodeDrainTimeoutSeconds (%d) is over with %s left; the hook is removed and Cluster API goes on",
		int64(s.Machine.DrainTimeout.Seconds()), what))
}

func (s Snapshot) say(d Decision, as func(corev1.ObjectReference, string) event.Event, message string) Decision {
	said := as(s.Machine.Ref, message)
	if said.Reason == v1alpha1.EventBridgeDraining && s.Instance.Unread != "" {
		of := s.Machine.Infrastructure
		said.Message += fmt.Sprintf(". If %s is deleted meanwhile, the drain goes on, as that cannot be read: %s",
			excerpt.Line(of.Kind+" "+of.Name, maxWords), excerpt.Line(s.Instance.Unread, maxUnread))
	}
	d.Said = &said
	return d
}

const (
	maxHooks, maxWords = 5, 100
	// maxProblem and maxUnread limit the bytes of problems that block, or do not block.
	maxProblem, maxUnread = 600, 300
)

func hooks(others []Hook) string {
	var all []string
	for _, hook := range others[:min(len(others), maxHooks)] {
		all = append(all, fmt.Sprintf("%s (owner: %s)", excerpt.Line(hook.Name, maxWords), excerpt.Line(hook.Owner, maxWords)))
	}
	if more := len(others) - maxHooks; more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, ", ")
}
