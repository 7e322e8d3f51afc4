package v1alpha1

// RolloutJob names the CronJob whose template a rollout runs on each node. Creating or changing a
// rollout with a job needs the right to create Jobs in its namespace.
type RolloutJob struct {
	// namespace of the CronJob and of the Jobs. The chart value rollouts.jobNamespaces must list it.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace"`

	// cronJob is the name of a CronJob, which can be suspended. The Job is made from its jobTemplate
	// and bound to the node; its backoffLimit defaults to 0.
	// +required
	// +kubebuilder:validation:MaxLength=52
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	CronJob string `json:"cronJob"`
}

// RolloutJobResult is the recorded end of the Job of an attempt.
type RolloutJobResult string

const (
	// RolloutJobSucceeded records a Job that is complete, or whose node has booted while it ran.
	RolloutJobSucceeded RolloutJobResult = "Succeeded"
	// RolloutJobFailed records a Job that has failed.
	RolloutJobFailed RolloutJobResult = "Failed"
)

// Reasons of nodes of a rollout with a job.
const (
	// RolloutNodeJobRunning: the node is drained and its Job has not finished.
	RolloutNodeJobRunning = "JobRunning"
	// RolloutNodeJobFailed: the Job of the node failed, and the node stays drained.
	RolloutNodeJobFailed = "JobFailed"
	// RolloutNodeJobRefused: the Job of the node, or its pod, cannot be created. It is retried.
	RolloutNodeJobRefused = "JobRefused"
)
