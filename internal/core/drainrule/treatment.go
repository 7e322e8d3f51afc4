package drainrule

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Treatment describes how a drain handles a pod.
type Treatment struct {
	// Behavior is only valid without a Cause.
	Behavior v1alpha1.DrainBehavior
	// Order is the order of the pod; 0 unless Behavior is Drain. With a Cause it is the lowest
	// possible order, or NoOrder if the pod would be skipped in any case.
	Order int32
	// Reason names what decided, such as "MachineDrainRule portworx". It is empty for the default.
	Reason string
	// Cause says why the treatment is unknown, with a suggestion. The pod then waits.
	Cause string
	// Object is the rule that decided, or the object of the Cause.
	Object v1alpha1.BlockerObject
	// Problems are ignored labels.
	Problems []podclass.Problem
}

// Facts are objects that rules depend on. What has neither an entry nor an error does not exist.
type Facts struct {
	Namespaces      map[string]map[string]string
	NamespaceErrors map[string]string
	DaemonSets      map[types.NamespacedName]types.UID
	DaemonSetErrors map[types.NamespacedName]string
}

// NoOrder is the order of a pod that delays no other.
const NoOrder = math.MaxInt32

func (t Treatment) holds() int32 {
	switch {
	case t.Cause != "" || t.Behavior == v1alpha1.DrainBehaviorDrain:
		return t.Order
	case t.Behavior == v1alpha1.DrainBehaviorWaitCompleted:
		return 0
	default:
		return NoOrder
	}
}

// Reasons other than rules.
const (
	byLabel     = "label " + v1alpha1.DrainLabel
	byDaemonSet = "DaemonSet"
	asStatic    = "static pod"
)

// Of returns how the drain of a Machine treats a pod. Pods of a DaemonSet and static pods are
// skipped because they would be recreated, unless they have finished or the DaemonSet is gone.
func (r Rules) Of(pod *corev1.Pod, facts Facts) Treatment {
	switch podclass.Type(pod) {
	case v1alpha1.PodTypeStatic:
		return Treatment{Behavior: v1alpha1.DrainBehaviorSkip, Reason: asStatic}
	case v1alpha1.PodTypeDaemonSet:
		if !podclass.Terminal(pod) {
			return r.ofDaemonSet(pod, facts)
		}
	}
	return r.Ask(pod, facts)
}

func (r Rules) ofDaemonSet(pod *corev1.Pod, facts Facts) Treatment {
	owner := podclass.Owner(pod)
	key := types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}
	uid, exists := facts.DaemonSets[key]
	if exists && uid == owner.UID {
		return Treatment{Behavior: v1alpha1.DrainBehaviorSkip, Reason: byDaemonSet}
	}
	asked := r.Ask(pod, facts)
	skipped := asked.Cause == "" && asked.Behavior == v1alpha1.DrainBehaviorSkip
	unread := facts.DaemonSetErrors[key]
	if exists || skipped || unread == "" {
		return asked
	}
	return Treatment{
		Order:  asked.holds(),
		Object: v1alpha1.BlockerObject{APIVersion: owner.APIVersion, Kind: "DaemonSet", Namespace: pod.Namespace, Name: owner.Name, UID: owner.UID},
		Cause: fmt.Sprintf("DaemonSet %s/%s, the owner of the pod, could not be read: %s. Until a retry succeeds, only label %s=skip on the pod decides.",
			pod.Namespace, owner.Name, unread, v1alpha1.DrainLabel),
		Problems: asked.Problems,
	}
}

// Ask returns how a drain treats a pod of any type: by its label, by the first rule that applies,
// or by eviction in order 0.
func (r Rules) Ask(pod *corev1.Pod, facts Facts) Treatment {
	behavior, problems := podclass.DrainLabel(pod)
	if behavior != v1alpha1.DrainBehaviorDrain {
		return Treatment{Behavior: behavior, Reason: byLabel}
	}
	treatment := Treatment{Behavior: v1alpha1.DrainBehaviorDrain}
	for n := range r.candidates {
		candidate := &r.candidates[n]
		if a := candidate.appliesTo(pod, &facts); !a.no {
			treatment = candidate.treat(a.unclear)
			if a.unclear != "" {
				treatment.Order = min(candidate.treatment.holds(), r.lowest(n+1, pod, &facts))
			}
			break
		}
	}
	treatment.Problems = problems
	return treatment
}

func (r Rules) lowest(n int, pod *corev1.Pod, facts *Facts) int32 {
	lowest := int32(NoOrder)
	for ; n < len(r.candidates); n++ {
		a := r.candidates[n].appliesTo(pod, facts)
		if a.no {
			continue
		}
		lowest = min(lowest, r.candidates[n].treatment.holds())
		if a.unclear == "" {
			return lowest
		}
	}
	return min(lowest, 0)
}

func (c *candidate) treat(unclear string) Treatment {
	if unclear == "" {
		return c.treatment
	}
	return Treatment{
		Object: c.treatment.Object,
		Cause:  fmt.Sprintf("MachineDrainRule %s may apply to the pod, but %s", c.name, unclear),
	}
}

func treatmentOf(r *v1alpha1.MachineDrainRule) Treatment {
	treatment := Treatment{
		Behavior: r.Spec.Drain.Behavior,
		Reason:   "MachineDrainRule " + r.Name,
		Object: v1alpha1.BlockerObject{
			APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "MachineDrainRule", Namespace: r.Namespace, Name: r.Name, UID: r.UID,
		},
	}
	order := ptr.Deref(r.Spec.Drain.Order, int32(0))
	switch treatment.Behavior {
	case v1alpha1.DrainBehaviorDrain:
		treatment.Order = order
	case v1alpha1.DrainBehaviorSkip, v1alpha1.DrainBehaviorWaitCompleted:
	default:
		return Treatment{
			Object: treatment.Object,
			Order:  min(0, order),
			Cause: fmt.Sprintf("MachineDrainRule %s/%s applies to the pod, but spec.drain.behavior %q is unknown. Correct or delete the rule.",
				r.Namespace, r.Name, r.Spec.Drain.Behavior),
		}
	}
	return treatment
}
