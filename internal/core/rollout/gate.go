package rollout

import (
	"errors"
	"fmt"
	"regexp"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// maxGates bounds the gates of a rollout, as in the API.
const maxGates = 8

// jsonPath is the grammar of the API. It has nothing that could select more than the object has, or
// that takes long.
var jsonPath = regexp.MustCompile(`^(\.([A-Za-z0-9_/-]|\\\.)+(\[([0-9]{1,6}|\?\(@\.[A-Za-z0-9_-]+=="[^"\\\s]*"\))\])*)+$`)

// IsJSONPath reports whether the API allows a path in an object.
func IsJSONPath(path string) bool { return jsonPath.MatchString(path) }

// checkGates returns an error that names the gate at fault.
func checkGates(gates []v1alpha1.RolloutGate) error {
	if len(gates) > maxGates {
		return fmt.Errorf("spec.gates: must be at most %d", maxGates)
	}
	for i := range gates {
		if err := checkGate(&gates[i]); err != nil {
			return fmt.Errorf("spec.gates[%d]%w", i, err)
		}
	}
	return nil
}

func checkGate(gate *v1alpha1.RolloutGate) error {
	switch object := gate.Object; {
	case (gate.Prometheus == nil) == (object == nil):
		return errors.New(": must have either prometheus or object")
	case object == nil && gate.Prometheus.Query == "":
		return errors.New(".prometheus.query: is required")
	case object == nil:
		return nil
	case object.Kind == "Secret":
		return errors.New(".object.kind: a gate cannot read Secrets")
	case object.APIVersion == "" || object.Kind == "" || object.Name == "" || object.Value == "":
		return errors.New(".object: apiVersion, kind, name and value are required")
	case !IsJSONPath(object.JSONPath):
		return errors.New(".object.jsonPath: use fields, indices and comparisons, such as .status.conditions[?(@.type==\"Ready\")].status")
	}
	return nil
}

// refusalByAnswer returns why a node does not start that could otherwise, by facts outside of
// rollouts and nodes.
func (b *budget) refusalByAnswer(u *unit) (refused refusal) {
	defer func() { b.held = b.held || refused.reason != "" }()
	if len(b.object.Spec.Gates) == 0 && len(b.object.Spec.Requires) == 0 {
		return refusal{}
	}
	if b.gates == nil {
		b.gates = new(b.closedGate())
	}
	if b.gates.reason != "" {
		return *b.gates
	}
	return b.refusalByRequirement(u)
}

// closedGate returns the first gate that is not open; all are asked.
func (b *budget) closedGate() (first refusal) {
	for i := range b.object.Spec.Gates {
		gate := &b.object.Spec.Gates[i]
		q := Question{}
		closed := refusal{v1alpha1.RolloutWaitsForGate, fmt.Sprintf("Gate %s is closed: its query returns 0.", gate.Name)}
		if gate.Prometheus != nil {
			q.Query = gate.Prometheus.Query
		} else {
			q.Object = *gate.Object
			closed.message = fmt.Sprintf("Gate %s is closed: %s of %s is not %q.", gate.Name,
				excerpt.Line(q.Object.JSONPath, maxText), excerpt.Line(objectName(&q.Object), maxText), excerpt.Line(q.Object.Value, maxText))
		}
		refused := b.judgeAnswer(q, "Whether gate "+gate.Name+" is open", closed)
		if first.reason == "" {
			first = refused
		}
	}
	return first
}

// objectName returns the kind and name of an object of a gate.
func objectName(object *v1alpha1.ObjectGate) string {
	if object.Namespace == "" {
		return object.Kind + " " + object.Name
	}
	return object.Kind + " " + object.Namespace + "/" + object.Name
}
