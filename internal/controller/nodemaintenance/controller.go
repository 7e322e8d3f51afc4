package nodemaintenance

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/preflight"
	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// firstRetry and lastRetry bound the back-off after a pass that failed or was decided on old
	// state.
	firstRetry, lastRetry = 50 * time.Millisecond, time.Minute
	// atOnce delays a pass that waits only for other groups.
	atOnce = time.Nanosecond
	// longestRest bounds the rest after a pass that took long to decide, and shortThought is the
	// time that needs no rest.
	longestRest, shortThought = time.Second, 5 * time.Millisecond
	// passTimeout ends a pass whose reads hang. Writes have their own timeouts.
	passTimeout = 2 * time.Minute
)

// Options configures the controller.
type Options struct {
	// Namespace is Ebbtide's own, for MachineDrainRules. Required.
	Namespace string
	// Workers is the number of objects of a group that are written at the same time. Defaults to 64.
	Workers int
	// Surge selects the Deployments that surge. Defaults to surge.Annotated.
	Surge surge.Mode
	// LongestLock bounds the lock of a disruption budget. Defaults to budget.LongestLock.
	LongestLock time.Duration
	Skew        *kube.Skew
	// Bridges are the autoscalers that are kept from nodes under maintenance.
	Bridges bridge.Names
	// Requests is nil if no EvictionRequests are used.
	Requests Requests
	// NodeBudgets tells whether rollouts admit nodes under NodeBudgets; nil if they never do.
	NodeBudgets *kube.Served
}

// Requests tells whether pods can be requested to leave by EvictionRequests.
type Requests interface {
	State() evictionrequest.Availability
	// Unanswered notes that a request was withdrawn because it had no answer.
	Unanswered()
	// OnChange calls a function with the name of a node, empty is every node, when a request of its
	// pods changes; urgent is true if pods may have to be requested in another way.
	OnChange(func(node string, urgent bool))
}

const defaultWorkers = 64

// reconciler runs passes, one at a time over each group. What it remembers between passes only
// saves work; a new one continues from the API alone.
type reconciler struct {
	client      client.Client
	live        client.Reader // reads from the API server
	emit        func(...event.Event)
	clock       clock.PassiveClock
	skewed      func() bool // the clock is not trusted
	workers     int
	namespace   string
	surge       surge.Mode
	protect     []string // annotations of autoscalers
	requests    Requests
	nodeBudgets nodeBudgets
	longestLock time.Duration
	metrics     *metrics
	decide      func(maintenance.Snapshot) maintenance.Decision

	schedule *schedule
	watched  *watched
	// statusPace limits status writes, refusals the retries of refused writes, failures those of
	// failed passes.
	statusPace *pace
	refusals   *refusals
	failures   workqueue.TypedRateLimiter[group.Member]
	flights    *flights
	longest    func(maintenance.WriteKind) <-chan time.Time // ends when a pass waits no longer for a write
	silences   *silences
	plans      *plans
	foresee    func(preflight.Snapshot) map[string]v1alpha1.NodeMaintenanceNodeStatus
}

func newReconciler(c client.Client, emit func(...event.Event), clk clock.PassiveClock, m *metrics) *reconciler {
	return &reconciler{
		client: c, live: c, emit: emit, clock: clk, workers: defaultWorkers, metrics: m, decide: maintenance.Decide,
		skewed:   func() bool { return false },
		schedule: newSchedule(), watched: newWatched(), statusPace: newPace(), refusals: newRefusals(), silences: newSilences(),
		flights: newFlights(), longest: func(maintenance.WriteKind) <-chan time.Time { return nil },
		plans: newPlans(), foresee: preflight.Plan, nodeBudgets: nodeBudgets{held: sets.New[string]()},
		failures: workqueue.NewTypedItemExponentialFailureRateLimiter[group.Member](firstRetry, lastRetry),
	}
}

// Add registers the controller with a manager whose client reads from a cache with
// kube.CacheOptions and kube.IndexFields, consistent with its own writes.
func Add(mgr manager.Manager, options Options) error {
	emit := kube.Emitter(mgr.GetEventRecorder("ebbtide"))
	r := newReconciler(mgr.GetClient(), emit, clock.RealClock{}, newMetrics(crmetrics.Registry))
	if options.Workers > 0 {
		r.workers = options.Workers
	}
	r.live, r.longest = mgr.GetAPIReader(), longest
	r.namespace, r.surge, r.longestLock = options.Namespace, options.Surge, options.LongestLock
	r.protect = protect(options.Bridges)
	if r.requests = options.Requests; r.requests != nil {
		r.requests.OnChange(r.requestsMatter)
	}
	if options.NodeBudgets != nil {
		r.watchNodeBudgets(mgr, options.NodeBudgets)
	}
	r.skewed = func() bool {
		_, skewed := options.Skew.Now()
		return skewed
	}
	return kube.AddController(mgr, "nodemaintenance", kube.Controller[group.Member]{Reconciler: r}, append(r.sources(mgr.GetCache()), kube.OnSkew(options.Skew, r.held)))
}

