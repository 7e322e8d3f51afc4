package evacuation

import (
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// ReportInterval is how often a refusal that stays the same is written at most.
const ReportInterval = 30 * time.Second

// maxMessage is what the API allows for messages, less room for an ellipsis.
const maxMessage = 32_000

// Refusal is what was answered to an eviction, and how often since it was last
// written.
type Refusal struct {
	Outcome
	// Times is how many refusals the counter lacks.
	Times int32
}

// Refuse returns the status that tells of the refusal.
func Refuse(status v1alpha1.EvacuationStatus, refusal Refusal, now time.Time) v1alpha1.EvacuationStatus {
	told := *status.DeepCopy()
	told.FailedEvictionCounter += min(refusal.Times, math.MaxInt32-told.FailedEvictionCounter)
	words := Shorten(refusal.Message)
	told.Message = fmt.Sprintf("Eviction refused: %s", words)
	meta.SetStatusCondition(&told.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionEvictionRefused, Status: metav1.ConditionTrue,
		Reason: string(refusal.Type), Message: words, LastTransitionTime: metav1.Time{Time: now},
	})
	return told
}

// News reports whether the refusal says anything that the status does not. A
// counter alone is no news: it is written with the next report.
func News(status v1alpha1.EvacuationStatus, refusal Refusal) bool {
	return !sameRefusal(status, Refuse(status, refusal, time.Time{}))
}

func sameRefusal(a, b v1alpha1.EvacuationStatus) bool {
	conditionA := meta.FindStatusCondition(a.Conditions, v1alpha1.ConditionEvictionRefused)
	conditionB := meta.FindStatusCondition(b.Conditions, v1alpha1.ConditionEvictionRefused)
	return a.Message == b.Message && conditionA != nil && conditionB != nil &&
		conditionA.Status == conditionB.Status && conditionA.Reason == conditionB.Reason
}

// Shorten cuts a message that is longer than the API allows for messages.
func Shorten(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "…"
}
