package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Rollout is the course of a NodeRollout.
type Rollout struct {
	// Quarter is when a quarter of the nodes was done, and Complete when all were.
	Quarter, Complete time.Time
	// Estimate is the estimatedCompletionTime after a quarter; zero if there was none.
	Estimate time.Time
}

// RollOut maintains all nodes of the load by a NodeRollout, and returns when it is complete.
func (l *Lab) RollOut(ctx context.Context, load *Load, maxUnavailable int) (course Rollout, err error) {
	list := &v1alpha1.NodeRolloutList{}
	changes, err := l.watch(ctx, list)
	if err != nil {
		return course, err
	}
	defer changes.stop()
	if err := create(ctx, l.Client, load.rollout(load.Namespace, maxUnavailable)); err != nil {
		return course, err
	}
	summary := "no status"
	for course.Complete.IsZero() {
		change, err := changes.next(ctx)
		if err != nil {
			return course, fmt.Errorf("wait for NodeRollout (%s): %w", summary, err)
		}
		if now, isRollout := change.Object.(*v1alpha1.NodeRollout); isRollout && now.Name == load.Namespace {
			course.see(&now.Status)
			summary = now.Status.Summary
		}
	}
	return course, nil
}

func (r *Rollout) see(status *v1alpha1.NodeRolloutStatus) {
	if status.NodeCount > 0 && status.DoneCount*4 >= status.NodeCount && r.Quarter.IsZero() {
		r.Quarter = time.Now()
	}
	if estimate := status.EstimatedCompletionTime; !r.Quarter.IsZero() && r.Estimate.IsZero() && estimate != nil {
		r.Estimate = estimate.Time
	}
	if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionRolloutComplete) {
		r.Complete = time.Now()
	}
}

// WaitingRollout creates another rollout over the same nodes, which its blackout keeps from
// starting any, and returns when it says so.
func (l *Lab) WaitingRollout(ctx context.Context, load *Load) error {
	waiting := load.rollout(load.Namespace+"-waits", 1)
	waiting.Spec.Target.KernelVersion = "6.13.0"
	now := time.Now()
	waiting.Spec.Blackouts = []v1alpha1.Blackout{{StartTime: metav1.NewTime(now.Add(-time.Hour)), EndTime: metav1.NewTime(now.Add(time.Hour))}}
	if err := create(ctx, l.Client, waiting); err != nil {
		return err
	}
	return l.until(ctx, "rollout that waits", func(ctx context.Context) (bool, error) {
		err := l.Client.Get(ctx, client.ObjectKeyFromObject(waiting), waiting)
		return int(waiting.Status.WaitingCount) == len(load.Nodes), err
	})
}

// RemoveRollouts deletes all rollouts with their maintenances.
func (l *Lab) RemoveRollouts(ctx context.Context) error {
	err := errors.Join(
		l.Client.DeleteAllOf(ctx, &v1alpha1.NodeRollout{}),
		l.Client.DeleteAllOf(ctx, &v1alpha1.NodeMaintenance{}),
	)
	if err != nil {
		return fmt.Errorf("delete rollouts: %w", err)
	}
	return l.until(ctx, "rollouts and maintenances to be gone", func(ctx context.Context) (bool, error) {
		rollouts, maintenances := &v1alpha1.NodeRolloutList{}, &v1alpha1.NodeMaintenanceList{}
		err := errors.Join(l.Client.List(ctx, rollouts), l.Client.List(ctx, maintenances))
		return len(rollouts.Items)+len(maintenances.Items) == 0, err
	})
}

func (load *Load) rollout(name string, maxUnavailable int) *v1alpha1.NodeRollout {
	return &v1alpha1.NodeRollout{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.NodeRolloutSpec{
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: runLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{load.Namespace}}},
			}}},
			Target:         &v1alpha1.CompleteWhen{KernelVersion: newKernel, ReadySeconds: new(int32(0))},
			MaxUnavailable: new(intstr.FromInt(maxUnavailable)),
			Maintenance:    v1alpha1.RolloutMaintenance{Reason: "benchmark", DrainDepth: v1alpha1.PodTypeDefault},
		},
	}
}
