package lifecycle

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodedrain"
)

// need is something that a Machine needs before the next can be made.
type need struct {
	step Step
	met  func(*pass) bool
	act  func(*pass)
}

// needs are in the order in which they are met.
var needs = []need{
	{StepCreatable, (*pass).creatable, (*pass).wait},
	{StepBootstrap, (*pass).bootstrapped, (*pass).bootstrap},
	{StepInfrastructure, (*pass).provisioned, (*pass).provision},
	{StepNode, (*pass).registered, (*pass).recordNode},
}

// create makes what the Machine lacks, up to its Node.
func (p *pass) create() {
	p.observe()
	p.decision.Status.Deletion = nil // No step of a deletion can be over yet.
	p.recordHookSeen()
	p.decision.AddFinalizer = !p.held() && (p.created() || !p.Cluster.missing())
	p.advance()
	p.decision.Status.Phase = p.phase()
}

// advance does what the first need asks for that is not met.
func (p *pass) advance() {
	for _, n := range needs {
		if n.met(p) {
			continue
		}
		p.decision.Step = n.step
		if !p.decision.AddFinalizer && !p.decision.Record {
			n.act(p)
		}
		return
	}
	p.decision.Step = StepRunning
}

// created tells whether anything was made for the Machine.
func (p *pass) created() bool { return p.founded() || p.Bootstrap != nil && owned(*p.Bootstrap) }

// founded tells whether the Machine has its infrastructure; preCreate hooks hold
// nothing any more then.
func (p *pass) founded() bool { return p.Machine.Status.NodeRef != nil || owned(p.Infrastructure) }

func owned(r Reading[External]) bool { return r.Object != nil && r.Object.Owned }

// setCreatable says whether the Machine can be made: not as long as there are
// hooks, as the hooks document has it, also if they hold nothing any more.
func (p *pass) setCreatable() {
	hooks := preCreateHooks(p.Machine)
	switch {
	case len(hooks) > 0 && (p.founded() || p.deleting()):
		p.set(v1alpha1.ConditionCreatable, metav1.ConditionFalse, v1alpha1.ReasonHookPresent,
			"The Machine is made or deleted already, so that these hold nothing any more: "+nodedrain.List(hooks, namedHooks))
	case !p.deleting() && p.Cluster.missing() && !p.created() && len(hooks) == 0:
		p.set(v1alpha1.ConditionCreatable, metav1.ConditionFalse, v1alpha1.ReasonNotFound,
			fmt.Sprintf("%s does not exist. Create it, the Machine waits for it.", p.cluster()))
	default:
		p.setHeld(v1alpha1.ConditionCreatable, "preCreate", hooks)
	}
}

func (p *pass) creatable() bool {
	return p.founded() || len(preCreateHooks(p.Machine)) == 0 && (p.created() || !p.Cluster.missing())
}

// wait leaves the Machine alone.
func (*pass) wait() {}

// bootstrapped tells whether the bootstrap data is there, or was: without it
// there would be no infrastructure of ours.
func (p *pass) bootstrapped() bool {
	return p.bootstrapState().ready() || p.founded()
}

func (p *pass) bootstrap() { p.decision.AdoptBootstrap = adoptable(*p.Bootstrap) }

func (p *pass) provisioned() bool {
	known := p.Infrastructure.Problem == ""
	return p.Machine.Spec.ProviderID != "" && (p.infrastructureState().ready() || !known)
}

func (p *pass) provision() {
	if p.infrastructureState().ready() {
		p.recordProviderID()
		return
	}
	p.decision.AdoptInfrastructure = adoptable(p.Infrastructure)
}

// recordProviderID remembers by what the Node is found.
func (p *pass) recordProviderID() {
	e := p.Infrastructure.Object
	if p.Machine.Spec.ProviderID == "" && e != nil && !e.foreign() && e.ProviderID != "" {
		p.decision.ProviderID, p.decision.Record = e.ProviderID, true
	}
}

// adoptable tells whether an object is free.
func adoptable(r Reading[External]) bool {
	return r.Object != nil && r.Object.Controller == nil && !r.Object.Deleting
}

func (p *pass) registered() bool {
	ref, node := p.Machine.Status.NodeRef, p.sight.node
	return ref != nil && (node == nil || node.UID == ref.UID)
}

// phase is how far the Machine has come.
func (p *pass) phase() v1alpha1.MachinePhase {
	failed := p.infrastructureState().reason == v1alpha1.ReasonFailed || p.infrastructureLost() ||
		p.decision.Step == StepBootstrap && p.bootstrapState().reason == v1alpha1.ReasonFailed
	switch {
	case failed:
		return v1alpha1.MachineFailed
	case p.decision.Status.NodeRef != nil:
		return v1alpha1.MachineRunning
	case p.decision.Step == StepNode:
		return v1alpha1.MachineProvisioned
	case p.decision.Step == StepInfrastructure:
		return v1alpha1.MachineProvisioning
	default:
		return v1alpha1.MachinePending
	}
}
