package kube

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// maxOfJob bounds a text of a Job, in bytes.
const maxOfJob = 256

// CacheJobs caches the Jobs of rollouts in a namespace until the context ends. It does not wait for
// the namespace, whose Jobs the manager may be unable to read: reads block until synced returns true,
// when ready is called.
func CacheJobs(
	ctx context.Context, mgr manager.Manager, namespace string, changed toolscache.ResourceEventHandler, ready func(),
) (reader client.Reader, synced func() bool, err error) {
	ours, err := labels.NewRequirement(v1alpha1.RolloutLabel, selection.Exists, nil)
	if err != nil {
		return nil, nil, err
	}
	jobs, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces: map[string]cache.Config{namespace: {}}, DefaultLabelSelector: labels.NewSelector().Add(*ours),
		DefaultTransform: transform(StripJob),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("make a cache: %w", err)
	}
	informer, err := jobs.GetInformer(ctx, &batchv1.Job{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, nil, err
	}
	if _, err := informer.AddEventHandler(changed); err != nil {
		return nil, nil, err
	}
	var complete atomic.Bool
	go func() { _ = jobs.Start(ctx) }()
	go func() {
		if toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			complete.Store(true)
			ready()
		}
	}()
	return jobs, complete.Load, nil
}

// StripJob returns the parts of a Job that decisions read. Users can write them, so they are bounded.
func StripJob(job *batchv1.Job) *batchv1.Job {
	stripped := &batchv1.Job{ObjectMeta: identity(&job.ObjectMeta)}
	if boot := job.Annotations[v1alpha1.BootIDAnnotation]; boot != "" && len(boot) <= maxOfJob {
		stripped.Annotations = map[string]string{v1alpha1.BootIDAnnotation: boot}
	}
	for _, owner := range job.OwnerReferences {
		if owner.APIVersion == v1alpha1.SchemeGroupVersion.String() && owner.Kind == "NodeMaintenance" {
			stripped.OwnerReferences = []metav1.OwnerReference{owner}
			break
		}
	}
	for _, condition := range job.Status.Conditions {
		if condition.Status == corev1.ConditionTrue && (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) {
			condition.Message = strings.ToValidUTF8(condition.Message[:min(len(condition.Message), maxOfJob)], "")
			stripped.Status.Conditions = []batchv1.JobCondition{condition}
			break
		}
	}
	return stripped
}
