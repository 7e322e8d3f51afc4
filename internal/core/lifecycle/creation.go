package lifecycle

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodedrain"
)

// need is a prerequisite of a running Machine.
type need struct {
	step Step
	met  func(*planner) bool
	act  func(*planner)
}

var needs = []need{
	{StepCreatable, (*planner).creatable, (*planner).wait},
	{StepBootstrap, (*planner).bootstrapped, (*planner).bootstrap},
	{StepInfrastructure, (*planner).provisioned, (*planner).provision},
	{StepNode, (*planner).registered, (*planner).recordNode},
}

func (p *planner) create() {
	p.observe()
	p.decision.Status.Deletion = nil // No step of a deletion can be over yet.
	p.recordHookSeen()
	p.decision.AddFinalizer = !p.hasFinalizer() && (p.created() || !p.Cluster.missing())
	p.advance()
	p.decision.Status.Phase = p.phase()
}

func (p *planner) advance() {
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

func (p *planner) created() bool { return p.founded() || p.Bootstrap != nil && owned(*p.Bootstrap) }

// founded reports whether the Machine has its infrastructure, so that preCreate hooks are late.
func (p *planner) founded() bool { return p.Machine.Status.NodeRef != nil || owned(p.Infrastructure) }

func owned(r Reading[External]) bool { return r.Object != nil && r.Object.Owned }

// setCreatable writes condition Creatable. By the hooks document it is false while there are hooks,
// even if they no longer have an effect.
func (p *planner) setCreatable() {
	hooks := preCreateHooks(p.Machine)
	switch {
	case len(hooks) > 0 && (p.founded() || p.deleting()):
		p.set(v1alpha1.ConditionCreatable, metav1.ConditionFalse, v1alpha1.ReasonHookPresent,
			"The Machine is already created or being deleted, so these hooks have no effect: "+nodedrain.List(hooks, namedHooks))
	case !p.deleting() && p.Cluster.missing() && !p.created() && len(hooks) == 0:
		p.set(v1alpha1.ConditionCreatable, metav1.ConditionFalse, v1alpha1.ReasonNotFound,
			fmt.Sprintf("%s does not exist. Create it.", p.cluster()))
	default:
		p.setHeld(v1alpha1.ConditionCreatable, "preCreate", hooks)
	}
}

func (p *planner) creatable() bool {
	return p.founded() || len(preCreateHooks(p.Machine)) == 0 && (p.created() || !p.Cluster.missing())
}

func (*planner) wait() {}

// bootstrapped reports whether the bootstrap data is or was there.
func (p *planner) bootstrapped() bool {
	return p.bootstrapState().ready() || p.founded()
}

func (p *planner) bootstrap() { p.decision.AdoptBootstrap = adoptable(*p.Bootstrap) }

func (p *planner) provisioned() bool {
	known := p.Infrastructure.Problem == ""
	return p.Machine.Spec.ProviderID != "" && (p.infrastructureState().ready() || !known)
}

func (p *planner) provision() {
	if p.infrastructureState().ready() {
		p.recordProviderID()
		return
	}
	p.decision.AdoptInfrastructure = adoptable(p.Infrastructure)
}

func (p *planner) recordProviderID() {
	e := p.Infrastructure.Object
	if p.Machine.Spec.ProviderID == "" && e != nil && !e.isForeign() && e.ProviderID != "" {
		p.decision.ProviderID, p.decision.Record = e.ProviderID, true
	}
}

func adoptable(r Reading[External]) bool {
	return r.Object != nil && r.Object.Controller == nil && !r.Object.Deleting
}

func (p *planner) registered() bool {
	ref, node := p.Machine.Status.NodeRef, p.node.node
	return ref != nil && (node == nil || node.UID == ref.UID)
}

func (p *planner) phase() v1alpha1.MachinePhase {
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
