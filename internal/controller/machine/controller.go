package machine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/workload"
)

const (
	firstRetry, lastRetry = 100 * time.Millisecond, 30 * time.Second
	// atOnce is the pause after a pass that recorded something.
	atOnce = time.Millisecond
	// staleRetry is the longest pause after a stale decision. If an object changes all the time,
	// one of the next passes is fast enough.
	staleRetry = time.Second
	// passTimeout ends a pass whose requests hang, readTimeout each of its at most five groups of
	// reads, so that time is left to report it.
	passTimeout, readTimeout = time.Minute, 10 * time.Second
)

// Options configures the controller.
type Options struct {
	// Workers is the number of Machines of one namespace that are reconciled at the same time.
	// Defaults to 32.
	Workers int
	Skew    *kube.Skew
}

const defaultWorkers = 32

type clusters interface {
	Use(cluster *v1alpha1.Cluster, user types.NamespacedName) (*workload.Connection, error)
	Release(cluster, user types.NamespacedName)
}

// reconciler reconciles Machines. Its memory only saves work.
type reconciler struct {
	client   client.Client
	live     client.Reader
	clusters clusters
	object   func(context.Context, types.NamespacedName, schema.GroupVersionKind) (Found, error)
	emit     func(...event.Event)
	// now is the time of deletions, clock measures durations.
	now     kube.Now
	clock   clock.PassiveClock
	metrics *metrics
	// views index what Machines depend on, pace limits status writes, slots keep workers free for
	// other clusters, failures spaces retries.
	views    *views
	pace     *pace
	slots    *slots
	kinds    *slots
	failures workqueue.TypedRateLimiter[types.NamespacedName]
	// stale holds the Machines whose last decision was stale, refused the failed actions of their
	// last pass.
	stale, refused sync.Map
	// confirmed holds the UIDs of Machines whose lack of a Node the API server has confirmed.
	confirmed sync.Map
	// wake reconciles Machines. It does nothing before there is a queue, as all Machines are
	// reconciled at the start.
	wake  func(...types.NamespacedName)
	queue atomic.Pointer[queue]
}

func newReconciler(c client.Client, live client.Reader, connect clusters, clk clock.PassiveClock, m *metrics) *reconciler {
	r := &reconciler{
		client: c, live: live, clusters: connect, clock: clk, metrics: m,
		now:   func() (time.Time, bool) { return clk.Now(), false },
		views: newViews(), pace: newPace(), slots: newSlots(crowd), kinds: newSlots(crowd),
		failures: workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, lastRetry),
	}
	r.wake = func(machines ...types.NamespacedName) {
		if q := r.queue.Load(); q != nil {
			wake(*q, machines)
		}
	}
	return r
}

// Add registers the controller with a manager whose client reads from a cache with
// kube.CacheOptions and kube.IndexFields, consistent with its own writes. It fails if a watch
// cannot be set up, or if the controller was added before.
func Add(mgr manager.Manager, registry *workload.Registry, options Options) error {
	r := newReconciler(mgr.GetClient(), mgr.GetAPIReader(), registry, clock.RealClock{}, newMetrics(crmetrics.Registry, time.Now))
	r.emit, r.now = kube.Emitter(mgr.GetEventRecorder("ebbtide")), options.Skew.Now
	named, err := newObjects(mgr, r.objectChanged)
	if err != nil {
		return err
	}
	r.object = named.Get
	r.follow(registry)
	if options.Workers <= 0 {
		options.Workers = defaultWorkers
	}
	of := kube.ByNamespace(r, options.Workers)
	of.Timeout = passTimeout
	return kube.AddController(mgr, "machine", of, append(r.sources(mgr.GetCache()), kube.OnSkew(options.Skew, kube.AllOf(r.client, &v1alpha1.MachineList{}))))
}

func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	seen, err := r.observe(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("observe: %w", err)
	}
	if seen == nil {
		r.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	if seen.crowded {
		return reconcile.Result{RequeueAfter: crowdRetry}, nil
	}
	defer r.giveTurn(seen)
	decision := r.decide(ctx, seen)
	halt(seen, &decision)
	recorded, acted := r.record(ctx, seen, &decision)
	switch {
	case recorded:
		return r.next(ctx, seen, atOnce), nil
	case acted == nil:
		acted = r.act(ctx, seen, &decision)
	case withoutStale(acted) == nil:
		return r.next(ctx, seen, decision.RequeueAfter, acted), nil
	}
	decision = r.reportFailure(seen, decision, acted)
	if seen.crowded {
		decision.RequeueAfter = kube.Soonest(decision.RequeueAfter, crowdRetry)
	}
	due, reported := r.report(ctx, seen, &decision, acted)
	return r.next(ctx, seen, kube.Soonest(decision.RequeueAfter, due), acted, reported), nil
}

// decide confirms with the API server that a Node is drained or missing. Its pods are not read
// again, and a cache may be behind.
func (r *reconciler) decide(ctx context.Context, seen *observed) lifecycle.Decision {
	decision := lifecycle.Decide(seen.Snapshot)
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	switch {
	case decision.DrainEnds:
		r.observePods(ctx, seen, seen.connection.Live)
	case decision.NodeMissing:
		r.confirmMissing(ctx, seen)
	default:
		return decision
	}
	return lifecycle.Decide(seen.Snapshot)
}

// reportFailure shows a failed action in the status until it succeeds.
func (r *reconciler) reportFailure(seen *observed, decision lifecycle.Decision, acted error) lifecycle.Decision {
	key, failure := client.ObjectKeyFromObject(seen.Machine), ""
	if hard := withoutStale(acted); hard != nil {
		failure = hard.Error()
		r.refused.Store(key, failure)
	} else {
		r.refused.Delete(key)
	}
	if failure == seen.Failure {
		return decision
	}
	seen.Failure = failure
	return lifecycle.Decide(seen.Snapshot)
}

func (r *reconciler) forget(machine types.NamespacedName) {
	r.release(machine)
	r.pace.forget(machine)
	r.metrics.forget(machine)
	r.failures.Forget(machine)
	r.stale.Delete(machine)
	r.refused.Delete(machine)
	r.confirmed.Delete(machine)
}
