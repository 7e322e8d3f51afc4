package validate

import (
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// maxGateText bounds a name of others in a refusal, in bytes.
const maxGateText = 100

// NewObjectGates returns the gates that read an object and that the rollout did not have before. Their
// author must be allowed to get the object: the status shows whether its field has a value.
func (c RolloutChange) NewObjectGates() (gates []v1alpha1.RolloutGate) {
	if c.Ends() {
		return nil
	}
	for _, gate := range c.New.Spec.Gates {
		known := func(before v1alpha1.RolloutGate) bool { return before.Object != nil && *before.Object == *gate.Object }
		if gate.Object != nil && (c.Old == nil || !slices.ContainsFunc(c.Old.Spec.Gates, known)) {
			gates = append(gates, gate)
		}
	}
	return gates
}

// GateRefusal says that a user may not use a gate, as they may not get its object.
func GateRefusal(gate *v1alpha1.RolloutGate, user string, what authorizationv1.ResourceAttributes) string {
	return fmt.Sprintf("gate %s reads %s %s, and user %q may not %s %s: ask an administrator for this right",
		gate.Name, gate.Object.Kind, excerpt.Line(gate.Object.Name, maxGateText), excerpt.Line(user, maxGateText), what.Verb, what.Resource)
}

// UnservedGate says that a gate reads an object of a kind that the API server does not serve.
func UnservedGate(gate *v1alpha1.RolloutGate) string {
	return fmt.Sprintf("gate %s reads kind %s of %s, which the API server does not serve: install it first, so that your right to read it can be checked",
		gate.Name, gate.Object.Kind, excerpt.Line(gate.Object.APIVersion, maxGateText))
}

// MisplacedGate says that a gate has a namespace and its kind has none, or the other way round.
func MisplacedGate(gate *v1alpha1.RolloutGate, namespaced bool) string {
	if namespaced {
		return fmt.Sprintf("gate %s reads a %s, which is namespaced: set object.namespace", gate.Name, gate.Object.Kind)
	}
	return fmt.Sprintf("gate %s reads a %s, which is cluster-scoped: leave out object.namespace", gate.Name, gate.Object.Kind)
}
