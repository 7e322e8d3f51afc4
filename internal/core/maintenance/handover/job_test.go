package handover_test

import (
	"testing"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance/handover"
)

// A maintenance of a rollout waits for its Job, and then for what completeWhen says; that alone may be
// nothing.
func TestNodeIsBackOnlyAfterItsJob(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		attempt, label string
		when           *v1alpha1.CompleteWhen
		want           string
	}{
		"no Job, nothing to wait for":   {`{"uid":"r"}`, "patch", nil, ""},
		"Job runs":                      {`{"job":"ops/patch"}`, "patch", nil, v1alpha1.ReasonWaitingForJob},
		"Job failed":                    {`{"job":"ops/patch","jobResult":"Failed"}`, "patch", nil, v1alpha1.ReasonWaitingForJob},
		"Job succeeded":                 {`{"job":"ops/patch","jobResult":"Succeeded"}`, "patch", nil, v1alpha1.ReasonReturned},
		"Job runs, target is met":       {`{"job":"ops/patch"}`, "patch", &v1alpha1.CompleteWhen{KubeletVersion: "v1.36.4"}, v1alpha1.ReasonWaitingForJob},
		"Job succeeded, target is open": {`{"job":"ops/patch","jobResult":"Succeeded"}`, "patch", &v1alpha1.CompleteWhen{NewBoot: true}, v1alpha1.ReasonWaitingForBoot},
		"of no rollout":                 {`{"job":"ops/patch"}`, "", &v1alpha1.CompleteWhen{KubeletVersion: "v1.36.4"}, v1alpha1.ReasonReturned},
		"unreadable":                    {`{"job":`, "patch", &v1alpha1.CompleteWhen{KubeletVersion: "v1.36.4"}, v1alpha1.ReasonReturned},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "b1", v1alpha1.CompleteWhen{NewBoot: true})
			s.m.Spec.CompleteWhen = test.when
			s.m.Labels = map[string]string{v1alpha1.RolloutLabel: test.label}
			s.extra = map[string]string{v1alpha1.RolloutAttemptAnnotation: test.attempt}
			s.m.Annotations[v1alpha1.RolloutAttemptAnnotation] = test.attempt
			if w, err := handover.Read(s.m, "node-7"); test.want == "" || err != nil {
				if w != nil || err != nil {
					t.Errorf("it waits for something: %v, %v", w, err)
				}
				return
			}
			if got := s.later(time.Minute).Reason; got != test.want {
				t.Errorf("the reason is %s, want %s", got, test.want)
			}
		})
	}
}
