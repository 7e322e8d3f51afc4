package validate

import (
	"fmt"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// Replaces returns true if the rollout deletes machines after the change, and the change is one of its
// spec.
func (c RolloutChange) Replaces() bool {
	return !c.Ends() && !c.keepsSpec() && c.New.Spec.After == v1alpha1.AfterReplace
}

// MachineRefusal refuses a rollout with after: Replace to a user who may not delete a resource; why is
// the authorizer's reason or empty.
func MachineRefusal(user, resource, why string) string {
	text := fmt.Sprintf("user %.200q may not delete %s in all namespaces, which spec.after Replace requires, as it has the machines of nodes deleted", user, resource)
	if why != "" {
		text += ": " + excerpt.Line(why, maxWhy)
	}
	return text
}

// maxWhy bounds the reason of an authorizer, in bytes.
const maxWhy = 200
