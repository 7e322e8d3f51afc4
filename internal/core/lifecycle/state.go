package lifecycle

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// state is the progress of a prerequisite, for decisions and conditions alike.
type state struct {
	reason, message string
}

func (s state) ready() bool { return s.reason == v1alpha1.ReasonReady }

func (s state) status() metav1.ConditionStatus {
	switch s.reason {
	case v1alpha1.ReasonReady:
		return metav1.ConditionTrue
	case v1alpha1.ReasonUnknown, v1alpha1.ReasonAmbiguous:
		return metav1.ConditionUnknown
	}
	return metav1.ConditionFalse
}

func (p *planner) bootstrapState() state {
	if p.Bootstrap == nil {
		return state{v1alpha1.ReasonReady, "The Machine names no bootstrap config."}
	}
	name := p.bootstrapName()
	if p.Bootstrap.missing() && p.created() && !p.deleting() && p.Machine.Spec.ProviderID != "" {
		return state{v1alpha1.ReasonReady, name + " no longer exists and is no longer needed."}
	}
	s := external(name, *p.Bootstrap)
	if s.ready() && p.Bootstrap.Object.DataSecretName == "" {
		return state{v1alpha1.ReasonNotReady, name + " is ready but has no status.dataSecretName."}
	}
	return s
}

func (p *planner) infrastructureState() state {
	name, made := p.infrastructureName(), p.Machine.Spec.ProviderID
	s := external(name, p.Infrastructure)
	switch e := p.Infrastructure.Object; {
	case p.infrastructureLost():
		return state{v1alpha1.ReasonNotFound, name + " no longer exists. Delete the Machine."}
	case !s.ready():
		return s
	case e.ProviderID == "":
		return state{v1alpha1.ReasonNotReady, name + " is ready but has no spec.providerID."}
	case made != "" && made != e.ProviderID:
		return state{v1alpha1.ReasonNotReady, fmt.Sprintf("%s has providerID %s, but the Machine has %s. Correct one of them.",
			name, e.ProviderID, made)}
	default:
		return s
	}
}

func (p *planner) infrastructureLost() bool {
	return p.Infrastructure.missing() && !p.deleting() && p.created() && p.Machine.Spec.ProviderID != ""
}

func external(name string, r Reading[External]) state {
	switch e := r.Object; {
	case r.Problem != "":
		return state{v1alpha1.ReasonUnknown, fmt.Sprintf("%s could not be read: %s", name, r.Problem)}
	case e == nil:
		return state{v1alpha1.ReasonNotFound, name + " does not exist."}
	case e.isForeign():
		return state{v1alpha1.ReasonNotOwned, fmt.Sprintf("%s is controlled by %s %s, so it is neither adopted nor deleted.",
			name, e.Controller.Kind, e.Controller.Name)}
	case e.Deleting:
		return state{v1alpha1.ReasonNotReady, name + " is being deleted."}
	case e.Failure != "":
		return state{v1alpha1.ReasonFailed, fmt.Sprintf("%s has failed: %s", name, e.Failure)}
	case e.Fault != "":
		return state{v1alpha1.ReasonNotReady, fmt.Sprintf("%s cannot be used: %s", name, e.Fault)}
	case !e.Owned:
		return state{v1alpha1.ReasonNotReady, name + " is not owned by the Machine yet."}
	case !e.Ready:
		return state{v1alpha1.ReasonNotReady, name + " is not ready yet."}
	default:
		return state{v1alpha1.ReasonReady, name + " is ready."}
	}
}

func (p *planner) infrastructureName() string {
	return named(p.Machine, p.Machine.Spec.InfrastructureRef)
}

func (p *planner) bootstrapName() string {
	return named(p.Machine, *p.Machine.Spec.Bootstrap.ConfigRef)
}

func named(m *v1alpha1.Machine, ref v1alpha1.ObjectReference) string {
	return fmt.Sprintf("%s %s/%s", ref.Kind, m.Namespace, ref.Name)
}
