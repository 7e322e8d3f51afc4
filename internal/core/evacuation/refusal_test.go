package evacuation_test

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/golden"
)

func refusedBy(kind v1alpha1.BlockerType, message string, times int32) evacuation.Refusal {
	return evacuation.Refusal{
		Outcome: evacuation.Outcome{Result: evacuation.Refused, Type: kind, Message: message},
		Times:   times,
	}
}

func TestRefuse(t *testing.T) {
	before := v1alpha1.EvacuationStatus{FailedEvictionCounter: 2, Message: "earlier", ActiveEvacuatorClass: "mover.example.com"}
	got := evacuation.Refuse(before, refusedBy(v1alpha1.BlockerWebhookDenied, "not on a Friday", 3), now)
	want := v1alpha1.EvacuationStatus{
		ActiveEvacuatorClass:  "mover.example.com",
		FailedEvictionCounter: 5,
		Message:               got.Message,
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionEvictionRefused, Status: metav1.ConditionTrue,
			Reason: "WebhookDenied", Message: got.Conditions[0].Message, LastTransitionTime: *at(0),
		}},
	}
	difference.None(t, "status", want, got)
	later := evacuation.Refuse(got, refusedBy(v1alpha1.BlockerPDBExhausted, "no", 1), now.Add(time.Hour))
	if since := later.Conditions[0].LastTransitionTime; !since.Equal(at(0)) {
		t.Errorf("the pod is refused since %s, want %s as before", since, at(0))
	}
}

func TestRefuseStaysWithinTheAPI(t *testing.T) {
	full := v1alpha1.EvacuationStatus{FailedEvictionCounter: math.MaxInt32 - 1}
	got := evacuation.Refuse(full, refusedBy(v1alpha1.BlockerWebhookDenied, strings.Repeat("é", 40_000), 5), now)
	if got.FailedEvictionCounter != math.MaxInt32 {
		t.Errorf("counter = %d, want %d", got.FailedEvictionCounter, math.MaxInt32)
	}
	for what, message := range map[string]string{"message": got.Message, "condition": got.Conditions[0].Message} {
		if n := len(message); n > 32_768 || !utf8.ValidString(message) || !strings.Contains(message, "é…") {
			t.Errorf("%s has %d bytes and ends in %q, want at most 32768 and a clean end", what, n, message[n-60:])
		}
	}
}

// The message of a refusal stays true without a write for every attempt.
func TestRefusalNamesTheNextAttempt(t *testing.T) {
	for name, outcome := range map[string]evacuation.Outcome{
		"a budget":         {Result: evacuation.Budgeted, Type: v1alpha1.BlockerPDBExhausted, Budget: "web", Message: "no"},
		"a lock":           {Result: evacuation.Locked, Type: v1alpha1.BlockerPDBLocked, Budget: "web", Message: "locked until noon"},
		"several budgets":  {Result: evacuation.Refused, Type: v1alpha1.BlockerMultiplePDBs, Message: "too many."},
		"a webhook":        {Result: evacuation.Postponed, Type: v1alpha1.BlockerWebhookDenied, Message: "not now"},
		"no later attempt": {Result: evacuation.Never, Type: v1alpha1.BlockerEvictionError, Message: "No. Delete it."},
	} {
		t.Run(name, func(t *testing.T) {
			got := evacuation.Refuse(v1alpha1.EvacuationStatus{}, evacuation.Refusal{Outcome: outcome, Times: 1}, now)
			condition := got.Conditions[0]
			if condition.Reason != string(outcome.Type) || got.Message != "Eviction refused: "+condition.Message || got.RefusingBudgetName != outcome.Budget {
				t.Errorf("message %q, by budget %q and condition %+v", got.Message, got.RefusingBudgetName, condition)
			}
			golden.Message(t, condition.Reason, condition.Message)
		})
	}
}

func TestReportsAreDueByTheirNews(t *testing.T) {
	told := evacuation.Refuse(v1alpha1.EvacuationStatus{}, refusedBy(v1alpha1.BlockerPDBExhausted, "no", 1), now)
	handedOver := *told.DeepCopy()
	handedOver.Conditions[0].Status = metav1.ConditionFalse
	byAnother := refusedBy(v1alpha1.BlockerPDBExhausted, "no", 1)
	byAnother.Budget = "another"
	tests := map[string]struct {
		status  v1alpha1.EvacuationStatus
		refusal evacuation.Refusal
		want    time.Duration
	}{
		"the first refusal":                      {v1alpha1.EvacuationStatus{}, refusedBy(v1alpha1.BlockerPDBExhausted, "no", 1), 0},
		"the same again":                         {told, refusedBy(v1alpha1.BlockerPDBExhausted, "no", 1), evacuation.CountInterval},
		"other words":                            {told, refusedBy(v1alpha1.BlockerPDBExhausted, "no, thanks", 1), evacuation.MessageInterval},
		"another reason in the same words":       {told, refusedBy(v1alpha1.BlockerEvictionError, "no", 1), 0},
		"the same words of another budget":       {told, byAnother, 0},
		"the same after an evacuator came back":  {handedOver, refusedBy(v1alpha1.BlockerPDBExhausted, "no", 1), 0},
		"the same message without its condition": {v1alpha1.EvacuationStatus{Message: told.Message}, refusedBy(v1alpha1.BlockerPDBExhausted, "no", 1), 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := evacuation.ReportEvery(tc.status, tc.refusal); got != tc.want {
				t.Errorf("it may be written every %s, want %s", got, tc.want)
			}
		})
	}
}
