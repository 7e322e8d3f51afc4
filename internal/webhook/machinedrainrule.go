package webhook

import (
	"context"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/validate"
)

// machineDrainRuleValidator validates what the CRD of a rule cannot.
type machineDrainRuleValidator struct {
	// home is the namespace of the rules that NodeMaintenances use.
	home string
}

// Handle rejects an invalid rule, and warns of one that may select less than intended.
func (v machineDrainRuleValidator) Handle(_ context.Context, request admission.Request) admission.Response {
	_, rule, err := decodeChange[v1alpha1.MachineDrainRule](request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	return answer(rule, validate.MachineDrainRule(rule)).
		WithWarnings(validate.MachineDrainRuleWarnings(rule, v.home)...)
}
