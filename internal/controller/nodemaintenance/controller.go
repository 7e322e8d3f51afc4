package nodemaintenance

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// staleRetry is how soon a pass runs again that was decided on old state or
	// that ran out of its time.
	staleRetry = 50 * time.Millisecond
	// firstRetry and lastRetry bound the back-off after a failed write.
	firstRetry, lastRetry = 100 * time.Millisecond, 30 * time.Second
	// longestRest bounds the rest after a pass that had to think for long.
	longestRest = time.Second
	// passTimeout ends a pass whose requests hang.
	passTimeout = 2 * time.Minute
)

// Options configures the controller.
type Options struct {
	// Namespace is where Ebbtide runs: the MachineDrainRules there count. Required.
	Namespace string
	// Workers is how many nodes are written to at the same time. Defaults to 16.
	Workers int
	// Surge says which Deployments surge. Defaults to surge.Annotated.
	Surge surge.Mode
	// LongestLock is how long the lock of a disruption budget holds at the most.
	// Defaults to budget.LongestLock.
	LongestLock time.Duration
}

const defaultWorkers = 16

// pass is the only work item: one pass over everything.
type pass struct{}

// reconciler runs passes, one at a time. Everything that it remembers from one
// pass to the next only saves work; a new one continues from the API alone.
type reconciler struct {
	client client.Client
	// emit publishes events, each on the object that it is about.
	emit    func(...event.Event)
	clock   clock.Clock
	workers int
	// namespace is that of the MachineDrainRules.
	namespace string
	surge     surge.Mode
	// longestLock is Options.LongestLock.
	longestLock time.Duration
	metrics     *metrics

	// podNodes are the nodes whose pods the last pass has read. Event handlers
	// drop the events of all other pods.
	podNodes atomic.Pointer[sets.Set[string]]
	// inPlace is true if the last pass has seen a maintenance whose pods may stay.
	inPlace atomic.Bool
	// restsUntil is when the next pass may begin: one that has to think for long
	// is followed by a rest as long, so that thinking takes at most half a core.
	restsUntil time.Time
	// statusPace spaces out status writes, refusals those of node conditions,
	// failures whole passes.
	statusPace pace
	refusals   *flowcontrol.Backoff
	failures   workqueue.TypedRateLimiter[pass]
}

func newReconciler(c client.Client, emit func(...event.Event), clk clock.Clock, m *metrics) *reconciler {
	refusals := flowcontrol.NewBackOff(firstRetry, lastRetry)
	refusals.Clock = clk
	return &reconciler{
		client: c, emit: emit, clock: clk, workers: defaultWorkers, metrics: m,
		statusPace: pace{},
		refusals:   refusals,
		failures:   workqueue.NewTypedItemExponentialFailureRateLimiter[pass](firstRetry, lastRetry),
	}
}

// Add registers the controller with a manager whose client reads from a cache
// with kube.CacheOptions and kube.IndexFields, consistent with its own writes.
//
// Errors: a watch cannot be set up, or the controller was added before.
func Add(mgr manager.Manager, options Options) error {
	emit := kube.Emitter(mgr.GetEventRecorder("ebbtide"))
	r := newReconciler(mgr.GetClient(), emit, clock.RealClock{}, newMetrics(crmetrics.Registry))
	if options.Workers > 0 {
		r.workers = options.Workers
	}
	r.namespace, r.surge, r.longestLock = options.Namespace, options.Surge, options.LongestLock
	return kube.AddController(mgr, "nodemaintenance", controller.TypedOptions[pass]{
		Reconciler:              r,
		MaxConcurrentReconciles: 1,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[pass](firstRetry, lastRetry),
		ReconciliationTimeout:   passTimeout,
	}, r.sources(mgr.GetCache()))
}

// Reconcile runs one pass.
func (r *reconciler) Reconcile(ctx context.Context, _ pass) (reconcile.Result, error) {
	begun := r.clock.Now()
	if rest := r.restsUntil.Sub(begun); rest > 0 {
		return reconcile.Result{RequeueAfter: rest}, nil
	}
	snapshot, err := r.observe(ctx)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("observe: %w", err)
	}
	decision := maintenance.Decide(snapshot)
	thought := r.clock.Since(begun)
	r.restsUntil = r.clock.Now().Add(min(thought, longestRest))
	records, recordErr := r.record(ctx, decision.Maintenances)
	actErr := r.act(ctx, work{nodes: decision.Nodes, records: records})
	postponed, reportErr := r.report(ctx, records)
	r.metrics.show(decision.Maintenances)

	failed := utilerrors.NewAggregate([]error{recordErr, actErr, reportErr})
	return r.next(ctx, kube.Soonest(decision.RequeueAfter, postponed, r.announceAgain(decision.Nodes)), failed), nil
}

// next says when the next pass is due if no event asks for it before. What
// failed is logged here and tried again; it is no error of the pass, because
// that would forget when the rest is due.
func (r *reconciler) next(ctx context.Context, due time.Duration, failed error) reconcile.Result {
	logger := log.FromContext(ctx)
	hard := withoutStale(failed)
	if hard == nil {
		r.failures.Forget(pass{})
	}
	switch {
	case hard != nil:
		logger.Error(hard, "Part of the pass failed and is tried again")
		due = kube.Soonest(due, r.failures.When(pass{}))
	case failed != nil:
		logger.V(1).Info("Part of the pass was decided on old state and is decided again", "because", failed.Error())
		due = kube.Soonest(due, staleRetry)
	}
	return reconcile.Result{RequeueAfter: due}
}

// errOutOfTime is left to the next pass, which is due at once.
var errOutOfTime = errors.New("left to the next pass")

// withoutStale removes the failures that a look at newer state resolves.
func withoutStale(failed error) error {
	aggregate := utilerrors.NewAggregate([]error{failed})
	if aggregate == nil {
		return nil
	}
	return utilerrors.FilterOut(aggregate, func(err error) bool {
		return kube.IsStale(err) || apierrors.IsAlreadyExists(err) ||
			errors.Is(err, errOutOfTime)
	})
}
