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
	// firstRetry and lastRetry bound the back-off after a read or a write that failed.
	firstRetry, lastRetry = 100 * time.Millisecond, 30 * time.Second
	// atOnce is when the pass after a record is due.
	atOnce = time.Millisecond
	// oldRetry is the longest pause after a pass that was decided on old state:
	// where somebody writes all the time, one of the next passes is fast enough.
	oldRetry = time.Second
	// passTimeout ends a pass whose requests hang, readTimeout each of the up to five
	// groups of reads before, so that there is time left to tell of it.
	passTimeout, readTimeout = time.Minute, 10 * time.Second
)

// Options configures the controller.
type Options struct {
	// Workers is how many Machines of one namespace are worked on at the same time. Defaults to 32.
	Workers int
	// Skew knows what time it is.
	Skew *kube.Skew
}

const defaultWorkers = 32

// clusters connects to the clusters of Machines; it is a *workload.Registry.
type clusters interface {
	Use(cluster *v1alpha1.Cluster, user types.NamespacedName) (*workload.Connection, error)
	Release(cluster, user types.NamespacedName)
}

// reconciler takes Machines further. What it remembers only saves work.
type reconciler struct {
	// client reads from the cache, live from the API server.
	client   client.Client
	live     client.Reader
	clusters clusters
	// object reads an object of any kind.
	object func(context.Context, types.NamespacedName, schema.GroupVersionKind) (Found, error)
	// emit publishes events, each on the object that it is about.
	emit func(...event.Event)
	// now is what deletions go by, clock measures how long something takes.
	now     kube.Now
	clock   clock.PassiveClock
	metrics *metrics
	// views are what Machines look at, pace when their status was written, turns
	// keeps workers free for other clusters, failures spaces out the passes of those that fail.
	views *views
	pace  *pace
	turns *turns
	// kinds does so for objects of other kinds.
	kinds    *turns
	failures workqueue.TypedRateLimiter[types.NamespacedName]
	// outdated are the Machines whose last pass was decided on old state, refused
	// is what could not be done for a Machine in its last pass, and why.
	outdated, refused sync.Map
	// asked are the Machines of which the API server has said that there is no
	// Node, with their UIDs.
	asked sync.Map
	// wake has Machines reconciled. It is called from everywhere, and does nothing
	// before there is a queue: all Machines are reconciled at the start.
	wake  func(...types.NamespacedName)
	queue atomic.Pointer[queue]
}

func newReconciler(c client.Client, live client.Reader, connect clusters, clk clock.PassiveClock, m *metrics) *reconciler {
	r := &reconciler{
		client: c, live: live, clusters: connect, clock: clk, metrics: m,
		now:   func() (time.Time, bool) { return clk.Now(), false },
		views: newViews(), pace: newPace(), turns: newTurns(crowd), kinds: newTurns(crowd),
		failures: workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, lastRetry),
	}
	r.wake = func(machines ...types.NamespacedName) {
		if q := r.queue.Load(); q != nil {
			wake(*q, machines)
		}
	}
	return r
}

// Add registers the controller with a manager whose client reads from a cache
// with kube.CacheOptions and kube.IndexFields, consistent with its own writes.
//
// Errors: a watch cannot be set up, or the controller was added before.
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

// Reconcile takes one Machine one step further.
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
	case withoutOutdated(acted) == nil:
		return r.next(ctx, seen, decision.RequeueAfter, acted), nil
	}
	decision = r.learn(seen, decision, acted)
	if seen.crowded {
		decision.RequeueAfter = kube.Soonest(decision.RequeueAfter, crowdRetry)
	}
	due, reported := r.report(ctx, seen, &decision, acted)
	return r.next(ctx, seen, kube.Soonest(decision.RequeueAfter, due), acted, reported), nil
}

// decide asks the API server before a Node is found drained, or found missing:
// nobody looks at its pods again, and a cache that is behind knows nothing of what
// came last.
func (r *reconciler) decide(ctx context.Context, seen *observed) lifecycle.Decision {
	decision := lifecycle.Decide(seen.Snapshot)
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	switch {
	case decision.DrainEnds:
		r.observePods(ctx, seen, seen.connection.Live)
	case decision.NodeMissing:
		r.askForNode(ctx, seen)
	default:
		return decision
	}
	return lifecycle.Decide(seen.Snapshot)
}

// learn has the status tell what could not be done, until it can.
func (r *reconciler) learn(seen *observed, decision lifecycle.Decision, acted error) lifecycle.Decision {
	key, failure := client.ObjectKeyFromObject(seen.Machine), ""
	if hard := withoutOutdated(acted); hard != nil {
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

// forget drops everything that is remembered of a Machine that is gone.
func (r *reconciler) forget(machine types.NamespacedName) {
	r.release(machine)
	r.pace.forget(machine)
	r.metrics.forget(machine)
	r.failures.Forget(machine)
	r.outdated.Delete(machine)
	r.refused.Delete(machine)
	r.asked.Delete(machine)
}
