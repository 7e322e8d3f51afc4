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

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/core/preflight"
	"ebbtide.dev/ebbtide/internal/kube"
)

// maxListedNodes bounds the nodes whose pods are listed one by one; for more, all pods of the
// cluster are read.
const maxListedNodes = 20

// maxLost bounds the losses or outages of a kind that a warning names.
const maxLost = 5

// warnLoss warns of what the drain destroys, unless the flag of kubectl drain for it is given.
//
// Errors: something is lost, or that is unknown, with --refuse-loss.
func (o *drainOptions) warnLoss(ctx context.Context, nodes []*metav1.PartialObjectMetadata) error {
	given := func(flag string) bool { return o.flags.Lookup(flag).Value.String() == "true" }
	loss, err := o.loss(ctx, nodes)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && o.RefuseLoss:
		return fmt.Errorf("cannot determine whether pods lose data, as --refuse-loss requires: %w", err)
	case err != nil:
		o.warn("cannot determine whether pods lose data: " + excerpt.Line(err.Error(), maxSaid))
	}
	if len(loss.Data) > 0 && (o.RefuseLoss || !given("delete-emptydir-data")) {
		o.warn("data lost with its pod: " + phrase.Some(loss.Data, maxLost))
	}
	if len(loss.Unreplaced) > 0 && (o.RefuseLoss || !given("force")) {
		o.warn("not recreated: " + phrase.Some(loss.Unreplaced, maxLost))
	}
	if len(loss.Failed) > 0 {
		o.warn("fails permanently: " + phrase.Some(loss.Failed, maxLost))
	}
	if o.RefuseLoss && loss.Any() {
		return errors.New("refused because of the losses above; drain without --refuse-loss to accept them")
	}
	return nil
}

// loss forecasts what the pods on these nodes lose. An error to read Jobs leaves the rest valid.
func (o *drainOptions) loss(ctx context.Context, nodes []*metav1.PartialObjectMetadata) (preflight.Loss, error) {
	pods, err := o.podsOn(ctx, nodes)
	if err != nil {
		return preflight.Loss{}, err
	}
	var jobs []*batchv1.Job
	if slices.ContainsFunc(pods, isOfJob) {
		jobs, err = pages(ctx, o.reached, &batchv1.JobList{}, whole[*batchv1.Job])
	}
	return preflight.LossOf(pods, jobs), err
}

// isOfJob reports whether a Job owns the pod.
func isOfJob(pod *corev1.Pod) bool {
	owner := podclass.Owner(pod)
	return owner != nil && owner.Kind == "Job"
}

// podsOn lists the pods on these nodes, reduced to what a loss depends on.
func (o *drainOptions) podsOn(ctx context.Context, nodes []*metav1.PartialObjectMetadata) (pods []*corev1.Pod, err error) {
	chosen := map[string]bool{}
	for _, node := range nodes {
		chosen[node.Name] = true
	}
	slim := func(p *corev1.Pod) *corev1.Pod {
		if !chosen[p.Spec.NodeName] {
			return nil
		}
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, Labels: p.Labels, Annotations: p.Annotations, OwnerReferences: p.OwnerReferences},
			Spec:       corev1.PodSpec{Volumes: p.Spec.Volumes}, Status: corev1.PodStatus{Phase: p.Status.Phase},
		}
	}
	if len(nodes) > maxListedNodes {
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

// refuseSeveral rejects the drain of an existing maintenance of several nodes without --all-at-once. The
// error names what would be down.
func (o *drainOptions) refuseSeveral(ctx context.Context, m *v1alpha1.NodeMaintenance, names []string) error {
	if o.AllAtOnce || len(names) < 2 {
		return nil
	}
	s := &survey{reached: o.reached, ebbtide: o.ebbtide()}
	var err error
	if s.nodes, err = pages(ctx, o.reached, &corev1.NodeList{}, kube.SlimNode); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	if err := s.read(ctx, s.everything()...); err != nil {
		return err
	}
	snapshot := s.snapshot(timeOf(o.clock))
	snapshot.Maintenance, snapshot.Place = m.DeepCopy(), nil
	snapshot.Maintenance.Spec.Stage = v1alpha1.StageDrain
	slices.Sort(names)
	instead := command.Join("NODE...")
	if len(names) <= maxNamed {
		instead = command.Names(names...)
	}
	return final(fmt.Errorf("NodeMaintenance %s would drain %d nodes at the same time: %s. %s\nTo drain them so, add --all-at-once. To drain one node after the other:\n  %s",
		m.Name, len(names), someOf(names), downWords(preflight.Of(snapshot)), o.command("drain %s", instead)))
}

// downWords describes which applications would be down.
func downWords(f preflight.Forecast) string {
	for _, u := range f.Unread {
		if u.Kind == "Pod" || u.Kind == "PodDisruptionBudget" {
			return fmt.Sprintf("Cannot determine which applications would be down: list %s: %s.", u.Kind, excerpt.Line(u.Why, maxText))
		}
	}
	if len(f.Outages) == 0 {
		return "Applications with several pods stay up by ready replicas elsewhere or PodDisruptionBudgets."
	}
	return "These applications would be down, because all of their pods leave without a PodDisruptionBudget: " + phrase.Some(outages(f.Outages), maxLost) + "."
}
