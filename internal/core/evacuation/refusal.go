package evacuation

import (
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

const (
	// MessageInterval is the least time between writes of changed messages of the same refusal.
	MessageInterval = 30 * time.Second
	// CountInterval is the least time between two writes of a refusal if only its count changes.
	CountInterval = 5 * time.Minute
	// LongestPause is the longest pause after a refused eviction, unless
	// a lock forbids it.
	LongestPause = time.Minute
)

// maxMessage limits messages, with room for an ellipsis and the next attempt.
const maxMessage = 32_000

// Refusal holds the answer to an eviction, and its count since the last write.
type Refusal struct {
	Outcome
	// Times counts the refusals that the counter lacks.
	Times int32
}

// Refuse returns the status that reports the refusal.
func Refuse(status v1alpha1.EvacuationStatus, refusal Refusal, now time.Time) v1alpha1.EvacuationStatus {
	told := *status.DeepCopy()
	told.FailedEvictionCounter += min(refusal.Times, math.MaxInt32-told.FailedEvictionCounter)
	told.RefusingBudgetName = refusal.Budget
	words := refusal.words()
	told.Message = fmt.Sprintf("Eviction refused: %s", words)
	meta.SetStatusCondition(&told.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionEvictionRefused, Status: metav1.ConditionTrue,
		Reason: string(refusal.Type), Message: words, LastTransitionTime: metav1.Time{Time: now},
	})
	return told
}

// ReportEvery returns the interval of reports of such a refusal; 0 if it must not wait.
func ReportEvery(status v1alpha1.EvacuationStatus, refusal Refusal) time.Duration {
	told := Refuse(status, refusal, time.Time{})
	switch {
	case !sameKind(status, told):
		return 0
	case status.Message != told.Message:
		return MessageInterval
	default:
		return CountInterval
	}
}

func news(status v1alpha1.EvacuationStatus, refusal Refusal) bool {
	return ReportEvery(status, refusal) < CountInterval
}

func sameKind(a, b v1alpha1.EvacuationStatus) bool {
	conditionA := meta.FindStatusCondition(a.Conditions, v1alpha1.ConditionEvictionRefused)
	conditionB := meta.FindStatusCondition(b.Conditions, v1alpha1.ConditionEvictionRefused)
	return conditionA != nil && conditionB != nil && a.RefusingBudgetName == b.RefusingBudgetName &&
		conditionA.Status == conditionB.Status && conditionA.Reason == conditionB.Reason
}

// words returns the refusal and when it is retried, without a time, so that it stays true.
func (o Outcome) words() string {
	message := Shorten(o.Message)
	next := o.nextTry()
	if next == "" {
		return message
	}
	return fmt.Sprintf("%s; %s.", strings.TrimRight(message, ".; "), next)
}

// nextTry returns when a refused eviction is tried again; empty if it never is.
func (o Outcome) nextTry() string {
	switch {
	case o.Result == Never:
		return ""
	case o.Result == Locked:
		return "retried when the lock ends"
	case o.Result == Budgeted:
		return "retried when the budget allows it"
	case o.Type == v1alpha1.BlockerMultiplePDBs:
		return "retried when its budgets change"
	default:
		return "retried at least once a minute"
	}
}

// Shorten cuts a message that is longer than the API allows for messages.
func Shorten(message string) string {
	return excerpt.Of(message, maxMessage)
}
