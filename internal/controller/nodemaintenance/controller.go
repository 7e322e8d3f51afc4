package nodemaintenance

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	// firstRetry and lastRetry bound the back-off after a pass that was decided on old
	// state, or that failed as a whole.
	firstRetry, lastRetry = 50 * time.Millisecond, time.Minute
	// atOnce is when a pass is due that has nothing to wait for but its turn.
	atOnce = time.Nanosecond
	// longestRest bounds the rest after a pass that had to think for long, and
	// shortThought is how long a pass may think without any rest.
	longestRest, shortThought = time.Second, 5 * time.Millisecond
	// passTimeout ends a pass whose reads hang. A write has a time of its own.
	passTimeout = 2 * time.Minute
)

// Options configures the controller.
type Options struct {
	// Namespace is where Ebbtide runs: the MachineDrainRules there count. Required.
	Namespace string
	// Workers is how many objects of a group are written at the same time. Defaults to 64.
	Workers int
	// Surge says which Deployments surge. Defaults to surge.Annotated.
	Surge surge.Mode
	// LongestLock is how long the lock of a disruption budget holds at the most.
	// Defaults to budget.LongestLock.
	LongestLock time.Duration
	// Skew knows whether our clock is trusted.
	Skew *kube.Skew
	// Bridges are the autoscalers that are kept from nodes under maintenance.
	Bridges bridge.Names
	// Requests knows whether pods can be asked by EvictionRequests; nil if none ever is.
	Requests Requests
}

// Requests is what is known of the EvictionRequests of NodeMaintenances.
type Requests interface {
	// State is what is known now.
	State() evictionrequest.Availability
	// Unanswered notes that a request was withdrawn because nobody has answered it.
	Unanswered()
	// OnChange has a function called with the name of a node, empty is every node, whose pods
	// may have to be asked otherwise, which is urgent, or have something else to say.
	OnChange(func(node string, urgent bool))
}

const defaultWorkers = 64

// reconciler runs passes, one at a time over each group. Everything that it remembers
// from one pass to the next only saves work; a new one continues from the API alone.
type reconciler struct {
	client client.Client
	// live reads from the API server.
	live client.Reader
	// emit publishes events, each on the object that it is about.
	emit  func(...event.Event)
	clock clock.PassiveClock
	// skewed is true while the clock is not trusted.
	skewed  func() bool
	workers int
	// namespace is that of the MachineDrainRules.
	namespace string
	surge     surge.Mode
	// protect are the annotations by which autoscalers leave nodes alone.
	protect []string
	// requests is Options.Requests.
	requests Requests
	// longestLock is Options.LongestLock.
	longestLock time.Duration
	metrics     *metrics
	// decide is maintenance.Decide.
	decide func(maintenance.Snapshot) maintenance.Decision

	schedule *schedule
	// watched are the nodes whose pods are read: the events of all others are dropped.
	watched *watched
	// statusPace spaces out status writes, refusals the writes that are refused,
	// failures the passes that fail.
	statusPace *pace
	refusals   *refusals
	failures   workqueue.TypedRateLimiter[group.Member]
	// flights are the writes under way, and longest is how long a pass waits for one.
	flights *flights
	longest func(maintenance.WriteKind) <-chan time.Time
	// silences are those of node agents.
	silences *silences
	// plans are those of maintenances in Idle, and foresee is preflight.Plan.
	plans   *plans
	foresee func(preflight.Snapshot) map[string]v1alpha1.NodeMaintenanceNodeStatus
}

