package eviction

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Evictor asks the API server once to evict this very pod, by UID, and returns
// its answer; no answer at all has code 0. Grace overrides the pod's grace
// period in seconds; nil leaves it alone.
type Evictor interface {
	Evict(ctx context.Context, pod *corev1.Pod, grace *int64) metav1.Status
}

// NewResults returns the metric that counts requests to evict.
func NewResults() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ebbtide_evictions_total",
		Help: "Requests to evict a pod, by what the API server answered.",
	}, []string{"result"})
}

// DispatcherOptions is what a Dispatcher works with.
type DispatcherOptions struct {
	// Reader lists the disruption budgets of the cluster; it must read from a cache.
	Reader client.Reader
	// Now is what time it is for locks, in the cluster of the pods, or the earliest that it
	// may be.
	Now func() time.Time
	// LongestLock limits the time of a lock of a budget; see budget.LockOf. 0 is
	// its default.
	LongestLock time.Duration
	// Results counts the answers; see NewResults. Defaults to one that nobody sees.
	Results *prometheus.CounterVec
	// Clock measures pauses. Defaults to the real one.
	Clock clock.WithTickerAndDelayedExecution
	// Jitter is a random number from 0 to 1. Defaults to rand.Float64.
	Jitter func() float64
}

// Dispatcher holds the pods of one cluster that wait to be evicted, whoever wants that,
// and says which of them may try. There is one for each cluster.
//
// Pods of one budget form a queue: one tries at a time, the oldest first, as
// many as the watched budget has last said that it allows. A refusal uses that
// credit up, unless the budget opened while the refusal was under way, so that
// no opening is ever lost. A pod that was never refused tries without credit,
// so that it can say what refuses it. Pods under a budget that is locked wait
// outside of all queues, and the API server is not asked for them: they go on when
// the lock goes or ends. All of it is in memory: after a restart everything is
// simply tried again.
type Dispatcher struct {
	options DispatcherOptions
	traffic traffic

	mu           sync.Mutex
	waiting      map[podKey]*waitingPod
	budgetQueues map[types.NamespacedName]*budgetQueue
	// lockChanges counts the changes of locks that the dispatcher was told of.
	lockChanges int
}

// NewDispatcher returns an empty Dispatcher.
func NewDispatcher(options DispatcherOptions) *Dispatcher {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Jitter == nil {
		options.Jitter = rand.Float64
	}
	options.Results = cmp.Or(options.Results, NewResults())
	return &Dispatcher{
		options:      options,
		traffic:      traffic{tries: map[types.NamespacedName]int{}},
		waiting:      map[podKey]*waitingPod{},
		budgetQueues: map[types.NamespacedName]*budgetQueue{},
	}
}

// Elsewhere returns an empty Dispatcher for another cluster. It has the same limits and
// counts in the same metric.
func (d *Dispatcher) Elsewhere(reader client.Reader, now func() time.Time) *Dispatcher {
	options := d.options
	options.Reader, options.Now = reader, now
	return NewDispatcher(options)
}

// Busy returns the budgets for whose pods evictions are under way, or may be. The
// map is the caller's.
func (d *Dispatcher) Busy() map[types.NamespacedName]bool { return d.traffic.busy() }

// CallerOptions is what a Caller works with. All of it is required.
type CallerOptions struct {
	Evictor Evictor
	// NodesGo is true if the nodes of the pods go for good: the locks that the drain of
	// a node has taken do not bar its own pods then.
	NodesGo bool
	// Wake has pods evicted that waited for their turn: Evict is to be called for
	// them as soon as possible. It must not call the dispatcher.
	Wake func(...types.NamespacedName)
}

// Caller is one of those that have pods evicted by a Dispatcher. A pod goes by any key of
// its namespace that no other pod of the Caller ever has. Calls for one key come one after
// the other, calls for several at any time.
type Caller struct {
	*Dispatcher
	caller CallerOptions
}

// Caller returns one more Caller.
func (d *Dispatcher) Caller(options CallerOptions) *Caller { return &Caller{d, options} }

// podKey is a pod as a Caller names it.
type podKey struct {
	types.NamespacedName
	caller *Caller
}

// wake wakes pods, each by its Caller, in their order.
func wake(keys []podKey) {
	for len(keys) > 0 {
		caller, names := keys[0].caller, []types.NamespacedName{}
		for len(keys) > 0 && keys[0].caller == caller {
			names, keys = append(names, keys[0].NamespacedName), keys[1:]
		}
		caller.caller.Wake(names...)
	}
}

// Answer is what became of a call of Evict.
type Answer struct {
	// Outcome is the API server's answer, or that of a lock; nil if nobody was asked,
	// because it was not the pod's turn.
	Outcome *evacuation.Outcome
	// Again is the time at which to call again, unless the pod is woken before; 0 if it will be.
	Again time.Duration
}

// Evict asks the API server once to evict the pod, if it is its turn and none of
// its budgets is locked. Grace overrides the pod's grace period in seconds; nil leaves
// it alone.
//
// Errors: the budgets cannot be read, or the context ended before the answer.
// The turn is then to be given back with Yield.
func (c *Caller) Evict(ctx context.Context, name types.NamespacedName, pod *corev1.Pod, grace *int64) (Answer, error) {
	key, now := c.key(name), c.options.Clock.Now()
	if wait := c.rests(key, now); wait > 0 {
		return Answer{Again: wait}, nil
	}
	seen, err := c.look(ctx, key, pod)
	defer seen.try.end()
	if err != nil {
		return Answer{}, err
	}
	if seen.lock.locked() {
		answer, next := c.waitForLock(seen, now)
		wake(next)
		return answer, nil
	}
	mayTry, wait, next := c.begin(seen.attempt, now)
	wake(next)
	if !mayTry {
		return Answer{Again: wait}, nil
	}
	outcome, err := c.ask(ctx, seen, pod, grace)
	if err != nil {
		return Answer{}, err
	}
	now = c.options.Clock.Now()
	wake(c.finish(key, outcome, now))
	return Answer{Outcome: &outcome, Again: c.wait(key, now)}, nil
}

