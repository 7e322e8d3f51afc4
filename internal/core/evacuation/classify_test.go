package evacuation_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/test/difference"
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

// exchange is an answer of the API server and its outcome.
type exchange struct {
	answer  metav1.Status
	result  evacuation.Result
	kind    v1alpha1.BlockerType
	message string
	budget  string
	wait    time.Duration
}

const (
	busy       = "Too many requests, please try again later."
	comeAgain  = `admission webhook "evictions.ebbtide.dev" denied the request: evacuation in progress`
	noRight    = `pods "web-0" is forbidden: User "x" cannot create resource "pods/eviction"`
	timedOut   = "etcdserver: request timed out"
	unanswered = "connection refused"
)

var terminatingNamespace = metav1.StatusCause{Type: corev1.NamespaceTerminatingCause}

func TestClassify(t *testing.T) {
	for name, tc := range map[string]exchange{
		"evicted":                  {answer: metav1.Status{Status: metav1.StatusSuccess, Code: 201}, result: evacuation.Evicted},
		"gone":                     {answer: failure(404, `pods "web-0" not found`), result: evacuation.Gone},
		"another pod has its name": {answer: failure(409, otherUID), result: evacuation.Gone},

		"an exhausted budget":                        {failure(429, violates, byBudget(exhaust)), evacuation.Budgeted, v1alpha1.BlockerPDBExhausted, exhaust, "web", 0},
		"a budget that the server has not looked at": {asking(10, failure(429, violates, byBudget(behind))), evacuation.Budgeted, v1alpha1.BlockerPDBExhausted, behind, "web", 10 * time.Second},
		"a budget that waits for confirmations":      {failure(403, "poddisruptionbudget is forbidden", byBudget(pending)), evacuation.Budgeted, v1alpha1.BlockerPDBExhausted, pending, "web", 0},
		"a budget without a name":                    {failure(429, violates, byBudget("")), evacuation.Budgeted, v1alpha1.BlockerPDBExhausted, violates, "", 0},
		"several budgets":                            {failure(500, several), evacuation.Refused, v1alpha1.BlockerMultiplePDBs, several, "", 0},

		"a webhook":                             {failure(403, denied), evacuation.Refused, v1alpha1.BlockerWebhookDenied, denied, "", 0},
		"a webhook with its own code":           {failure(400, denied), evacuation.Refused, v1alpha1.BlockerWebhookDenied, denied, "", 0},
		"a policy":                              {failure(422, policed), evacuation.Refused, v1alpha1.BlockerWebhookDenied, policed, "", 0},
		"a webhook that asks to come again":     {failure(429, comeAgain), evacuation.Postponed, v1alpha1.BlockerWebhookDenied, comeAgain, "", 0},
		"a terminating namespace":               {failure(403, closing, terminatingNamespace), evacuation.Refused, v1alpha1.BlockerNamespaceTerminating, closing, "", 0},
		"a terminating namespace as a conflict": {failure(409, closing, terminatingNamespace), evacuation.Refused, v1alpha1.BlockerNamespaceTerminating, closing, "", 0},
		"no permission":                         {failure(403, noRight), evacuation.Refused, v1alpha1.BlockerEvictionError, noRight, "", 0},

		"a lost race for the pod":    {failure(409, raced), evacuation.Contended, v1alpha1.BlockerEvictionError, raced, "", 0},
		"a lost race for the budget": {asking(10, failure(504, storm)), evacuation.Contended, v1alpha1.BlockerEvictionError, storm, "", 10 * time.Second},
		"throttling":                 {asking(3, failure(429, busy)), evacuation.Throttled, v1alpha1.BlockerEvictionError, busy, "", 3 * time.Second},
		"a hostile wait":             {asking(-1, failure(429, busy)), evacuation.Throttled, v1alpha1.BlockerEvictionError, busy, "", 0},
		"an internal error":          {failure(500, timedOut), evacuation.Refused, v1alpha1.BlockerEvictionError, timedOut, "", 0},
		"no answer":                  {failure(0, unanswered), evacuation.Refused, v1alpha1.BlockerEvictionError, "The API server did not answer: " + unanswered, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			want := evacuation.Outcome{Result: tc.result, Type: tc.kind, Budget: tc.budget, Message: tc.message, RetryAfter: tc.wait}
			difference.None(t, "outcome", want, evacuation.Classify(tc.answer))
		})
	}
}
