package scenario

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// evict calls the eviction API once, as drainers do that know nothing of us.
func (w *world) evict(pod *corev1.Pod, dryRun ...string) error {
	eviction := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{DryRun: dryRun}}
	return w.client.SubResource("eviction").Create(w.ctx, pod.DeepCopy(), eviction)
}

// awaitAnswer tries to evict until the API server says so. Every answer is to be
// one on which drainers try again.
func (w *world) awaitAnswer(pod *corev1.Pod, words string) {
	w.t.Helper()
	w.eventually("an eviction of "+pod.Name+" answered "+words, func() (bool, any) {
		err := w.evict(pod)
		if !apierrors.IsTooManyRequests(err) {
			w.t.Fatalf("eviction of %s: %v, want 429", pod.Name, err)
		}
		return contains(err.Error(), words), err.Error()
	})
}
