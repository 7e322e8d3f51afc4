package lifecycle

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

func (p *planner) reportFailure() {
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
		p.set(condition, c.Status, c.Reason, fmt.Sprintf("%s The last attempt failed and will be retried: %s", c.Message, p.Failure))
	}
}
