// Package rollout carries out what core/rollout decides: it records which nodes start in the status
// of their NodeRollout, and then creates and changes NodeMaintenances. One decision covers all
// rollouts; each rollout is written on its own, so that a slow write delays no other one. What it
// remembers only saves work and reads: a new manager continues from the API alone.
package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	core "ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/internal/gate"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// decisionInterval is the least time between two decisions.
	decisionInterval = 200 * time.Millisecond
	// readTimeout ends the reads of a decision, which the API server answers.
	readTimeout = 10 * time.Second
	// maxFlights is the number of rollouts that are written at the same time, maxWrites that of the
	// NodeMaintenances of a rollout.
	maxFlights, maxWrites = 64, 16
	// unservedInterval is the interval of checking for the CRD, which a chart may install late.
	unservedInterval = 15 * time.Second
	// firstRetry and lastRetry bound the back-off after a decision that failed.
	firstRetry, lastRetry = time.Second, time.Minute
)

// API returns the API that the controller runs for.
func API() kube.ServedAPI {
	return kube.ServedAPI{
		GroupVersion: v1alpha1.SchemeGroupVersion, Resources: []string{"noderollouts", "nodebudgets"},
		Kinds:    []client.Object{&v1alpha1.NodeRollout{}, &v1alpha1.NodeBudget{}},
		Unserved: unservedInterval,
	}
}

// Options configures the controller.
type Options struct {
	// Served runs it while the kind NodeRollout is served.
	Served *kube.Served
	Skew   *kube.Skew
	// JobNamespaces may have Jobs of rollouts.
	JobNamespaces []string
	// Prometheus answers the queries of gates; nil if there is none.
	Prometheus *gate.Prometheus
	// MachineKinds are the machines of nodes that may be deleted.
	MachineKinds core.MachineKinds
}

// pass is the only item of the queue.
type pass struct{}

type reconciler struct {
	client client.Client
	// live reads from the API server.
	live client.Reader
	emit func(...event.Event)
	// now is the time for decisions, clock measures durations.
	now     kube.Now
	clock   clock.PassiveClock
	metrics *metrics
	decide  func(*core.Snapshot) *core.Decision

	// rested is the time before which no decision is due.
	rested time.Time
	// confirmed is the time of the last decision by the nodes of the API server.
	confirmed time.Time
	// caughtUp is true after the first read of the API server, and unread holds when NodeMaintenances
	// are read again.
	caughtUp bool
	unread   map[string]time.Time

	rollouts     *newest[*v1alpha1.NodeRollout]
	budgets      *newest[*v1alpha1.NodeBudget]
	maintenances *newest[*v1alpha1.NodeMaintenance]
	flights      *flights
	// refusals are by the name of a NodeMaintenance, failures by that of a rollout, and uncounted by
	// that of a budget.
	refusals, failures, uncounted *refusals
	// jobs are the caches of the namespaces that may have Jobs, newestJobs their newest states, and
	// jobRefusals are by the namespace/name of a Job.
	jobs        []jobCache
	newestJobs  *newest[*batchv1.Job]
	jobRefusals *refusals
	// replacements are the results of deletions of machines, of these kinds.
	replacements *replacements
	machines     core.MachineKinds
	// outdated are the states that the API server did not know any more.
	outdated  *outdated
	questions *questions

	// any is true while there are rollouts or budgets.
	any  atomic.Bool
	wake atomic.Pointer[func()]
}

func newReconciler(c client.Client, live client.Reader, clk clock.PassiveClock, m *metrics) *reconciler {
	r := &reconciler{
		client: c, live: live, emit: func(...event.Event) {}, clock: clk, metrics: m, decide: core.Decide,
		now:          func() (time.Time, bool) { return clk.Now(), false },
		unread:       map[string]time.Time{},
		rollouts:     newNewest[*v1alpha1.NodeRollout](clk),
		budgets:      newNewest[*v1alpha1.NodeBudget](clk),
		maintenances: newNewest[*v1alpha1.NodeMaintenance](clk),
		newestJobs:   newNewest[*batchv1.Job](clk), jobRefusals: newRefusals(clk),
		flights: newFlights(), refusals: newRefusals(clk), failures: newRefusals(clk), uncounted: newRefusals(clk),
		outdated:     newOutdated(clk),
		replacements: newReplacements(clk),
	}
	r.questions = newQuestions(func() (time.Time, bool) { return r.now() }, clk)
	r.questions.check = func() respond { return (&check{live: live}).respond }
	return r
}

