package preflight

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/core/surge"
)

// ownerKey identifies the controller of pods.
type ownerKey struct {
	namespace, kind, name string
	uid                   types.UID
}

func ownerOf(object *corev1.Pod) ownerKey {
	owner := podclass.Owner(object)
	if owner == nil {
		return ownerKey{}
	}
	return ownerKey{object.Namespace, owner.Kind, owner.Name, owner.UID}
}

// owners finds what makes pods.
type owners struct {
	deployments  map[types.UID]*appsv1.Deployment
	statefulSets map[ownerKey]*appsv1.StatefulSet
	jobs         map[types.UID]*batchv1.Job
	claims       map[types.NamespacedName]*corev1.PersistentVolumeClaim
	volumes      map[string]*corev1.PersistentVolume
	// ineligible is the reason why Deployments cannot surge, as far as anybody has asked.
	ineligible map[*appsv1.Deployment]string
}

func newOwners(given Owners) *owners {
	o := &owners{
		deployments: surge.ByReplicaSet(given.Deployments, given.ReplicaSets), statefulSets: map[ownerKey]*appsv1.StatefulSet{}, jobs: map[types.UID]*batchv1.Job{},
		claims: map[types.NamespacedName]*corev1.PersistentVolumeClaim{}, volumes: map[string]*corev1.PersistentVolume{}, ineligible: map[*appsv1.Deployment]string{},
	}
	for _, set := range given.StatefulSets {
		o.statefulSets[ownerKey{set.Namespace, "StatefulSet", set.Name, set.UID}] = set
	}
	for _, job := range given.Jobs {
		o.jobs[job.UID] = job
	}
	for _, claim := range given.Claims {
		o.claims[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] = claim
	}
	for _, volume := range given.Volumes {
		o.volumes[volume.Name] = volume
	}
	return o
}

// deploymentOf returns the Deployment of a pod's ReplicaSet; nil without one.
func (o *owners) deploymentOf(object *corev1.Pod) *appsv1.Deployment {
	owner := podclass.Owner(object)
	if owner == nil || owner.Kind != "ReplicaSet" {
		return nil
	}
	return o.deployments[owner.UID]
}

func (o *owners) cannotSurge(d *appsv1.Deployment) string {
	if d == nil {
		return "it is gone, or could not be read"
	}
	why, known := o.ineligible[d]
	if !known {
		if why = surge.Ineligible(d); why == "" {
			why = surge.Exclusive(o.claimsOf(d))
		}
		o.ineligible[d] = why
	}
	return why
}

func (o *owners) claimsOf(d *appsv1.Deployment) []*corev1.PersistentVolumeClaim {
	var claims []*corev1.PersistentVolumeClaim
	for _, volume := range d.Spec.Template.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		if claim := o.claims[types.NamespacedName{Namespace: d.Namespace, Name: volume.PersistentVolumeClaim.ClaimName}]; claim != nil {
			claims = append(claims, claim)
		}
	}
	return claims
}

// jobEnds returns why a Job does not replace an evicted pod; empty if it does.
func (o *owners) jobEnds(uid types.UID) string {
	job := o.jobs[uid]
	switch {
	case job == nil || job.Spec.BackoffLimit == nil || ignoresDisruptions(job):
		return ""
	case job.Status.Failed >= *job.Spec.BackoffLimit:
		return fmt.Sprintf("Job %s has failed for good then: its backoffLimit is %d", job.Name, *job.Spec.BackoffLimit)
	default:
		return ""
	}
}

// ignoresDisruptions reports whether a pod that is evicted is no failure of its Job.
func ignoresDisruptions(job *batchv1.Job) bool {
	return job.Spec.PodFailurePolicy != nil && slices.ContainsFunc(job.Spec.PodFailurePolicy.Rules, func(rule batchv1.PodFailurePolicyRule) bool {
		return rule.Action == batchv1.PodFailurePolicyActionIgnore &&
			slices.ContainsFunc(rule.OnPodConditions, func(c batchv1.PodFailurePolicyOnPodConditionsPattern) bool { return c.Type == corev1.DisruptionTarget })
	})
}
