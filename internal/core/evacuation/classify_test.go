package evacuation_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

func failure(code int32, message string, causes ...metav1.StatusCause) metav1.Status {
	return metav1.Status{
		Status: metav1.StatusFailure, Code: code, Message: message,
		Details: &metav1.StatusDetails{Causes: causes},
	}
}

func asking(wait int32, status metav1.Status) metav1.Status {
	status.Details.RetryAfterSeconds = wait
	return status
}

// What the API server says, word for word.
const (
	violates = "Cannot evict pod as it would violate the pod's disruption budget."
	exhaust  = "The disruption budget web needs 3 healthy pods and has 3 currently"
	behind   = "The disruption budget web is still being processed by the server."
	pending  = "The disruption budget web does not allow evicting pods currently: too many pending evictions not confirmed by PDB controller"
	several  = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
	otherUID = "Operation cannot be fulfilled on Pod \"web-0\": the UID in the precondition (0f1e) does not match the UID in record (2d3c). The object might have been deleted and then recreated"
	raced    = "Operation cannot be fulfilled on pods \"web-0\": the object has been modified; please apply your changes to the latest version and try again"
	storm    = "Timeout: couldn't update PodDisruptionBudget \"web\" due to conflicts"
	denied   = "admission webhook \"guard.example.com\" denied the request: not on a Friday"
	policed  = "pods \"web-0\" is forbidden: ValidatingAdmissionPolicy 'guard' with binding 'shop' denied request: not on a Friday"
	closing  = "pods \"web-0\" is forbidden: unable to create new content in namespace shop because it is being terminated"
)

func byBudget(message string) metav1.StatusCause {
	return metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: message}
}

type exchange struct {
	answer metav1.Status
	want   evacuation.Outcome
}

func checkExchanges(t *testing.T, exchanges map[string]exchange) {
	t.Helper()
	for name, tc := range exchanges {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, evacuation.Classify(tc.answer)); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClassifyBudgets(t *testing.T) {
	checkExchanges(t, map[string]exchange{
		"evicted": {metav1.Status{Status: metav1.StatusSuccess, Code: 201}, evacuation.Outcome{Result: evacuation.Evicted}},
		"gone":    {failure(404, `pods "web-0" not found`), evacuation.Outcome{Result: evacuation.Gone}},
		"another pod has its name": {
			failure(409, otherUID), evacuation.Outcome{Result: evacuation.Gone},
		},
		"an exhausted budget": {
			failure(429, violates, byBudget(exhaust)),
			evacuation.Outcome{Result: evacuation.Budgeted, Type: v1alpha1.BlockerPDBExhausted, Budget: "web", Message: exhaust},
		},
		"a budget that the server has not looked at": {
			asking(10, failure(429, violates, byBudget(behind))),
			evacuation.Outcome{
				Result: evacuation.Budgeted, Type: v1alpha1.BlockerPDBExhausted, Budget: "web", Message: behind,
				RetryAfter: 10 * time.Second,
			},
		},
		"a budget that waits for confirmations": {
			failure(403, "poddisruptionbudget is forbidden", byBudget(pending)),
			evacuation.Outcome{Result: evacuation.Budgeted, Type: v1alpha1.BlockerPDBExhausted, Budget: "web", Message: pending},
		},
		"a budget without a name": {
			failure(429, violates, byBudget("")),
			evacuation.Outcome{Result: evacuation.Budgeted, Type: v1alpha1.BlockerPDBExhausted, Message: violates},
		},
		"several budgets": {
			failure(500, several),
			evacuation.Outcome{Result: evacuation.Refused, Type: v1alpha1.BlockerMultiplePDBs, Message: several},
		},
	})
}

func TestClassifyRefusals(t *testing.T) {
	checkExchanges(t, map[string]exchange{
		"a webhook": {
			failure(403, denied),
			evacuation.Outcome{Result: evacuation.Refused, Type: v1alpha1.BlockerWebhookDenied, Message: denied},
		},
		"a webhook with its own code": {
			failure(400, denied),
			evacuation.Outcome{Result: evacuation.Refused, Type: v1alpha1.BlockerWebhookDenied, Message: denied},
		},
		"a policy": {
			failure(422, policed),
			evacuation.Outcome{Result: evacuation.Refused, Type: v1alpha1.BlockerWebhookDenied, Message: policed},
		},
		"a webhook that asks to come again": {
			failure(429, `admission webhook "evictions.ebbtide.dev" denied the request: evacuation in progress`),
			evacuation.Outcome{
				Result: evacuation.Postponed, Type: v1alpha1.BlockerWebhookDenied,
				Message: `admission webhook "evictions.ebbtide.dev" denied the request: evacuation in progress`,
			},
		},
		"a terminating namespace": {
			failure(403, closing, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause}),
			evacuation.Outcome{Result: evacuation.Refused, Type: v1alpha1.BlockerNamespaceTerminating, Message: closing},
		},
		"a terminating namespace as a conflict": {
			failure(409, closing, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause}),
			evacuation.Outcome{Result: evacuation.Refused, Type: v1alpha1.BlockerNamespaceTerminating, Message: closing},
		},
		"no permission": {
			failure(403, "pods \"web-0\" is forbidden: User \"x\" cannot create resource \"pods/eviction\""),
			evacuation.Outcome{
				Result: evacuation.Refused, Type: v1alpha1.BlockerEvictionError,
				Message: "pods \"web-0\" is forbidden: User \"x\" cannot create resource \"pods/eviction\"",
			},
		},
	})
}

func TestClassifyWhatPasses(t *testing.T) {
	checkExchanges(t, map[string]exchange{
		"a lost race for the pod": {
			failure(409, raced),
			evacuation.Outcome{Result: evacuation.Contended, Type: v1alpha1.BlockerEvictionError, Message: raced},
		},
		"a lost race for the budget": {
			asking(10, failure(504, storm)),
			evacuation.Outcome{Result: evacuation.Contended, Type: v1alpha1.BlockerEvictionError, Message: storm, RetryAfter: 10 * time.Second},
		},
		"throttling": {
			asking(3, failure(429, "Too many requests, please try again later.")),
			evacuation.Outcome{
				Result: evacuation.Throttled, Type: v1alpha1.BlockerEvictionError,
				Message: "Too many requests, please try again later.", RetryAfter: 3 * time.Second,
			},
		},
		"an internal error": {
			failure(500, "etcdserver: request timed out"),
			evacuation.Outcome{Result: evacuation.Refused, Type: v1alpha1.BlockerEvictionError, Message: "etcdserver: request timed out"},
		},
		"no answer": {
			metav1.Status{Status: metav1.StatusFailure, Message: "connection refused"},
			evacuation.Outcome{Result: evacuation.Refused, Type: v1alpha1.BlockerEvictionError, Message: "The API server did not answer: connection refused"},
		},
		"a hostile wait": {
			asking(-1, failure(429, "slow down")),
			evacuation.Outcome{Result: evacuation.Throttled, Type: v1alpha1.BlockerEvictionError, Message: "slow down"},
		},
	})
}
