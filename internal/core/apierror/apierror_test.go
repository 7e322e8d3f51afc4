package apierror_test

import (
	"testing"

	"ebbtide.dev/ebbtide/internal/core/apierror"
)

type meaning struct {
	budget, webhook, policy, uncalled string
	several, other, denied            bool
	right                             apierror.Right
}

func meaningOf(text string) meaning {
	right, _ := apierror.MissingRight(text)
	return meaning{
		apierror.Budget(text), apierror.Webhook(text), apierror.Policy(text), apierror.UncalledWebhook(text),
		apierror.IsSeveralBudgets(text), apierror.IsOtherUID(text), apierror.IsDenied(text), right,
	}
}

// The texts are those of Kubernetes 1.37; test/api and test/scenario meet them in every version.
func TestTextsOfTheAPIServerAreRecognized(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]meaning{
		"": {},
		"The disruption budget web needs 3 healthy pods and has 3 currently":                      {budget: "web"},
		"Cannot evict pod as it would violate the pod's disruption budget.":                       {},
		"This pod has more than one PodDisruptionBudget, which the eviction subresource does not": {several: true},
		"Precondition failed: UID in precondition: a, UID in object meta: b":                      {},
		"the UID in the precondition (a) does not match the UID in record (b)":                    {other: true},
		`admission webhook "policy.example.com" denied the request: no`:                           {webhook: "policy.example.com", denied: true},
		`Internal error occurred: failed calling webhook "policy.example.com": failed to call webhook: Post "https://x": EOF`: {
			uncalled: "policy.example.com",
		},
		`nodemaintenances.ebbtide.dev "m" is forbidden: ValidatingAdmissionPolicy 'ebbtide-uninstall' with binding 'ebbtide-uninstall' denied request: any words`: {
			policy: "ebbtide-uninstall", denied: true,
		},
		`pods "web" is forbidden: User "anna" cannot delete resource "pods" in API group "" in the namespace "shop"`: {
			right: apierror.Right{User: "anna", Verb: "delete", Resource: "pods", Namespace: "shop"},
		},
		`nodes "a" is forbidden: User "anna" cannot patch resource "nodes/status" in API group "" at the cluster scope`: {
			right: apierror.Right{User: "anna", Verb: "patch", Resource: "nodes/status"},
		},
	} {
		if got := meaningOf(text); got != want {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
	}
}

func TestViolationIsCompletedOnce(t *testing.T) {
	t.Parallel()
	const whole = "Cannot evict pod as it would violate the pod's disruption budget. The disruption budget web needs 1 healthy pods and has 1 currently"
	for _, text := range []string{whole, "The disruption budget web needs 1 healthy pods and has 1 currently"} {
		if got := apierror.Violation(text); got != whole {
			t.Errorf("%q: got %q", text, got)
		}
	}
}
