package handover

import (
	"encoding/json"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Job holds the part of v1alpha1.RolloutAttemptAnnotation that says which Job has to succeed on the
// node before its maintenance completes. Only the manager writes it.
type Job struct {
	// CronJob is the namespace/name of the CronJob that it is made from; empty if there is none.
	CronJob string                    `json:"job,omitempty"`
	Result  v1alpha1.RolloutJobResult `json:"jobResult,omitempty"`
}

// Awaited returns true until the Job has succeeded.
func (j Job) Awaited() bool { return j.CronJob != "" && j.Result != v1alpha1.RolloutJobSucceeded }

// jobOf returns the Job of a maintenance of a rollout; the zero value if there is none.
func jobOf(m *v1alpha1.NodeMaintenance) (job Job) {
	text := m.Annotations[v1alpha1.RolloutAttemptAnnotation]
	if m.Labels[v1alpha1.RolloutLabel] == "" || text == "" || json.Unmarshal([]byte(text), &job) != nil {
		return Job{}
	}
	return job
}
