package proof

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// fingerprint is everything about a world that a drain must leave as it was, one
// line for each object. A pod's name and node are left out: it is another one
// afterwards.
type fingerprint []string

func (w *world) fingerprint(ctx context.Context) (fingerprint, error) {
	deployments, replicaSets, pods := &appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}, &corev1.PodList{}
	budgets, evacuations := &policyv1.PodDisruptionBudgetList{}, &v1alpha1.EvacuationList{}
	var err error
	for _, list := range []client.ObjectList{deployments, replicaSets, pods, budgets, evacuations} {
		err = errors.Join(err, w.client.List(ctx, list, client.InNamespace(w.namespace)))
	}
	nodes := &corev1.NodeList{}
	err = errors.Join(err, w.client.List(ctx, nodes, client.MatchingLabels{cluster.PoolLabel: w.cluster.Pool()}))
	return slices.Concat(
		lines(deployments.Items, func(d appsv1.Deployment) string {
			return fmt.Sprintf("deployment %s, generation %d, %d replicas, %d available", meta(&d), d.Generation, *d.Spec.Replicas, d.Status.AvailableReplicas)
		}),
		lines(replicaSets.Items, func(r appsv1.ReplicaSet) string {
			return fmt.Sprintf("replica set %s %s, generation %d, %d replicas, %d available", r.Name, meta(&r), r.Generation, *r.Spec.Replicas, r.Status.AvailableReplicas)
		}),
		lines(pods.Items, describePod),
		lines(budgets.Items, func(b policyv1.PodDisruptionBudget) string {
			return fmt.Sprintf("budget %s, generation %d, %d healthy of %d", meta(&b), b.Generation, b.Status.CurrentHealthy, b.Status.ExpectedPods)
		}),
		lines(nodes.Items, func(n corev1.Node) string {
			return fmt.Sprintf("node %s %s, unschedulable %t, taints %v", n.Name, meta(&n), n.Spec.Unschedulable, n.Spec.Taints)
		}),
		lines(evacuations.Items, func(e v1alpha1.Evacuation) string { return "evacuation " + e.Name }),
	), err
}

// differs shows what is no longer there, and what is new; empty for nothing.
func (f fingerprint) differs(now fingerprint) string {
	var all []string
	if len(f) != len(now) {
		all = append(all, fmt.Sprintf("%d objects before, %d now", len(f), len(now)))
	}
	for _, line := range f {
		if !slices.Contains(now, line) {
			all = append(all, "- "+line)
		}
	}
	for _, line := range now {
		if !slices.Contains(f, line) {
			all = append(all, "+ "+line)
		}
	}
	return strings.Join(all, "\n")
}

// describePod tells a pod that runs as its owner wants from one that does not.
func describePod(p corev1.Pod) string {
	var owners []string
	for _, owner := range p.OwnerReferences {
		owners = append(owners, owner.Kind+" "+owner.Name)
	}
	ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	return fmt.Sprintf("pod of %s %s, ready %t, deleted %t", strings.Join(owners, ", "), meta(&p), ready, p.DeletionTimestamp != nil)
}

func meta(object client.Object) string {
	return fmt.Sprintf("labels %v annotations %v finalizers %v", object.GetLabels(), object.GetAnnotations(), object.GetFinalizers())
}

func lines[T any](items []T, line func(T) string) []string {
	var all []string
	for _, item := range items {
		all = append(all, line(item))
	}
	slices.Sort(all)
	return all
}
