package rollout

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance/handover"
)

// maxRefused bounds the answer of the API server in a message, in bytes. Those of Pod Security are long.
const maxRefused = 400

// jobOf returns the namespace/name of the CronJob of a rollout; empty if it has none.
func jobOf(spec *v1alpha1.NodeRolloutSpec) string {
	if spec.Job == nil {
		return ""
	}
	return spec.Job.Namespace + "/" + spec.Job.CronJob
}

// jobsByNode returns the Jobs of rollouts by the node of their NodeMaintenance.
func jobsByNode(s *Snapshot) map[string][]*batchv1.Job {
	if len(s.Jobs) == 0 {
		return nil
	}
	nodes := make(map[types.UID]string, len(s.Maintenances))
	for _, m := range s.Maintenances {
		nodes[m.UID] = onlyNode(m.Spec.NodeSelector)
	}
	byNode := map[string][]*batchv1.Job{}
	for _, job := range s.Jobs {
		if node := nodes[ownerOf(job)]; node != "" && ownerOf(job) != "" {
			byNode[node] = append(byNode[node], job)
		}
	}
	return byNode
}

// ownerOf returns the UID of the NodeMaintenance that a Job was created for; empty if there is none.
func ownerOf(job *batchv1.Job) types.UID {
	for _, owner := range job.OwnerReferences {
		if owner.Kind == maintenanceKind && owner.APIVersion == v1alpha1.SchemeGroupVersion.String() {
			return owner.UID
		}
	}
	return ""
}

// finished returns the condition that ends a Job; nil until then.
func finished(job *batchv1.Job) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return c
		}
	}
	return nil
}

// judgeJob determines the state of a drained node by its Job. It returns false if the node has to
// return in time.
func (r *rollout) judgeJob(u *unit) (settled bool) {
	last := u.record
	if r.object.Spec.Job == nil || last.Target != r.target {
		return false
	}
	start := r.jobStart(u)
	var own, other *batchv1.Job
	for _, job := range r.jobsOf[u.Name] {
		switch {
		case ownerOf(job) == last.object.UID && job.Name == start.Name && job.Namespace == start.Namespace:
			own = job
		case finished(job) == nil:
			other = job
		}
	}
	switch last.Result {
	case v1alpha1.RolloutJobSucceeded:
		if own != nil && finished(own) == nil && own.DeletionTimestamp == nil {
			r.stopJobs = append(r.stopJobs, own) // Its node has booted: it would run again.
		}
		return false
	case v1alpha1.RolloutJobFailed:
		r.failJob(u, own, &start)
		return true
	}
	u.reason = v1alpha1.RolloutNodeJobRunning
	switch synced, allowed := r.JobNamespaces[start.Namespace]; {
	case !allowed:
		r.refuseJob(u, fmt.Sprintf("Ebbtide runs no Jobs in namespace %q: add it to rollouts.jobNamespaces of the Helm chart.", excerpt.Line(start.Namespace, maxText)))
		return true
	case !synced:
		u.message = fmt.Sprintf("Whether Job %s/%s exists is unknown, as the Jobs of this namespace could not be read.", start.Namespace, start.Name)
		return false
	case own == nil:
		return r.startJob(u, &start, other)
	}
	return r.judgeRun(u, own, &start)
}

// judgeRun records the end of a Job. A boot ends it too: scripts may end in one.
func (r *rollout) judgeRun(u *unit, job *batchv1.Job, start *JobStart) (settled bool) {
	attempt := u.record.Attempt
	before, now := job.Annotations[v1alpha1.BootIDAnnotation], start.BootID
	switch end := finished(job); {
	case end != nil && end.Type == batchv1.JobComplete, before != "" && now != "" && before != now:
		attempt.Result = v1alpha1.RolloutJobSucceeded
		u.message = fmt.Sprintf("Job %s/%s has succeeded.", start.Namespace, start.Name)
	case end != nil:
		attempt.Result = v1alpha1.RolloutJobFailed
		r.failJob(u, job, start)
		settled = true
	default:
		u.message = fmt.Sprintf("Job %s/%s runs on the node.", start.Namespace, start.Name)
		return false
	}
	r.changes = append(r.changes, u.record.become(attempt, r.object))
	return settled
}

// failJob has a node count as failed by its Job, which may be deleted.
func (r *rollout) failJob(u *unit, job *batchv1.Job, start *JobStart) {
	name, end := fmt.Sprintf("Job %s/%s", start.Namespace, start.Name), (*batchv1.JobCondition)(nil)
	if job != nil {
		end = finished(job)
	}
	if end == nil {
		r.fail(u, v1alpha1.RolloutNodeJobFailed, name+" failed, and the node stays drained.")
		return
	}
	r.fail(u, v1alpha1.RolloutNodeJobFailed, fmt.Sprintf("%s failed (%s), and the node stays drained; see %s.",
		name, excerpt.Line(end.Message, maxText), command.Of("kubectl logs --namespace %s job/%s", start.Namespace, start.Name)))
}

// refuseJob has a node count as failed until its Job is created, without a command to retry it.
func (r *rollout) refuseJob(u *unit, message string) {
	if r.fail(u, v1alpha1.RolloutNodeJobRefused, message); u.state == failed {
		u.message = message
	}
}

// startJob has the Job of a node created. It waits for a Job of an earlier attempt, which may still
// change the node.
func (r *rollout) startJob(u *unit, start *JobStart, other *batchv1.Job) (settled bool) {
	_, _, handedOver := handover.Since(u.record.object, u.Name)
	refused, failed := r.RefusedJobs[start.Key()]
	switch {
	case r.ending():
		u.reason = v1alpha1.RolloutNodeDrained
		u.message = "The node is drained, and its Job is not started any more. To return the node: " + command.Of("kubectl ebbtide complete %s", u.record.object.Name)
		return false
	case !handedOver:
		u.message = "The node is drained, and its Job is about to start."
		return false
	case other != nil:
		u.message = fmt.Sprintf("Job %s/%s of an earlier attempt has not finished on the node.", other.Namespace, other.Name)
		return false
	case failed && refused.Final:
		r.refuseJob(u, fmt.Sprintf("Job %s/%s cannot be created, which is retried: %s", start.Namespace, start.Name, excerpt.Line(refused.Message, maxRefused)))
	case failed:
		u.message = fmt.Sprintf("Job %s/%s could not be created, which is retried: %s", start.Namespace, start.Name, excerpt.Line(refused.Message, maxText))
	default:
		u.message = fmt.Sprintf("Job %s/%s is being created.", start.Namespace, start.Name)
	}
	if u.state != waiting {
		r.jobs = append(r.jobs, *start)
	}
	return u.state != working
}
