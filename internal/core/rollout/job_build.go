package rollout

import (
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

const (
	maintenanceKind = "NodeMaintenance"
	// maxBootID bounds what a node reports, in bytes.
	maxBootID = 256
	// maxCronJobInName leaves room for a hash in a name of 63 characters.
	maxCronJobInName = 48
	// instantiateAnnotation is the mark of kubectl create job --from.
	instantiateAnnotation = "cronjob.kubernetes.io/instantiate"
)

// JobStart names a Job that is to be created from a CronJob.
type JobStart struct {
	Namespace, Name, CronJob string

	rollout, node string
	// BootID identifies the boot of the node.
	BootID      string
	maintenance *v1alpha1.NodeMaintenance
}

// JobRefusal holds the error of the last creation of a Job. Final is true if the API server refused
// it, and false if it may have been unable to answer.
type JobRefusal struct {
	Message string
	Final   bool
}

// Key returns the namespace/name of the Job.
func (s *JobStart) Key() string { return s.Namespace + "/" + s.Name }

// Owns returns true if a Job is the one that is to be created.
func (s *JobStart) Owns(job *batchv1.Job) bool { return ownerOf(job) == s.maintenance.UID }

// jobStart returns the Job of the latest attempt of a node. Its name follows from the
// NodeMaintenance, so that none is created twice.
func (r *rollout) jobStart(u *unit) JobStart {
	job, m := r.object.Spec.Job, u.record.object
	short := strings.TrimRight(job.CronJob[:min(len(job.CronJob), maxCronJobInName)], "-.")
	return JobStart{
		Namespace: job.Namespace, Name: short + "-" + hashOf(m.Name, m.UID, job), CronJob: job.CronJob,
		rollout: r.object.Name, node: u.Name, BootID: excerpt.Of(u.Status.NodeInfo.BootID, maxBootID), maintenance: m,
	}
}

// Job returns the Job as kubectl create job --from creates it, bound to the drained node.
func (s *JobStart) Job(from *batchv1.CronJob) *batchv1.Job {
	template := from.Spec.JobTemplate.DeepCopy()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: s.Name,
			Labels: with(template.Labels, v1alpha1.RolloutLabel, s.rollout),
			Annotations: with(with(template.Annotations, instantiateAnnotation, "manual"),
				v1alpha1.BootIDAnnotation, s.BootID),
			// It goes with the record of the attempt.
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: maintenanceKind, Name: s.maintenance.Name, UID: s.maintenance.UID,
			}},
		},
		Spec: template.Spec,
	}
	job.Spec.TTLSecondsAfterFinished = nil
	if job.Spec.BackoffLimit == nil {
		job.Spec.BackoffLimit = new(int32(0))
	}
	pod := &job.Spec.Template
	// It neither keeps the node from being drained nor is it evicted.
	pod.Labels = with(pod.Labels, v1alpha1.DrainLabel, "skip")
	pod.Spec.NodeName = ""
	for _, taint := range []string{corev1.TaintNodeUnschedulable, v1alpha1.DaemonSetTaint} {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	}
	bind(&pod.Spec, s.node)
	return job
}

// Pod returns the first pod of a Job, to ask whether its namespace admits it.
func Pod(job *batchv1.Job) *corev1.Pod {
	template := job.Spec.Template.DeepCopy()
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, GenerateName: job.Name + "-", Labels: template.Labels, Annotations: template.Annotations,
		},
		Spec: template.Spec,
	}
}

func with(values map[string]string, key, value string) map[string]string {
	values = maps.Clone(values)
	if values == nil {
		values = map[string]string{}
	}
	values[key] = value
	return values
}

// bind requires a node by name besides what the pod requires. Terms are alternatives, so each gets
// the requirement; an empty one selects no node.
func bind(pod *corev1.PodSpec, node string) {
	name := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}
	if pod.Affinity == nil {
		pod.Affinity = &corev1.Affinity{}
	}
	if pod.Affinity.NodeAffinity == nil {
		pod.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	affinity := pod.Affinity.NodeAffinity
	if affinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{name},
		}}}
		return
	}
	terms := affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		if len(terms[i].MatchExpressions)+len(terms[i].MatchFields) > 0 {
			terms[i].MatchFields = append(slices.Clone(terms[i].MatchFields), name)
		}
	}
}