func newReconciler(c client.Client, emit func(...event.Event), clk clock.PassiveClock, m *metrics) *reconciler {
	return &reconciler{
		client: c, live: c, emit: emit, clock: clk, workers: defaultWorkers, metrics: m, decide: maintenance.Decide,
		skewed:   func() bool { return false },
		schedule: newSchedule(), watched: newWatched(), statusPace: newPace(), refusals: newRefusals(), silences: newSilences(),
		flights: newFlights(), longest: func(maintenance.WriteKind) <-chan time.Time { return nil },
		plans: newPlans(), foresee: preflight.Plan,
		failures: workqueue.NewTypedItemExponentialFailureRateLimiter[group.Member](firstRetry, lastRetry),
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
	r.live, r.longest = mgr.GetAPIReader(), longest
	r.namespace, r.surge, r.longestLock = options.Namespace, options.Surge, options.LongestLock
	r.protect = protect(options.Bridges)
	if r.requests = options.Requests; r.requests != nil {
		r.requests.OnChange(r.requestsMatter)
	}
	r.skewed = func() bool {
		_, skewed := options.Skew.Now()
		return skewed
	}
	return kube.AddController(mgr, "nodemaintenance", kube.Controller[group.Member]{Reconciler: r}, append(r.sources(mgr.GetCache()), kube.OnSkew(options.Skew, r.held)))
}

// protect are the annotations by which these autoscalers leave nodes alone.
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
	turn, again := r.schedule.begin(r.clock.Now(), member)
	if turn == nil {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	var due, thought time.Duration
	// A panic that nobody expected must not keep the group from its next pass.
	defer func() { r.schedule.end(r.clock.Now(), turn, due, restAfter(thought)) }()
	due = lastRetry
	due, thought = r.pass(ctx, turn.group)
	return reconcile.Result{}, nil
}

// restAfter is how long a group rests after a pass has thought so long: thinking about one
// group takes at most half a core.
func restAfter(thought time.Duration) time.Duration {
	if thought < shortThought {
		return 0
	}
	return min(thought, longestRest)
}

// pass takes a group one step further. It returns when the next pass is due if no
// event asks for it before, 0 is never, and how long it had to think.
func (r *reconciler) pass(ctx context.Context, g *group.Group) (due, thought time.Duration) {
	acting := ctx
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	snapshot, err := r.observe(ctx, g)
	if err != nil {
		return r.next(ctx, g, 0, fmt.Errorf("observe: %w", err)), 0
	}
	// What was waited for before, so that the cache shows our own writes, was no thought.
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
	w.tell(ctx)
	r.metrics.show(g, decision)
	r.watched.block(g.Nodes, func(node string) bool { return len(decision.Blocked[node]) > 0 })
	return r.next(ctx, g, kube.Soonest(decision.RequeueAfter, w.due), w.stale), thought
}

// decideSafely has a decision that panics stop its own group and no other.
func (r *reconciler) decideSafely(snapshot maintenance.Snapshot) (decision maintenance.Decision, err error) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		err = fmt.Errorf("a defect of Ebbtide: decide: %v\n%s", cause, debug.Stack())
		r.metrics.panics.Inc()
		for _, m := range snapshot.Maintenances[:min(len(snapshot.Maintenances), maxTold)] {
			r.emit(event.DecisionFailed(m, fmt.Sprint(cause)))
		}
	}()
	return r.decide(snapshot), nil
}

// maxTold is how many maintenances of a group are told of what concerns them all.
const maxTold = 10

// next says when the next pass is due if no event asks for it before. What failed as a
// whole or was decided on old state backs off: nobody may see to it that it succeeds.
func (r *reconciler) next(ctx context.Context, g *group.Group, due time.Duration, failed error) time.Duration {
	logger := log.FromContext(ctx).WithValues("group", g.Key().String())
	switch {
	case failed == nil:
		r.failures.Forget(g.Key())
		return due
	case stale(failed):
		logger.V(1).Info("Part of the pass was decided on old state and is decided again", "because", failed.Error())
	default:
		logger.Error(failed, "The pass failed and is tried again")
	}
	return kube.Soonest(due, r.failures.When(g.Key()))
}

// stale returns true of failures that a look at newer state resolves.
func stale(err error) bool {
	return kube.IsStale(err) || apierrors.IsAlreadyExists(err)
}

// forget drops what is remembered of a maintenance that is gone.
func (r *reconciler) forget(name string) {
	r.statusPace.forget(name)
	r.plans.forget(name)
	r.refusals.forgetAll(group.Maintenance(name))
	r.metrics.gone(group.Maintenance(name))
	r.failures.Forget(group.Maintenance(name))
}
