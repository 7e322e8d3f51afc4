package lifecycle

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// state is how far something has come that the Machine needs. What is decided
// from it and what is told of it are the same.
type state struct {
	reason, message string
}

// ready tells whether it is there.
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

// bootstrapState is how far the bootstrap data is.
func (p *pass) bootstrapState() state {
	if p.Bootstrap == nil {
		return state{v1alpha1.ReasonReady, "The Machine names no bootstrap config."}
	}
	name := p.bootstrapName()
	if p.Bootstrap.missing() && p.created() && !p.deleting() && p.Machine.Spec.ProviderID != "" {
		return state{v1alpha1.ReasonReady, name + " is gone, but its data is not needed any more."}
	}
	s := external(name, *p.Bootstrap)
	if s.ready() && p.Bootstrap.Object.DataSecretName == "" {
		return state{v1alpha1.ReasonNotReady, name + " is ready, but has no status.dataSecretName."}
	}
	return s
}

// infrastructureState is how far the infrastructure is.
func (p *pass) infrastructureState() state {
	name, made := p.infrastructureName(), p.Machine.Spec.ProviderID
	s := external(name, p.Infrastructure)
	switch e := p.Infrastructure.Object; {
	case p.infrastructureLost():
		return state{v1alpha1.ReasonNotFound, name + " is gone, although the Machine is made of it. Delete the Machine."}
	case !s.ready():
		return s
	case e.ProviderID == "":
		return state{v1alpha1.ReasonNotReady, name + " is ready, but has no spec.providerID."}
	case made != "" && made != e.ProviderID:
		return state{v1alpha1.ReasonNotReady, fmt.Sprintf("%s has the providerID %s, but the Machine %s. Only the owner of one of them can know which is right.",
			name, e.ProviderID, made)}
	default:
		return s
	}
}

// infrastructureLost tells whether the infrastructure is gone that the Machine
// was made of.
func (p *pass) infrastructureLost() bool {
	return p.Infrastructure.missing() && !p.deleting() && p.created() && p.Machine.Spec.ProviderID != ""
}

// external is how far an object of somebody else's kind is.
func external(name string, r Reading[External]) state {
	switch e := r.Object; {
	case r.Problem != "":
		return state{v1alpha1.ReasonUnknown, fmt.Sprintf("%s could not be read: %s", name, r.Problem)}
	case e == nil:
		return state{v1alpha1.ReasonNotFound, name + " does not exist."}
	case e.foreign():
		return state{v1alpha1.ReasonNotOwned, fmt.Sprintf("%s is controlled by %s %s, so it is neither adopted nor deleted.",
			name, e.Controller.Kind, e.Controller.Name)}
	case e.Deleting:
		return state{v1alpha1.ReasonNotReady, name + " is being deleted."}
	case e.Failure != "":
		return state{v1alpha1.ReasonFailed, fmt.Sprintf("%s has failed: %s", name, e.Failure)}
	case e.Fault != "":
		return state{v1alpha1.ReasonNotReady, fmt.Sprintf("%s cannot be used: %s", name, e.Fault)}
	case !e.Owned:
		return state{v1alpha1.ReasonNotReady, name + " does not belong to the Machine yet."}
	case !e.Ready:
		return state{v1alpha1.ReasonNotReady, name + " is not ready yet."}
	default:
		return state{v1alpha1.ReasonReady, name + " is ready."}
	}
}

func (p *pass) infrastructureName() string { return named(p.Machine, p.Machine.Spec.InfrastructureRef) }

func (p *pass) bootstrapName() string { return named(p.Machine, *p.Machine.Spec.Bootstrap.ConfigRef) }

func named(m *v1alpha1.Machine, ref v1alpha1.ObjectReference) string {
	return fmt.Sprintf("%s %s/%s", ref.Kind, m.Namespace, ref.Name)
}
