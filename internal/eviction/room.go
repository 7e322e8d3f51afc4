package eviction

import (
	"context"
	"fmt"
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

	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
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

// RoomOptions is what a Room works with. All of it is required.
type RoomOptions struct {
	Evictor Evictor
	// Reader lists disruption budgets; it should read from a cache.
	Reader client.Reader
	Clock  clock.WithDelayedExecution
	// Jitter is a random number from 0 to 1.
	Jitter func() float64
	// LongestPause is how long a pod rests at the most that something other than a
	// budget refuses, unless the refusal says when to come again.
	LongestPause time.Duration
	// Results counts the answers; see NewResults.
	Results *prometheus.CounterVec
	// Wake has pods evicted that waited for their turn: Evict is to be called for
	// them as soon as possible. It must not call the room.
	Wake func(...types.NamespacedName)
}

// Room holds the pods that wait to be evicted, and says who may try. A pod goes
// by any key of its namespace that no other pod ever has. Calls for one key come
// one after the other, calls for several at any time.
//
// Pods of one budget form a line: one tries at a time, the oldest first, as
// many as the watched budget has last said that it allows. A refusal uses that
// credit up, unless the budget opened while the refusal was under way, so that
// no opening is ever lost. A pod that was never refused tries without credit,
// so that it can say what refuses it. All of it is in memory: after a restart
// everything is simply tried again.
type Room struct {
	options RoomOptions

	mu     sync.Mutex
	guests map[types.NamespacedName]*guest
	lines  map[types.NamespacedName]*line
}

// NewRoom returns an empty Room.
func NewRoom(options RoomOptions) *Room {
	return &Room{
		options: options,
		guests:  map[types.NamespacedName]*guest{},
		lines:   map[types.NamespacedName]*line{},
	}
}

// Answer is what became of a call of Evict.
type Answer struct {
	// Outcome is the API server's answer; nil if it was not asked, because it was
	// not the pod's turn.
	Outcome *evacuation.Outcome
	// Again is when to call again, unless the pod is woken before; 0 if it will be.
	Again time.Duration
}

// Evict asks the API server once to evict the pod, if it is its turn.
//
// Errors: the budgets cannot be read, or the context ended before the answer.
// The turn is then to be given back with Yield.
func (r *Room) Evict(ctx context.Context, key types.NamespacedName, pod *corev1.Pod, grace *int64) (Answer, error) {
	protector, err := r.budget(ctx, pod)
	if err != nil {
		return Answer{}, err
	}
	mayTry, wait, next := r.enter(visit{key: key, born: pod.CreationTimestamp.Time, budget: protector}, r.options.Clock.Now())
	r.options.Wake(next...)
	if !mayTry {
		return Answer{Again: wait}, nil
	}
	slow := r.options.Clock.AfterFunc(slowTry, func() { r.options.Wake(r.slow(key)...) })
	answer := r.options.Evictor.Evict(ctx, pod, grace)
	slow.Stop()
	if err := ctx.Err(); err != nil {
		return Answer{}, fmt.Errorf("evict pod %s: %w", pod.Name, err)
	}
	outcome := evacuation.Classify(answer)
	r.options.Results.WithLabelValues(string(outcome.Result)).Inc()
	now := r.options.Clock.Now()
	r.options.Wake(r.leave(key, outcome, now)...)
	return Answer{Outcome: &outcome, Again: r.wait(key, now)}, nil
}

// Yield gives a turn to the next pod if it was not used, for instance because a
// read failed.
func (r *Room) Yield(key types.NamespacedName) {
	r.options.Wake(r.yield(key, r.options.Clock.Now())...)
}

// Forget removes a pod that is not to be evicted any more.
func (r *Room) Forget(key types.NamespacedName) { r.options.Wake(r.forget(key)...) }

// BudgetChanged tells the room of a disruption budget that came (old is nil),
// went (now is nil) or changed.
func (r *Room) BudgetChanged(old, now *policyv1.PodDisruptionBudget) {
	switch {
	case now == nil:
		r.options.Wake(r.scatter(client.ObjectKeyFromObject(old))...)
	case old != nil && !sameSubjects(&old.Spec, &now.Spec):
		r.options.Wake(r.scatter(client.ObjectKeyFromObject(now))...)
	default:
		if allowed, known := budget.Allowed(now); known {
			r.options.Wake(r.moved(client.ObjectKeyFromObject(now), allowed)...)
		}
	}
}

// sameSubjects reports whether two specs protect the same pods.
func sameSubjects(a, b *policyv1.PodDisruptionBudgetSpec) bool {
	return equality.Semantic.DeepEqual(a.Selector, b.Selector) &&
		equality.Semantic.DeepEqual(a.UnhealthyPodEvictionPolicy, b.UnhealthyPodEvictionPolicy)
}

// budget finds the budget that protects the pod. A pod under several is refused
// whatever they allow, so that none of them is worth waiting for.
func (r *Room) budget(ctx context.Context, pod *corev1.Pod) (types.NamespacedName, error) {
	list := &policyv1.PodDisruptionBudgetList{}
	// The list is only read, and it is read for every try of every pod.
	if err := r.options.Reader.List(ctx, list, client.InNamespace(pod.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return types.NamespacedName{}, fmt.Errorf("list pod disruption budgets: %w", err)
	}
	budgets := make([]*policyv1.PodDisruptionBudget, len(list.Items))
	for i := range list.Items {
		budgets[i] = &list.Items[i]
	}
	applying := budget.Applying(pod, budgets)
	if len(applying) != 1 {
		return types.NamespacedName{}, nil
	}
	return client.ObjectKeyFromObject(applying[0]), nil
}
