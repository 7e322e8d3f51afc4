package lifecycle

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// tellFailure says where the Machine stands what could not be done there.
func (p *pass) tellFailure() {
	if p.Failure == "" {
		return
	}
	condition := v1alpha1.ConditionNodeReady
	switch {
	case p.deleting():
		condition = v1alpha1.ConditionDeleting
	case p.decision.Step == StepBootstrap:
		condition = v1alpha1.ConditionBootstrapReady
	case p.decision.Step == StepInfrastructure:
		condition = v1alpha1.ConditionInfrastructureReady
	}
	if c := meta.FindStatusCondition(p.decision.Status.Conditions, condition); c != nil {
		p.set(condition, c.Status, c.Reason, fmt.Sprintf("%s The last try has failed and is made again: %s", c.Message, p.Failure))
	}
}
