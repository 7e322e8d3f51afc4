package validate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// RunsJob returns the job that the rollout runs from now on by the will of the author; nil if none.
// The author must be allowed to create Jobs in its namespace. Pausing and ending run nothing.
func (c RolloutChange) RunsJob() *v1alpha1.RolloutJob {
	if c.Ends() || c.keepsSpec() || c.pauses() {
		return nil
	}
	return c.New.Spec.Job
}

// pauses returns true if the change does nothing else.
func (c RolloutChange) pauses() bool {
	if c.Old == nil || c.New.Spec.State != v1alpha1.RolloutPaused {
		return false
	}
	paused := c.Old.Spec.DeepCopy()
	paused.State = v1alpha1.RolloutPaused
	return equality.Semantic.DeepEqual(*paused, c.New.Spec)
}

// JobRefusal returns why a user who may not create Jobs may not have a rollout create them. Why is
// the authorizer's reason.
func JobRefusal(user string, job *v1alpha1.RolloutJob, why string) string {
	if why != "" {
		why = " (" + why + ")"
	}
	return fmt.Sprintf(`spec.job: user %q may not create Jobs in namespace %q%s, and only who may create them may have a NodeRollout run them: `+
		`ask for the verb "create" on jobs.batch in this namespace, or leave out spec.job`, user, job.Namespace, why)
}
