package webhook

import (
	"context"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/validate"
)

// machineDrainRuleValidator finds in a rule what its CRD cannot.
type machineDrainRuleValidator struct {
	// home is the namespace whose rules NodeMaintenances obey.
	home string
}

// Handle refuses a rule that a drain could not understand, and warns of one that
// may do less than its author thinks.
func (v machineDrainRuleValidator) Handle(_ context.Context, request admission.Request) admission.Response {
	_, rule, err := decodeChange[v1alpha1.MachineDrainRule](request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	return answer(rule, validate.MachineDrainRule(rule)).
		WithWarnings(validate.MachineDrainRuleWarnings(rule, v.home)...)
}
