package step

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/workload"
	"ebbtide.dev/ebbtide/test/patience"
)

// A lock holds in every cluster, also one that is reached by kubeconfig.
func TestALockHoldsInEveryCluster(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakeClock(time.Now())
	w := newRemotes(t, workload.Options{Pace: &quick, Clock: clock})
	runUntilEnd(t, w.manager.Start)
	for _, c := range []*v1alpha1.Cluster{
		{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "here"}},
		w.remote(t, "east", w.kubeconfig(t, same)),
	} {
		t.Run(c.Name, func(t *testing.T) {
			pod, locked := w.lockedPod(t, c.Name)
			evictions := w.connect(t, c).Evictions
			evictions.Want(usingMachine, []*corev1.Pod{pod}, nil)
			defer evictions.Want(usingMachine, nil, nil)
			patience.Eventually(t, "the lock to be honoured", func(context.Context) (string, bool) {
				answer := evictions.Refusals(usingMachine)[pod.UID]
				return fmt.Sprintf("%+v", answer), answer.Result == evacuation.Locked && answer.Type == v1alpha1.BlockerPDBLocked
			})
			locked.Annotations = nil
			if err := w.Client.Update(t.Context(), locked); err != nil {
				t.Fatal(err)
			}
			// By this clock the time never comes at which a pod is tried that misses the end of its lock.
			patience.Eventually(t, "the eviction", func(ctx context.Context) (string, bool) {
				clock.Step(time.Millisecond)
				err := w.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
				return fmt.Sprint(err, pod.DeletionTimestamp), apierrors.IsNotFound(err) || pod.DeletionTimestamp != nil
			})
		})
	}
}

// lockedPod is a pod under a locked budget.
func (w *remotes) lockedPod(t *testing.T, name string) (*corev1.Pod, *policyv1.PodDisruptionBudget) {
	t.Helper()
	now := metav1.Now()
	lock := budget.Lock{Holder: "dba@example.com", AcquiredAt: now, ExpiresAt: metav1.Time{Time: now.Add(time.Hour)}}
	locked := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: name, Annotations: map[string]string{v1alpha1.LockAnnotation: lock.Write()},
		},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}},
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: "node-one", Containers: []corev1.Container{{Name: "web", Image: "web"}}},
	}
	for _, object := range []client.Object{locked, pod} {
		if err := w.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	// Nobody is to evict before the lock is seen. The other cluster is connected later.
	w.awaitCached(t, locked)
	return pod, locked
}

// awaitCached waits until the manager has read a budget.
func (w *remotes) awaitCached(t *testing.T, locked *policyv1.PodDisruptionBudget) {
	t.Helper()
	patience.Eventually(t, "the budget to be read", func(ctx context.Context) (string, bool) {
		err := w.manager.GetClient().Get(ctx, client.ObjectKeyFromObject(locked), &policyv1.PodDisruptionBudget{})
		return fmt.Sprint(err), err == nil
	})
}