// Add registers the controller with a manager whose client reads from a cache with
// kube.CacheOptions.
func Add(mgr manager.Manager, options Options) {
	options.Served.OnAnswer(func() {
		if served, _ := options.Served.Asked(); !served {
			mgr.GetLogger().Info("NodeRollouts inactive", "reason", "their CRD or that of NodeBudgets is not installed")
		}
	})
	emit, m := kube.Emitter(mgr.GetEventRecorder("ebbtide")), newMetrics(crmetrics.Registry)
	options.Served.Part(func(ctx context.Context) error {
		r := newReconciler(mgr.GetClient(), mgr.GetAPIReader(), clock.RealClock{}, m)
		r.questions.gate = gates(options.Prometheus, mgr.GetAPIReader())
		r.emit, r.now, r.machines = emit, options.Skew.Now, options.MachineKinds
		defer r.end()
		if err := r.watchJobs(ctx, mgr, options.JobNamespaces); err != nil {
			return err
		}
		of := kube.Controller[pass]{
			Reconciler:  r,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[pass](firstRetry, lastRetry),
		}
		always := func(context.Context) []pass { return []pass{{}} }
		return kube.RunController(ctx, mgr, "rollout", of, append(r.sources(mgr.GetCache()), kube.OnSkew(options.Skew, always)))
	})
}

// end waits for the writes under way, which the end of the controller has cancelled.
func (r *reconciler) end() {
	r.flights.wait()
	r.questions.wait()
	r.metrics.show(nil, r.clock.Now())
}

// Reconcile decides for all rollouts, and starts the writes of each.
func (r *reconciler) Reconcile(ctx context.Context, _ pass) (reconcile.Result, error) {
	began := r.clock.Now()
	if rest := r.rested.Sub(began); rest > 0 {
		return reconcile.Result{RequeueAfter: rest}, nil
	}
	// What a flight has written is known before it ends, so that the flights come first.
	flying := r.flights.under()
	snapshot, due, err := r.observe(ctx, flying)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("observe: %w", err)
	}
	if snapshot == nil {
		r.metrics.show(nil, began)
		return reconcile.Result{}, nil
	}
	snapshot.Answers = r.questions.all()
	decision, again := r.confirm(ctx, snapshot)
	due = kube.Soonest(due, again, r.questions.ask(ctx, decision.Questions, r.again))
	// One that takes long must not take more than half of a core.
	r.rested = r.clock.Now().Add(max(decisionInterval, r.clock.Since(began)))
	r.metrics.show(decision.Rollouts, r.clock.Now())
	if !decision.WakeTime.IsZero() {
		due = kube.Soonest(due, max(decision.WakeTime.Sub(snapshot.Now), time.Millisecond))
	}
	return reconcile.Result{RequeueAfter: kube.Soonest(due, r.launch(ctx, snapshot, decision, flying))}, nil
}

// launch starts the writes of each rollout that was not being written when it was observed. It
// returns when a write that rests is due; 0 is never.
func (r *reconciler) launch(
	ctx context.Context, snapshot *core.Snapshot, decision *core.Decision, flying map[string]*writing,
) (due time.Duration) {
	var names, rollouts, jobs []string
	ledgers := r.ledgers(decision)
	// No rollout has the name of this one.
	orphans := core.RolloutDecision{Rollout: &v1alpha1.NodeRollout{}, Changes: decision.Orphans}
	for i := range len(decision.Rollouts) + 1 {
		of := &orphans
		if i < len(decision.Rollouts) {
			of = &decision.Rollouts[i]
		}
		w := r.writing(of)
		w.count(ledgers)
		w.orphans = of == &orphans
		w.exists = func(name string) bool {
			return slices.ContainsFunc(snapshot.Maintenances, func(m *v1alpha1.NodeMaintenance) bool { return m.Name == name })
		}
		names, rollouts, jobs = append(names, w.names...), append(rollouts, w.before.Name), append(jobs, w.jobNames...)
		due = kube.Soonest(due, w.due)
		if flying[w.before.Name] == nil && !w.idle() && r.flights.begin(w) {
			go r.fly(ctx, w)
		}
	}
	r.report(ctx, ledgers, decision, flying)
	r.refusals.keep(names)
	r.failures.keep(rollouts)
	r.jobRefusals.keep(jobs)
	r.replacements.keep(decision.Rollouts)
	return due
}

// fly makes the writes of a rollout, and has all rollouts decided again.
func (r *reconciler) fly(ctx context.Context, w *writing) {
	defer func() {
		r.flights.end(w)
		r.again()
	}()
	err := w.write(ctx)
	switch logger := log.FromContext(ctx).WithValues("rollout", w.before.Name); {
	case errors.Is(err, errUncounted): // The ledger has logged why.
	case err == nil:
		r.failures.drop(w.before.Name)
	case kube.IsStale(err):
		logger.V(1).Info("Dropped a stale decision", "reason", err.Error())
	default:
		r.failures.add(w.before.Name, err)
		logger.Error(err, "Failed to write a rollout, retrying")
	}
}

// again requests another decision.
func (r *reconciler) again() {
	if wake := r.wake.Load(); wake != nil {
		(*wake)()
	}
}
