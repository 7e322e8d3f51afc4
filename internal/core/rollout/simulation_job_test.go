package rollout_test

import (
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance/handover"
	"ebbtide.dev/ebbtide/internal/core/rollout"
)

func (s *simulation) someJob() *v1alpha1.RolloutJob {
	return pick(s, []*v1alpha1.RolloutJob{nil, {Namespace: "ops", CronJob: "patch"}, {Namespace: "ops", CronJob: "clean"}})
}

// job returns what a NodeMaintenance of a rollout says of its Job.
func (s *simulation) job(m *v1alpha1.NodeMaintenance) handover.Job {
	if m.Labels[v1alpha1.RolloutLabel] == "" {
		return handover.Job{}
	}
	return s.attempt(m).Job
}

func jobEnd(job *batchv1.Job) batchv1.JobConditionType {
	if len(job.Status.Conditions) == 0 {
		return ""
	}
	return job.Status.Conditions[0].Type
}

// nodeOfJob returns the name of the node of a Job; empty if its NodeMaintenance is none of these.
func nodeOfJob(job *batchv1.Job, all []*v1alpha1.NodeMaintenance) string {
	if m, at := find(all, job.OwnerReferences[0].Name); at >= 0 {
		return nodeOf(m)
	}
	return ""
}

// runJobs ends Jobs on nodes that are not broken. Some end in a boot.
func (s *simulation) runJobs(percent int) {
	for _, job := range slices.Clone(s.jobs) {
		n, at := find(s.nodes, nodeOfJob(job, s.maintenances))
		if jobEnd(job) != "" || at < 0 || s.broken[n.Name] || !s.chance(percent) {
			continue
		}
		s.progress++
		switch s.random.IntN(8) {
		case 0:
			s.editNode(n.Name, func(n *corev1.Node) { n.Status.NodeInfo.BootID = "boot-" + string(s.uid()) })
		case 1:
			s.endJob(job.Name, batchv1.JobFailed)
		default:
			s.endJob(job.Name, batchv1.JobComplete)
		}
	}
}

func (s *simulation) endJob(name string, how batchv1.JobConditionType) {
	edit(s.world, s.jobs, name, func(job *batchv1.Job) {
		job.Status.Conditions = []batchv1.JobCondition{{Type: how, Status: corev1.ConditionTrue}}
	})
}

// happenToJobs has users delete Jobs, and the API server accept those that it has refused.
func (s *simulation) happenToJobs() {
	if s.chance(50) {
		clear(s.refusedJobs)
	}
	if len(s.jobs) > 0 && s.chance(10) {
		s.deleteJob(pick(s, s.jobs).Name)
	}
}

// checkJobs checks that Jobs start on drained nodes only, one at a time on each, and that no node
// reboots before its Job has succeeded. It has some refused.
func (s *simulation) checkJobs(view *rollout.Snapshot, d *rollout.Decision) {
	for i := range d.Rollouts {
		for _, start := range d.Rollouts[i].Jobs {
			s.checkJobStart(view, d.Rollouts[i].Rollout, &start)
		}
		for _, c := range d.Rollouts[i].Changes {
			if job := s.job(c.After); !c.Delete && c.After.Annotations[v1alpha1.RebootAnnotation] != "" && job.Awaited() {
				s.t.Errorf("%s reboots before its Job: %+v", c.After.Name, job)
			}
		}
	}
}

func (s *simulation) checkJobStart(view *rollout.Snapshot, r *v1alpha1.NodeRollout, start *rollout.JobStart) {
	m, at := find(view.Maintenances, start.Job(&batchv1.CronJob{}).OwnerReferences[0].Name)
	if at < 0 || !isDrained(m) || !s.job(m).Awaited() || s.job(m).CronJob != start.Namespace+"/"+start.CronJob || r.Spec.State == v1alpha1.RolloutAborted {
		s.t.Fatalf("Job %s starts for %+v", start.Key(), m)
	}
	for _, other := range s.jobs {
		if other.Name != start.Name && jobEnd(other) == "" && nodeOfJob(other, view.Maintenances) == nodeOf(m) {
			s.t.Errorf("Job %s starts beside %s on %s", start.Name, other.Name, nodeOf(m))
		}
	}
	if s.chance(10) {
		s.jobKeys[start.Key()] = m.UID
		s.refusedJobs[start.Key()] = rollout.JobRefusal{Message: "refused", Final: s.chance(70)}
	}
}

// failsByJob returns true if the Job of a drained node fails it.
func (o *oracle) failsByJob(r *v1alpha1.NodeRollout, f *fate) bool {
	recorded := o.job(f.latest)
	if r.Spec.Job == nil || !o.isFor(f.latest, r) || recorded.Result != "" || !o.view.JobNamespaces["ops"] {
		return r.Spec.Job != nil && o.isFor(f.latest, r) && recorded.Result == v1alpha1.RolloutJobFailed
	}
	refused, free := false, true
	for _, job := range o.view.Jobs {
		switch {
		case job.OwnerReferences[0].UID == f.latest.UID && strings.HasPrefix(job.Name, r.Spec.Job.CronJob+"-"):
			return jobEnd(job) == batchv1.JobFailed && job.Annotations[v1alpha1.BootIDAnnotation] == f.node.Status.NodeInfo.BootID
		case jobEnd(job) == "" && nodeOfJob(job, o.view.Maintenances) == f.node.Name:
			free = false
		}
	}
	for key, refusal := range o.view.RefusedJobs {
		refused = refused || refusal.Final && o.jobKeys[key] == f.latest.UID && strings.HasPrefix(key, "ops/"+r.Spec.Job.CronJob+"-")
	}
	return refused && free && r.DeletionTimestamp == nil && r.Spec.State != v1alpha1.RolloutAborted
}
