// Package nodedrain decides the next step in the drain of a Machine's node: which pods are
// evicted now, which are awaited and why (machine-deletion-process, machine-drain-rules). Lower
// orders leave first. A pod whose treatment is unknown is not evicted. The drain is done when
// every pod is skipped, completed, or lost with an unreachable node. The order of the input
// makes no difference.
package nodedrain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Snapshot is what is known of a node and its pods.
type Snapshot struct {
	// Now is the time of the decision, by the clock of the node's cluster.
	Now time.Time
	// ClockSkewed is true while that is not trusted; see package skew.
	ClockSkewed bool
	// Node is nil if it is known not to exist. There is nothing to drain then.
	Node *corev1.Node
	// Pods are all pods of the node.
	Pods []*corev1.Pod
	// Rules are those that are meant for the Machine.
	Rules drainrule.Rules
	// Facts are what the rules are asked with.
	Facts drainrule.Facts
	// Answers is the API server's last refusal to evict, by pod. One about a pod
	// that is not to be evicted now is ignored.
	Answers map[types.UID]evacuation.Outcome
}

// Decision is what to do with the pods of the node.
type Decision struct {
	// Done is true if no pod is waited for.
	Done bool
	// Evict is to be evicted now, the oldest first: those of the lowest order that
	// is present. Nobody else is to be evicted.
	Evict []*corev1.Pod
	// GracePeriodSeconds is for the evictions; nil leaves it to the pod.
	GracePeriodSeconds *int64
	// Skipped stay, and nobody waits for their volumes.
	Skipped []*corev1.Pod
	// SkippedByRule are those of Skipped that a MachineDrainRule has skipped.
	SkippedByRule []*corev1.Pod

	// Terminating are on their way out.
	Terminating []*corev1.Pod
	// Refused are those of Evict that the API server refused to evict.
	Refused []*corev1.Pod
	// Completing are left to complete by themselves.
	Completing []*corev1.Pod
	// Later are those of a higher order.
	Later []*corev1.Pod
	// Unknown are those that nobody knows how to treat.
	Unknown []*corev1.Pod

	// Failed is true if something is in the way that does not pass by itself: a
	// pod that nobody knows how to treat, or a refusal that is no ordinary wait.
	Failed bool
	// Message says what is waited for, in the form of the deletion-process page;
	// empty if nothing is.
	Message string
	// Problems are labels of pods that are ignored.
	Problems []Problem
	// RequeueAfter is when time alone changes the decision; 0 if it does not.
	RequeueAfter time.Duration
}

// Problem is a label of a pod that is ignored.
type Problem struct {
	Pod *corev1.Pod
	podclass.Problem
}

// completionOrder is the order that pods hold while they complete by themselves.
const completionOrder = 0

// Decide says what happens next in the drain of a node.
func Decide(s Snapshot) Decision {
	if s.Node == nil {
		return Decision{Done: true}
	}
	d := &drain{Snapshot: s, causes: map[types.UID]string{}, orders: map[types.UID]int32{}}
	for _, pod := range slices.SortedFunc(slices.Values(s.Pods), byName) {
		d.sort(pod)
	}
	d.choose()
	d.judge()
	if podclass.Unreachable(s.Node) {
		d.GracePeriodSeconds = new(podclass.UnreachableGraceSeconds)
	}
	d.Done = len(d.Left()) == 0
	if !d.Done {
		d.Message = d.message()
	}
	return d.Decision
}

// Left returns all pods that are waited for.
func (d Decision) Left() []*corev1.Pod {
	return slices.Concat(d.Terminating, d.Evict, d.Completing, d.Unknown, d.Later)
}

// drain is a decision in the making.
type drain struct {
	Snapshot
	Decision

	// evictable are those to be evicted, now or later.
	evictable []*corev1.Pod
	// causes are of the pods in Unknown, orders of those that hold one.
	causes map[types.UID]string
	orders map[types.UID]int32
}

// sort finds out what becomes of a pod.
func (d *drain) sort(pod *corev1.Pod) {
	treatment := d.Rules.Of(pod, d.Facts)
	for _, problem := range treatment.Problems {
		d.Problems = append(d.Problems, Problem{Pod: pod, Problem: problem})
	}
	switch {
	case treatment.Cause == "" && treatment.Behavior == v1alpha1.DrainBehaviorSkip:
		d.Skipped = append(d.Skipped, pod)
		if treatment.Object.Kind != "" {
			d.SkippedByRule = append(d.SkippedByRule, pod)
		}
	case d.givenUp(pod):
	case treatment.Cause != "":
		d.Unknown = append(d.Unknown, pod)
		d.causes[pod.UID], d.orders[pod.UID] = treatment.Cause, treatment.Order
	case treatment.Behavior == v1alpha1.DrainBehaviorWaitCompleted:
		d.complete(pod)
	case pod.DeletionTimestamp != nil:
		d.Terminating = append(d.Terminating, pod)
		d.orders[pod.UID] = treatment.Order
	default:
		// A pod that has finished is evicted as well, as the page has it: only
		// then is it gone from the API before its node is, and no budget minds.
		d.evictable = append(d.evictable, pod)
		d.orders[pod.UID] = treatment.Order
	}
}

// givenUp is true of a terminating pod that nobody waits for, because its node
// cannot say that it has stopped.
func (d *drain) givenUp(pod *corev1.Pod) bool {
	at := podclass.GivenUpTime(pod, d.Node)
	switch left := at.Sub(d.Now); {
	case at.IsZero():
	case left <= 0:
		return !d.ClockSkewed
	case d.RequeueAfter == 0 || left < d.RequeueAfter:
		d.RequeueAfter = left
	}
	return false
}

// complete waits for a pod to complete by itself, or to go.
func (d *drain) complete(pod *corev1.Pod) {
	switch {
	case podclass.Terminal(pod):
		return
	case pod.DeletionTimestamp != nil:
		d.Terminating = append(d.Terminating, pod)
	default:
		d.Completing = append(d.Completing, pod)
	}
	d.orders[pod.UID] = completionOrder
}

// choose evicts those of the lowest order that any pod holds.
func (d *drain) choose() {
	lowest := d.lowest()
	for _, pod := range d.evictable {
		if d.orders[pod.UID] == lowest {
			d.Evict = append(d.Evict, pod)
		} else {
			d.Later = append(d.Later, pod)
		}
	}
	slices.SortStableFunc(d.Evict, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
}

// lowest is the order of the pods that leave now; it means nothing if there are none.
func (d *drain) lowest() int32 {
	var orders []int32
	for _, order := range d.orders {
		orders = append(orders, order)
	}
	if len(orders) == 0 {
		return 0
	}
	return slices.Min(orders)
}

// judge looks at what the API server has refused.
func (d *drain) judge() {
	for _, pod := range d.Evict {
		answer, answered := d.Answers[pod.UID]
		if !answered || answer.Result == evacuation.Evicted || answer.Result == evacuation.Gone {
			continue
		}
		d.Refused = append(d.Refused, pod)
		d.Failed = d.Failed || !ordinary(answer)
	}
	slices.SortFunc(d.Refused, byName)
	d.Failed = d.Failed || len(d.Unknown) > 0
}

// ordinary is true of a refusal that passes by itself: others become ready, the
// API server or an evacuator gets its work done, or the controller of namespaces
// deletes the pod.
func ordinary(answer evacuation.Outcome) bool {
	return answer.Result != evacuation.Refused || answer.Type == v1alpha1.BlockerNamespaceTerminating
}

func byName(a, b *corev1.Pod) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}
