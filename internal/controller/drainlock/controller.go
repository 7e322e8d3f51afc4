// Package drainlock carries out what core/drainlock decides: it locks and releases the budgets
// of pods that stay on a node, and removes locks without an owner. One controller follows
// DrainRecords, the other one budgets. A node is decided again after every write. A write that
// fails or hangs delays only nodes that need the same budgets.
package drainlock

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/kube"
)

// Options configures the controllers.
type Options struct {
	// Namespace is the namespace of the mutex.
	Namespace string
	// Workers is the number of budgets of a namespace that are processed at the same time, and of
	// nodes that are read from the API server. Defaults to 16.
	Workers int
	// LongestLock is the maximal duration of a lock after it was taken or renewed. Defaults to
	// budget.LongestLock.
	LongestLock time.Duration
	Traffic     Traffic
	Skew        *kube.Skew
}

// Traffic reports the evictions of this manager that are in flight.
type Traffic interface {
	// Busy returns the budgets of these evictions; the map is the caller's.
	Busy() map[types.NamespacedName]bool
}

const (
	defaultWorkers = 16
	// writeTimeout bounds one write. It is well below the duration of the mutex.
	writeTimeout     = 10 * time.Second
	reconcileTimeout = time.Minute
	// maxSteps is the number of writes of one reconciliation.
	maxSteps = 50
	// firstRetry and lastRetry bound the back-off after a failed write or a stale decision.
	firstRetry, lastRetry = 50 * time.Millisecond, 30 * time.Second
)

// nodes reconciles the locks of nodes.
type nodes struct {
	client client.Client
	live   client.Reader
	emit   func(...event.Event)
	// now is the time of locks, clock measures durations.
	now       kube.Now
	clock     clock.PassiveClock
	namespace string
	longest   time.Duration
	traffic   Traffic
	metrics   *metrics
	// pauses grow while decisions are stale.
	pauses       workqueue.TypedRateLimiter[reconcile.Request]
	refusals     *refusals
	queue        *queue
	statusWrites lastWrites
	// reading limits the nodes that are read from the API server at once, to bound memory. Writes,
	// which may hang, do not count.
	reading chan struct{}
}

// Add registers both controllers with a manager whose client reads from a cache
// with kube.ManagerCacheOptions and kube.IndexFields, consistent with its own
// writes.
//
// Errors: a watch cannot be set up, or the controllers were added before.
func Add(mgr manager.Manager, options Options) error {
	if options.Workers <= 0 {
		options.Workers = defaultWorkers
	}
	emit := kube.Emitter(mgr.GetEventRecorder("ebbtide"))
	n := &nodes{
		client: mgr.GetClient(), live: kube.Live(mgr.GetAPIReader()), emit: emit, now: options.Skew.Now, clock: clock.RealClock{},
		namespace: options.Namespace, longest: options.LongestLock, traffic: options.Traffic,
		metrics: newMetrics(crmetrics.Registry), pauses: newPauses(), refusals: newRefusals(), queue: newQueue(), reading: make(chan struct{}, options.Workers),
	}
	sources := append(n.sources(mgr.GetCache()), kube.OnSkew(options.Skew, kube.AllOf(n.client, &v1alpha1.DrainRecordList{})))
	of := kube.Controller[reconcile.Request]{Reconciler: n, RateLimiter: newPauses(), Timeout: reconcileTimeout}
	if err := kube.AddController(mgr, "drainlock", of, sources); err != nil {
		return err
	}
	k := &keeper{
		client: mgr.GetClient(), live: kube.Live(mgr.GetAPIReader()), emit: emit, now: options.Skew.Now,
		longest: options.LongestLock, pauses: newPauses(), told: map[types.NamespacedName][sha256.Size]byte{},
	}
	sources = append(k.sources(mgr.GetCache()), kube.OnSkew(options.Skew, kube.AllOf(k.client, &policyv1.PodDisruptionBudgetList{})))
	of = kube.ByNamespace(k, options.Workers)
	of.RateLimiter, of.Timeout = newPauses(), reconcileTimeout
	return kube.AddController(mgr, "drainlock-keeper", of, sources)
}

func newPauses() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry)
}

// Reconcile takes the locks of one node as far as possible now.
func (n *nodes) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	for range maxSteps {
		seen, err := n.observe(ctx, request.Name)
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("observe: %w", err)
		}
		if seen == nil {
			n.pauses.Forget(request)
			n.refusals.forget(request.Name)
			n.queue.forget(request.Name)
			n.statusWrites.forget(request.Name)
			n.metrics.gone(request.Name)
			if err := n.remake(ctx, request.Name); err != nil {
				return again(ctx, n.pauses, request, err)
			}
			return reconcile.Result{}, nil
		}
		decision := core.Decide(*seen)
		postponed := n.statusWrites.postpone(seen, &decision)
		seen.Pods, seen.Budgets = nil, nil // A write may hang, and must not keep them in memory.
		if decision.Status == nil && decision.Step.Kind == "" {
			n.pauses.Forget(request)
			n.metrics.has(request.Name, len(seen.Record.Status.Locks))
			_, again := n.refusals.of(request.Name, n.clock.Now())
			return reconcile.Result{RequeueAfter: kube.Soonest(decision.RequeueAfter, again, postponed, n.queue.recount(request.Name, n.clock.Now()))}, nil
		}
		if err := n.record(ctx, seen, decision); err != nil {
			n.noteRefused(seen.Record, err)
			return again(ctx, n.pauses, request, err)
		}
		if err := n.act(ctx, seen, decision.Step); err != nil {
			return again(ctx, n.pauses, request, err)
		}
	}
	return reconcile.Result{RequeueAfter: firstRetry}, nil
}

// noteRefused lets other nodes pass a node whose record cannot be written.
func (n *nodes) noteRefused(record *v1alpha1.DrainRecord, err error) {
	if !kube.IsStale(err) {
		n.refusals.add(record.Name, record.UID, err.Error(), n.clock.Now())
	}
}

// again retries a stale decision after a pause, as the cache may be behind.
func again(
	ctx context.Context, pauses workqueue.TypedRateLimiter[reconcile.Request], request reconcile.Request, err error,
) (reconcile.Result, error) {
	if kube.WithoutStale(ctx, err) != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: pauses.When(request)}, nil
}
