package evacuation

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/apierror"
	"ebbtide.dev/ebbtide/internal/core/budget"
)

// Result names the outcome of a request to evict.
type Result string

const (
	// Evicted means that the pod terminates.
	Evicted Result = "evicted"
	// Gone means that the pod, as named by UID, does not exist any more.
	Gone Result = "gone"
	// Budgeted means that a PodDisruptionBudget allows no disruption now.
	Budgeted Result = "budget"
	// Throttled means that the API server has too much to do and did not look at the pod.
	Throttled Result = "throttled"
	// Postponed means that an admission webhook makes the caller wait, like ours.
	Postponed Result = "postponed"
	// Contended means that the API server lost too many races; the answer may differ in a moment.
	Contended Result = "contended"
	// Refused means anything else, such as a webhook or several budgets.
	Refused Result = "refused"
	// Locked means that a PodDisruptionBudget is locked, so that nobody was asked.
	Locked Result = "locked"
	// Never means that such a pod is never evicted, so that nobody is ever asked.
	Never Result = "never"
)

// Outcome is the API server's answer to a request to evict, or why it is not asked.
type Outcome struct {
	Result Result
	// Type names the blocker of the pod, empty for Evicted and Gone.
	Type v1alpha1.BlockerType
	// Budget is the name of the PodDisruptionBudget that refused, if it was named.
	Budget string
	// Message is the refusal in the API server's words, or those of a lock.
	Message string
	// RetryAfter is the time for which the API server asks to wait; 0 if it does not say.
	RetryAfter time.Duration
}

// The codes that tell answers of the eviction subresource apart.
const (
	codeNoAnswer        = 0
	codeNotFound        = 404
	codeConflict        = 409
	codeTooManyRequests = 429
	codeTimeout         = 504
)

// Barred returns the refusal of an eviction because a budget of the pod is locked.
func Barred(b *policyv1.PodDisruptionBudget, hold budget.Hold) Outcome {
	return Outcome{Result: Locked, Type: v1alpha1.BlockerPDBLocked, Budget: b.Name, Message: hold.Describe(b)}
}

// Classify reads the API server's answer to an eviction. Code 0 without success is no answer.
func Classify(answer metav1.Status) Outcome {
	if answer.Status == metav1.StatusSuccess {
		return Outcome{Result: Evicted}
	}
	if message, refused := cause(answer, policyv1.DisruptionBudgetCause); refused {
		return budgeted(answer, message)
	}
	if _, terminating := cause(answer, corev1.NamespaceTerminatingCause); terminating {
		return refusal(v1alpha1.BlockerNamespaceTerminating, answer)
	}
	return byCode(answer)
}

func byCode(answer metav1.Status) Outcome {
	switch answer.Code {
	case codeNoAnswer:
		answer.Message = fmt.Sprintf("The API server did not answer: %s", answer.Message)
		return refusal(v1alpha1.BlockerEvictionError, answer)
	case codeNotFound:
		return Outcome{Result: Gone}
	case codeConflict:
		if apierror.IsOtherUID(answer.Message) {
			return Outcome{Result: Gone}
		}
		return passing(Contended, answer)
	case codeTimeout:
		return passing(Contended, answer)
	case codeTooManyRequests:
		if kindOf(answer) == v1alpha1.BlockerWebhookDenied {
			return passing(Postponed, answer)
		}
		return passing(Throttled, answer)
	default:
		return refusal(kindOf(answer), answer)
	}
}

// kindOf tells refusals apart that have nothing but words.
func kindOf(answer metav1.Status) v1alpha1.BlockerType {
	switch {
	case apierror.IsSeveralBudgets(answer.Message):
		return v1alpha1.BlockerMultiplePDBs
	case apierror.IsDenied(answer.Message):
		return v1alpha1.BlockerWebhookDenied
	default:
		return v1alpha1.BlockerEvictionError
	}
}

func budgeted(answer metav1.Status, message string) Outcome {
	outcome := refusal(v1alpha1.BlockerPDBExhausted, answer)
	outcome.Result = Budgeted
	if message != "" {
		outcome.Message = message
	}
	// Who needs the name has it from here.
	outcome.Budget = apierror.Budget(message)
	return outcome
}

func refusal(kind v1alpha1.BlockerType, answer metav1.Status) Outcome {
	return Outcome{Result: Refused, Type: kind, Message: answer.Message, RetryAfter: retryAfter(answer)}
}

func passing(result Result, answer metav1.Status) Outcome {
	outcome := refusal(kindOf(answer), answer)
	outcome.Result = result
	return outcome
}

func retryAfter(answer metav1.Status) time.Duration {
	if answer.Details == nil {
		return 0
	}
	return time.Duration(max(answer.Details.RetryAfterSeconds, 0)) * time.Second
}

func cause(answer metav1.Status, kind metav1.CauseType) (message string, found bool) {
	if answer.Details == nil {
		return "", false
	}
	for _, c := range answer.Details.Causes {
		if c.Type == kind {
			return c.Message, true
		}
	}
	return "", false
}
