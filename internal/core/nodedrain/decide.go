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

// Snapshot holds what is known of a node and its pods.
type Snapshot struct {
	Now         time.Time
	ClockSkewed bool
	// Node is nil if it is known not to exist. Then there is nothing to drain.
	Node  *corev1.Node
	Pods  []*corev1.Pod
	Rules drainrule.Rules
	Facts drainrule.Facts
	// Answers holds the last refusal by pod, ignored for pods that are not evicted now.
	Answers map[types.UID]evacuation.Outcome
}

// Decision holds what to do with the pods of the node.
type Decision struct {
	Done bool
	// Evict holds the pods to evict now, oldest first: those of the lowest order that is present.
	Evict []*corev1.Pod
	// GracePeriodSeconds is for the evictions; nil leaves it to the pod.
	GracePeriodSeconds *int64
	// Skipped pods stay, and their volumes are not awaited.
	Skipped []*corev1.Pod
	// SkippedByRule is the part of Skipped that a MachineDrainRule skips.
	SkippedByRule []*corev1.Pod

	Terminating []*corev1.Pod
	// Refused is the part of Evict that the API server refused to evict.
	Refused    []*corev1.Pod
	Completing []*corev1.Pod
	// Later pods have a higher order.
	Later   []*corev1.Pod
	Unknown []*corev1.Pod

	// Failed is true for an unknown treatment or an extraordinary refusal, which need help.
	Failed bool
	// Message names what is awaited, in the form of the deletion-process page; empty if nothing is.
	Message      string
	Problems     []Problem
	RequeueAfter time.Duration
}

// Problem is a label of a pod that is ignored.
type Problem struct {
	Pod *corev1.Pod
	podclass.Problem
}

// completionOrder is the order of pods that are left to complete.
const completionOrder = 0

// Decide returns the next step in the drain of a node.
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

// Left returns all awaited pods.
func (d Decision) Left() []*corev1.Pod {
	return slices.Concat(d.Terminating, d.Evict, d.Completing, d.Unknown, d.Later)
}

type drain struct {
	Snapshot
	Decision

	evictable []*corev1.Pod
	// causes is by pod in Unknown, orders by pod that has one.
	causes map[types.UID]string
	orders map[types.UID]int32
}

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
		// A finished pod is evicted as well, as on that page: so it is gone from the API before its
		// node is, and no budget applies.
		d.evictable = append(d.evictable, pod)
		d.orders[pod.UID] = treatment.Order
	}
}

// givenUp reports whether a terminating pod is not awaited because its node is unreachable.
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

// choose evicts the pods of the lowest order.
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

// lowest returns the order of the pods that leave now.
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

// judge classifies the refusals of the API server.
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

// ordinary returns true for a refusal that resolves itself: other pods become ready, the API server
// or an evacuator does its work, or the namespace controller deletes the pod.
func ordinary(answer evacuation.Outcome) bool {
	return answer.Result != evacuation.Refused || answer.Type == v1alpha1.BlockerNamespaceTerminating
}

func byName(a, b *corev1.Pod) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}
