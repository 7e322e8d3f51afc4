package cluster_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// asLong is what the annotations below ask for.
const asLong = 500 * time.Millisecond

const slow = `
apiVersion: v1
kind: Pod
metadata:
  name: slow
  annotations:
    sandbox.ebbtide.dev/ready-after: 500ms
    sandbox.ebbtide.dev/terminate-after: 500ms
spec:
  containers: [{name: app, image: app}]
---
apiVersion: v1
kind: Pod
metadata:
  name: never-ready
  annotations: {sandbox.ebbtide.dev/ready-after: 24h}
spec:
  containers: [{name: app, image: app}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: slow}
spec:
  template:
    metadata:
      annotations: {sandbox.ebbtide.dev/complete-after: 500ms}
    spec:
      restartPolicy: Never
      containers: [{name: app, image: app}]
`

func TestAPodIsAsSlowAsItsAnnotationsSay(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Spec{Nodes: 1})
	meta := metav1.ObjectMeta{Namespace: c.Namespace(t), Name: "slow"}
	begin := time.Now()
	c.Apply(t, meta.Namespace, slow)

	pod := &corev1.Pod{ObjectMeta: meta}
	waitFor(t, c, pod, "ready", func() bool { return isReady(pod) })
	wantSlow(t, "being ready", begin)

	job := &batchv1.Job{ObjectMeta: meta}
	waitFor(t, c, job, "complete", func() bool { return job.Status.Succeeded == 1 })
	wantSlow(t, "completing a Job", begin)

	begin = time.Now()
	if err := c.Client.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	patience.Eventually(t, "the end of the pod", func(ctx context.Context) (string, bool) {
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
	wantSlow(t, "terminating", begin)

	meta.Name = "never-ready"
	pod = &corev1.Pod{ObjectMeta: meta}
	waitFor(t, c, pod, "running and not ready", func() bool {
		return pod.Status.Phase == corev1.PodRunning && !isReady(pod)
	})
}

// waitFor waits for a state of the object of this name, which it reads.
func waitFor(t *testing.T, c *cluster.Cluster, object client.Object, what string, reached func() bool) {
	t.Helper()
	key := client.ObjectKeyFromObject(object)
	patience.Eventually(t, fmt.Sprintf("%s %s", key, what), func(ctx context.Context) (string, bool) {
		err := c.Client.Get(ctx, key, object)
		return fmt.Sprintf("%s, error %v", cluster.Brief(object), err), err == nil && reached()
	})
}

func isReady(pod *corev1.Pod) bool {
	for _, cond := range pod.Status.Conditions {
		if cond.Type == corev1.PodReady {
			return cond.Status == corev1.ConditionTrue
		}
	}
	return false
}

func wantSlow(t *testing.T, what string, begin time.Time) {
	t.Helper()
	if took := time.Since(begin); took < asLong {
		t.Errorf("%s took %s, want at least %s", what, took, asLong)
	}
}