func (c *Caller) key(name types.NamespacedName) podKey { return podKey{name, c} }

// ask asks the API server. The log has the lines of the deletion-process page
// ("Observability").
func (c *Caller) ask(ctx context.Context, seen observation, pod *corev1.Pod, grace *int64) (evacuation.Outcome, error) {
	logger := log.FromContext(ctx).WithValues("Pod", client.ObjectKeyFromObject(pod).String(), "Node", pod.Spec.NodeName)
	logger.V(4).Info("Evicting Pod")
	slow := c.options.Clock.AfterFunc(slowTry, func() { wake(c.slow(seen.attempt.key)) })
	answer := c.caller.Evictor.Evict(ctx, pod, grace)
	slow.Stop()
	seen.try.answered(answer, c.options.Clock)
	if err := ctx.Err(); err != nil {
		return evacuation.Outcome{}, fmt.Errorf("evict pod %s: %w", pod.Name, err)
	}
	outcome := evacuation.Classify(answer)
	c.options.Results.WithLabelValues(string(outcome.Result)).Inc()
	if answer.Status == metav1.StatusSuccess {
		logger.Info("Pod eviction successfully triggered")
	} else {
		logger.V(1).Info("Pod eviction failed", "code", answer.Code, "message", answer.Message)
	}
	return outcome, nil
}

// Yield gives a turn to the next pod if it was not used, for instance because a
// read failed.
func (c *Caller) Yield(name types.NamespacedName) { wake(c.yield(c.key(name), c.options.Clock.Now())) }

// Forget removes a pod that is not to be evicted any more.
func (c *Caller) Forget(name types.NamespacedName) { wake(c.forget(c.key(name))) }

// BudgetChanged informs the dispatcher of a disruption budget that came (old is nil),
// went (now is nil) or changed.
func (d *Dispatcher) BudgetChanged(old, now *policyv1.PodDisruptionBudget) {
	key := client.ObjectKeyFromObject(cmp.Or(now, old))
	var woken []podKey
	switch {
	case now == nil, old != nil && !sameSubjects(&old.Spec, &now.Spec):
		woken = append(d.budgetReplaced(key), d.lockMoved(key, budgetLock{})...)
	default:
		if allowed, known := budget.Allowed(now); known {
			woken = d.budgetAllows(key, allowed)
		}
		if lockChanged(old, now) {
			lock := d.lockOf([]*policyv1.PodDisruptionBudget{now}, d.options.Clock.Now())
			woken = append(woken, d.lockMoved(key, lock)...)
		}
	}
	wake(woken)
}

// sameSubjects reports whether two specs protect the same pods.
func sameSubjects(a, b *policyv1.PodDisruptionBudgetSpec) bool {
	return equality.Semantic.DeepEqual(a.Selector, b.Selector) &&
		equality.Semantic.DeepEqual(a.UnhealthyPodEvictionPolicy, b.UnhealthyPodEvictionPolicy)
}

// observation is what a look at the budgets of a pod has shown.
type observation struct {
	attempt attempt
	// lock is the one that keeps the pod from being evicted; zero if none does.
	lock budgetLock
	// changes are those that the dispatcher was told of before the look.
	changes int
	// try is noted since before the look.
	try *try
}

// look finds the budgets of the pod and whether one of them is locked.
func (c *Caller) look(ctx context.Context, key podKey, pod *corev1.Pod) (observation, error) {
	seen := observation{attempt: attempt{key: key, born: pod.CreationTimestamp.Time, ready: podclass.Ready(pod)}, changes: c.changes()}
	var err error
	seen.try, err = c.traffic.begin(func() ([]types.NamespacedName, error) {
		budgets, err := c.budgets(ctx, pod)
		if err != nil {
			return nil, err
		}
		names := make([]types.NamespacedName, len(budgets))
		for i, b := range budgets {
			names[i] = client.ObjectKeyFromObject(b)
		}
		// A pod under several is refused whatever they allow, so that none of them is
		// worth waiting for.
		if len(names) == 1 {
			seen.attempt.budget = names[0]
		}
		if c.caller.NodesGo {
			budgets = budget.Besides(pod.Spec.NodeName, budgets)
		}
		seen.lock = c.lockOf(budgets, c.options.Clock.Now())
		return names, nil
	})
	return seen, err
}

// budgets finds the budgets that protect the pod, by name.
func (d *Dispatcher) budgets(ctx context.Context, pod *corev1.Pod) ([]*policyv1.PodDisruptionBudget, error) {
	list := &policyv1.PodDisruptionBudgetList{}
	// The list is only read, and it is read for every try of every pod. It does not
	// wait for locks that we write meanwhile: Busy reports the tries that do not see them.
	err := d.options.Reader.List(ctx, list, client.InNamespace(pod.Namespace), client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		return nil, fmt.Errorf("list pod disruption budgets: %w", err)
	}
	budgets := make([]*policyv1.PodDisruptionBudget, len(list.Items))
	for i := range list.Items {
		budgets[i] = &list.Items[i]
	}
	return budget.Applying(pod, budgets), nil
}
