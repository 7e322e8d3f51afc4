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

// Evictor evicts exactly this pod, by UID, with one request, and returns the response; code 0 if
// there was none. Grace overrides the pod's grace period in seconds; nil does not.
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

// DispatcherOptions configures a Dispatcher.
type DispatcherOptions struct {
	// Reader lists the disruption budgets of the cluster; it must read from a cache.
	Reader client.Reader
	// Now returns the time in the cluster of the pods, for locks; the earliest if it is uncertain.
	Now func() time.Time
	// LongestLock limits the lock of a budget. Defaults to that of budget.LockOf.
	LongestLock time.Duration
	// Results counts the responses; see NewResults. Defaults to an unregistered metric.
	Results *prometheus.CounterVec
	// Clock measures pauses. Defaults to the real one.
	Clock clock.WithTickerAndDelayedExecution
	// Jitter returns a random number from 0 to 1. Defaults to rand.Float64.
	Jitter func() float64
}

// Dispatcher decides which of the pods that wait to be evicted may be tried. There is one for each
// cluster, for all callers.
//
// Pods of one budget form a queue: one is tried at a time, the oldest first, as many as the watched
// budget last allowed. A refusal uses up that credit, unless the budget opened while the request was
// under way: no opening is lost. A pod that was never refused is tried without credit, to learn its
// reason. Pods of a locked budget wait outside all queues, without requests, until the lock ends.
// Everything is in memory: after a restart each pod is tried again.
type Dispatcher struct {
	options DispatcherOptions
	traffic traffic

	mu           sync.Mutex
	waiting      map[podKey]*waitingPod
	budgetQueues map[types.NamespacedName]*budgetQueue
	// lockChanges counts the changes of locks that were reported to the dispatcher.
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

// ForCluster returns an empty Dispatcher for another cluster, with the same limits and metric.
func (d *Dispatcher) ForCluster(reader client.Reader, now func() time.Time) *Dispatcher {
	options := d.options
	options.Reader, options.Now = reader, now
	return NewDispatcher(options)
}

// Busy returns the budgets with pods whose evictions are, or may be, under way. The caller owns the
// map.
func (d *Dispatcher) Busy() map[types.NamespacedName]bool { return d.traffic.busy() }

// CallerOptions configures a Caller. All fields are required.
type CallerOptions struct {
	Evictor Evictor
	// NodesGo is true if the nodes of the pods are deleted afterwards: the locks of a node's drain
	// then do not hold back its own pods.
	NodesGo bool
	// Wake is called with pods whose turn has come: Evict must be called for them as soon as
	// possible. It must not call the dispatcher.
	Wake func(...types.NamespacedName)
}

// Caller evicts pods through a Dispatcher. A pod has any key in its namespace that the Caller uses
// for no other pod. Calls for one key must not overlap.
type Caller struct {
	*Dispatcher
	caller CallerOptions
}

// Caller returns one more Caller.
func (d *Dispatcher) Caller(options CallerOptions) *Caller { return &Caller{d, options} }

// podKey identifies a pod of a Caller.
type podKey struct {
	types.NamespacedName
	caller *Caller
}

// wake wakes pods in order, each through its Caller.
func wake(keys []podKey) {
	for len(keys) > 0 {
		caller, names := keys[0].caller, []types.NamespacedName{}
		for len(keys) > 0 && keys[0].caller == caller {
			names, keys = append(names, keys[0].NamespacedName), keys[1:]
		}
		caller.caller.Wake(names...)
	}
}

// Answer is the result of a call of Evict.
type Answer struct {
	// Outcome is the response of the API server, or of a lock; nil if it was not the pod's turn.
	Outcome *evacuation.Outcome
	// Again is the pause before the next call, unless the pod is woken before; 0 if it will be.
	Again time.Duration
}

// Evict sends one eviction if it is the pod's turn and none of its budgets is locked. Grace overrides
// the pod's grace period in seconds; nil does not.
//
// Errors: the budgets cannot be read, or the context ended before the response. The turn must then
// be given back with Yield.
func (c *Caller) Evict(ctx context.Context, name types.NamespacedName, pod *corev1.Pod, grace *int64) (Answer, error) {
	key, now := c.key(name), c.options.Clock.Now()
	if wait := c.rests(key, now); wait > 0 {
		return Answer{Again: wait}, nil
	}
	seen, err := c.observe(ctx, key, pod)
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
	outcome, err := c.send(ctx, seen, pod, grace)
	if err != nil {
		return Answer{}, err
	}
	now = c.options.Clock.Now()
	wake(c.finish(key, outcome, now))
	return Answer{Outcome: &outcome, Again: c.wait(key, now)}, nil
}

func (c *Caller) key(name types.NamespacedName) podKey { return podKey{name, c} }

// send sends the eviction. The log has the lines of the deletion-process page ("Observability").
func (c *Caller) send(ctx context.Context, seen observation, pod *corev1.Pod, grace *int64) (evacuation.Outcome, error) {
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

// Yield passes an unused turn to the next pod, for instance after a failed read.
func (c *Caller) Yield(name types.NamespacedName) { wake(c.yield(c.key(name), c.options.Clock.Now())) }

// Forget removes a pod that is no longer to be evicted.
func (c *Caller) Forget(name types.NamespacedName) { wake(c.forget(c.key(name))) }

// BudgetChanged reports a disruption budget that was created (old is nil), deleted (now is nil) or
// changed.
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

// observation holds a pod's budgets as they were read before a try.
type observation struct {
	attempt attempt
	// lock holds back the pod; zero if none does.
	lock budgetLock
	// changes is the number of changes of locks before the read.
	changes int
	// try is counted since before the read.
	try *try
}

// observe reads the budgets of the pod and their locks.
func (c *Caller) observe(ctx context.Context, key podKey, pod *corev1.Pod) (observation, error) {
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
		// A pod with several is always refused: it waits for none of them.
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

// budgets returns the budgets that select the pod, by name.
func (d *Dispatcher) budgets(ctx context.Context, pod *corev1.Pod) ([]*policyv1.PodDisruptionBudget, error) {
	list := &policyv1.PodDisruptionBudgetList{}
	// The list is read for every try. It does not wait for our own writes of locks: Busy reports the
	// tries that do not see them.
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
