package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/core/preflight"
)

// askedOneByOne is of how many nodes the pods are asked for node by node; of more, all
// pods of the cluster are read.
const askedOneByOne = 20

// maxLost is how many losses, or outages, of a sort a warning names.
const maxLost = 5

// warnOfLoss says what the drain takes for good, before it is asked for. kubectl drain
// refuses it until somebody agrees by a flag; who has given the flag knows. That pods
// cannot be read is said, and is no obstacle.
//
// Errors: something is lost, or that is unknown, and --refuse-loss was said.
func (o *drainOptions) warnOfLoss(ctx context.Context, nodes []*metav1.PartialObjectMetadata) error {
	given := func(flag string) bool { return o.flags.Lookup(flag).Value.String() == "true" }
	loss, err := o.loss(ctx, nodes)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && o.RefuseLoss:
		return fmt.Errorf("whether pods lose data is unknown, and --refuse-loss is said: %w", err)
	case err != nil:
		o.say(fmt.Sprintf("whether pods lose data is unknown: %s", excerpt.Line(err.Error(), maxSaid)))
	}
	if len(loss.Data) > 0 && (o.RefuseLoss || !given("delete-emptydir-data")) {
		o.say("goes with its pod: " + phrase.Some(loss.Data, maxLost))
	}
	if len(loss.Unreplaced) > 0 && (o.RefuseLoss || !given("force")) {
		o.say("made again by nobody: " + phrase.Some(loss.Unreplaced, maxLost))
	}
	if len(loss.Failed) > 0 {
		o.say("fails for good: " + phrase.Some(loss.Failed, maxLost))
	}
	if o.RefuseLoss && loss.Any() {
		return errors.New("nothing was asked for, as the drain loses what is named above; without --refuse-loss it begins")
	}
	return nil
}

// loss is what the pods on these nodes lose. Where Jobs cannot be read, that of others is
// known all the same.
func (o *drainOptions) loss(ctx context.Context, nodes []*metav1.PartialObjectMetadata) (preflight.Loss, error) {
	pods, err := o.podsOn(ctx, nodes)
	if err != nil {
		return preflight.Loss{}, err
	}
	var jobs []*batchv1.Job
	if slices.ContainsFunc(pods, ofJob) {
		jobs, err = pages(ctx, o.reached, &batchv1.JobList{}, slimJob)
	}
	return preflight.LossOf(pods, jobs), err
}

// ofJob is true of a pod that a Job has made.
func ofJob(pod *corev1.Pod) bool {
	owner := podclass.Owner(pod)
	return owner != nil && owner.Kind == "Job"
}

// podsOn are the pods on these nodes, without what nobody needs here.
func (o *drainOptions) podsOn(ctx context.Context, nodes []*metav1.PartialObjectMetadata) (pods []*corev1.Pod, err error) {
	meant := map[string]bool{}
	for _, node := range nodes {
		meant[node.Name] = true
	}
	slim := func(p *corev1.Pod) *corev1.Pod {
		if !meant[p.Spec.NodeName] {
			return nil
		}
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, Labels: p.Labels, Annotations: p.Annotations, OwnerReferences: p.OwnerReferences},
			Spec:       corev1.PodSpec{Volumes: p.Spec.Volumes}, Status: corev1.PodStatus{Phase: p.Status.Phase},
		}
	}
	if len(nodes) > askedOneByOne {
		return pages(ctx, o.reached, &corev1.PodList{}, slim)
	}
	for _, node := range nodes {
		of, err := pages(ctx, o.reached, &corev1.PodList{}, slim, client.MatchingFields{"spec.nodeName": node.Name})
		if err != nil {
			return nil, err
		}
		pods = append(pods, of...)
	}
	return pods, nil
}