// protect returns the annotations by which these autoscalers leave nodes alone.
func protect(bridges bridge.Names) []string {
	var keys []string
	if bridges.Has(bridge.Karpenter) {
		keys = append(keys, v1alpha1.KarpenterDoNotDisruptAnnotation)
	}
	if bridges.Has(bridge.ClusterAutoscaler) {
		keys = append(keys, v1alpha1.ScaleDownDisabledAnnotation)
	}
	return keys
}

// Reconcile runs the pass over the group of a member, if it is due.
func (r *reconciler) Reconcile(ctx context.Context, member group.Member) (reconcile.Result, error) {
	run, again := r.schedule.begin(r.clock.Now(), member)
	if run == nil {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	var due, thought time.Duration
	// A panic must not keep the group from its next pass.
	defer func() { r.schedule.end(r.clock.Now(), run, due, restAfter(thought)) }()
	due = lastRetry
	due, thought = r.pass(ctx, run.group)
	return reconcile.Result{}, nil
}

// restAfter returns the rest of a group after a pass that took so long to decide, so that one group
// takes at most half a core.
func restAfter(thought time.Duration) time.Duration {
	if thought < shortThought {
		return 0
	}
	return min(thought, longestRest)
}

// pass takes a group one step further. It returns when the next pass is due without an event, 0 is
// never, and how long it took to decide.
func (r *reconciler) pass(ctx context.Context, g *group.Group) (due, thought time.Duration) {
	acting := ctx
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	budgetChanges := r.nodeBudgets.changes.Load()
	snapshot, err := r.observe(ctx, g)
	if err != nil {
		return r.next(ctx, g, 0, fmt.Errorf("observe: %w", err)), 0
	}
	// Until here it may have waited for the cache to show our own writes.
	begun := r.clock.Now()
	if err := r.observePods(ctx, g, &snapshot); err != nil {
		return r.next(ctx, g, 0, fmt.Errorf("observe: %w", err)), 0
	}
	w := &writer{reconciler: r, group: g}
	r.plan(ctx, w, &snapshot)
	decision, err := r.decideSafely(snapshot)
	if err != nil {
		return r.next(ctx, g, 0, err), 0
	}
	thought = r.clock.Since(begun)
	records := w.record(ctx, decision.Maintenances)
	w.act(acting, decision.Nodes, records)
	w.report(ctx, records)
	w.logRefusals(ctx)
	r.metrics.show(g, decision)
	again := r.nodeBudgets.hold(g.Nodes, decision.Waiting, budgetChanges, snapshot.NodeBudgets.Unread())
	r.watched.block(g.Nodes, func(node string) bool { return len(decision.Blocked[node]) > 0 })
	return r.next(ctx, g, kube.Soonest(decision.RequeueAfter, w.due, again), w.stale), thought
}

// decideSafely turns a panic of a decision into an error of its group.
func (r *reconciler) decideSafely(snapshot maintenance.Snapshot) (decision maintenance.Decision, err error) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		err = fmt.Errorf("a defect of Ebbtide: decide: %v\n%s", cause, debug.Stack())
		r.metrics.panics.Inc()
		for _, m := range snapshot.Maintenances[:min(len(snapshot.Maintenances), maxDefectEvents)] {
			r.emit(event.DecisionFailed(m, fmt.Sprint(cause)))
		}
	}()
	return r.decide(snapshot), nil
}

const maxDefectEvents = 10 // for the maintenances of a group

// next returns when the next pass is due without an event. A pass that failed or was decided on old
// state backs off.
func (r *reconciler) next(ctx context.Context, g *group.Group, due time.Duration, failed error) time.Duration {
	logger := log.FromContext(ctx).WithValues("group", g.Key().String())
	switch {
	case failed == nil:
		r.failures.Forget(g.Key())
		return due
	case stale(failed):
		logger.V(1).Info("Retrying a pass", "reason", failed.Error())
	default:
		logger.Error(failed, "Pass failed, retrying")
	}
	return kube.Soonest(due, r.failures.When(g.Key()))
}

// stale returns true if a decision on newer state resolves the failure.
func stale(err error) bool {
	return kube.IsStale(err) || apierrors.IsAlreadyExists(err)
}

func (r *reconciler) forget(name string) {
	r.statusPace.forget(name)
	r.plans.forget(name)
	r.refusals.forgetAll(group.Maintenance(name))
	r.metrics.gone(group.Maintenance(name))
	r.failures.Forget(group.Maintenance(name))
}
