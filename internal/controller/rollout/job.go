package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	core "ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/internal/kube"
)

// errForeignJob is a Job of another one that has the name of ours.
var errForeignJob = errors.New("a Job of this name exists and is not of this NodeMaintenance")

// jobCache reads the Jobs of rollouts in a namespace.
type jobCache struct {
	client.Reader

	namespace string
	synced    func() bool
}

// watchJobs starts a cache for each namespace. One that cannot be read delays nothing but its Jobs.
func (r *reconciler) watchJobs(ctx context.Context, mgr manager.Manager, namespaces []string) error {
	for _, namespace := range namespaces {
		changed := kube.OnInform(func(old, now *batchv1.Job) {
			if now == nil {
				r.newestJobs.gone(old)
			}
			r.again()
		})
		reader, synced, err := kube.CacheJobs(ctx, mgr, namespace, changed, r.again)
		if err != nil {
			return fmt.Errorf("watch the Jobs of namespace %s: %w", namespace, err)
		}
		r.jobs = append(r.jobs, jobCache{reader, namespace, synced})
	}
	return nil
}

// observeJobs adds the Jobs of rollouts. It returns when the next creation may be retried; 0 is never.
func (r *reconciler) observeJobs(ctx context.Context, snapshot *core.Snapshot) (due time.Duration) {
	snapshot.JobNamespaces = make(map[string]bool, len(r.jobs))
	var cached []*batchv1.Job
	for _, of := range r.jobs {
		var list batchv1.JobList
		known := of.synced() && of.List(ctx, &list, client.InNamespace(of.namespace), client.UnsafeDisableDeepCopy) == nil
		snapshot.JobNamespaces[of.namespace] = known
		cached = append(cached, kube.Pointers(list.Items)...)
	}
	byName, due := r.newestJobs.over(cached)
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		snapshot.Jobs = append(snapshot.Jobs, byName[name])
	}
	var rest time.Duration
	snapshot.RefusedJobs, rest = r.jobRefusals.ofJobs()
	return kube.Soonest(due, rest)
}

// ofJobs returns the errors of all last writes, and when the first of them may be retried; 0 is
// never. A refused Job counts as refused until it is created.
func (r *refusals) ofJobs() (all map[string]core.JobRefusal, due time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all = make(map[string]core.JobRefusal, len(r.all))
	for name, one := range r.all {
		all[name] = core.JobRefusal{Message: one.message, Final: one.final}
		due = kube.Soonest(due, max(one.until.Sub(r.clock.Now()), 0))
	}
	return all, due
}

// chooseJobs picks the Jobs to write, but for those that rest.
func (w *writing) chooseJobs() {
	for _, start := range w.decision.Jobs {
		w.jobNames = append(w.jobNames, start.Key())
		if w.jobRefusals.left(start.Key()) == 0 {
			w.jobs = append(w.jobs, start)
		}
	}
	for _, job := range w.decision.StopJobs {
		if !w.outdated.has(job) {
			w.stopJobs = append(w.stopJobs, job)
		}
	}
}

// actOnJobs creates and deletes Jobs. One that is refused delays no other.
func (w *writing) actOnJobs(ctx context.Context) {
	kube.Parallel(maxWrites, len(w.jobs), func(i int) {
		start := &w.jobs[i]
		logger := log.FromContext(ctx).WithValues("rollout", w.before.Name, "job", start.Key())
		if err := w.createJob(ctx, start); err != nil {
			w.jobRefusals.add(start.Key(), err)
			logger.Error(err, "Failed to create a Job, retrying")
			return
		}
		w.jobRefusals.drop(start.Key())
		logger.Info("Created Job")
	})
	kube.Parallel(maxWrites, len(w.stopJobs), func(i int) {
		job := w.stopJobs[i]
		err := w.client.Delete(ctx, job.DeepCopy(), client.Preconditions{UID: &job.UID},
			client.PropagationPolicy(metav1.DeletePropagationBackground), client.DisableReadYourWritesConsistency)
		w.outdated.add(job, err)
		if logger := log.FromContext(ctx).WithValues("rollout", w.before.Name, "job", client.ObjectKeyFromObject(job)); err != nil {
			logger.V(1).Info("Failed to delete a Job", "reason", err.Error())
		} else {
			logger.Info("Deleted Job", "reason", "its node has booted")
		}
	})
}

// createJob creates a Job from its CronJob. The Job controller retries refused pods forever and
// without a word in the status, so a pod is tried first.
func (w *writing) createJob(ctx context.Context, start *core.JobStart) error {
	from := &batchv1.CronJob{}
	if err := w.live.Get(ctx, client.ObjectKey{Namespace: start.Namespace, Name: start.CronJob}, from); err != nil {
		return fmt.Errorf("read its CronJob: %w", err)
	}
	job := start.Job(from)
	err := w.client.Create(ctx, core.Pod(job), client.DryRunAll, client.DisableReadYourWritesConsistency)
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return fmt.Errorf("its pods cannot be created: %w", err)
	}
	err = w.client.Create(ctx, job, client.DisableReadYourWritesConsistency)
	if apierrors.IsAlreadyExists(err) {
		job = &batchv1.Job{}
		if err := w.live.Get(ctx, client.ObjectKey{Namespace: start.Namespace, Name: start.Name}, job); err != nil {
			return fmt.Errorf("read the Job, which exists: %w", err)
		}
		if !start.Owns(job) {
			return errForeignJob
		}
		err = nil
	}
	if err == nil {
		w.newestJobs.note(kube.StripJob(job))
	}
	return err
}

// isRefused reports whether the API server has refused a write, rather than been unable to answer.
func isRefused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return errors.Is(err, errForeignJob)
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}
