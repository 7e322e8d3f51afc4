package preflight

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/placement"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Room is a cluster in which pods look for room. World has the pods on nodes.
type Room struct {
	World placement.World
	// Unscheduled are pods without a node, which take room before others.
	Unscheduled []*corev1.Pod
}

// Fits reports whether the pods that a drain of a node evicts fit on other nodes, after those without
// a node and those of other nodes that are leaving. If that is unknown, it says why. It ignores
// budgets, surges, and pods that nothing recreates.
func (r Room) Fits(node string, leaving []string) (fits bool, unknown string) {
	estimate := placement.New(r.World)
	for _, one := range append(slices.Clone(leaving), node) {
		estimate.Cordon(one)
	}
	for _, pod := range bySize(r.Unscheduled) {
		estimate.Place(templateOf(pod))
	}
	for _, pod := range r.moving(func(name string) bool { return name != node && slices.Contains(leaving, name) }) {
		estimate.Remove(pod)
		estimate.Place(templateOf(pod))
	}
	fits = true
	for _, pod := range r.moving(func(name string) bool { return name == node }) {
		estimate.Remove(pod)
		on, why := estimate.Place(templateOf(pod))
		switch {
		case on != "":
		case placement.IsUnknown(why):
			unknown = cmp.Or(unknown, strings.TrimPrefix(why, "unknown: "))
		default:
			fits = false
		}
	}
	if !fits {
		return false, ""
	}
	return unknown == "", unknown
}

// moving returns the pods of nodes that are evicted and recreated, the largest first.
func (r Room) moving(on func(node string) bool) (pods []*corev1.Pod) {
	for _, pod := range r.World.Pods {
		if on(pod.Spec.NodeName) && Moves(pod) {
			pods = append(pods, pod)
		}
	}
	return bySize(pods)
}

// Moves reports whether a drain evicts a pod and its owner recreates it on another node.
func Moves(pod *corev1.Pod) bool {
	behavior, _ := podclass.DrainLabel(pod)
	return !podclass.Terminal(pod) && pod.DeletionTimestamp == nil && podclass.Type(pod) == v1alpha1.PodTypeDefault &&
		behavior != v1alpha1.DrainBehaviorSkip && podclass.Owner(pod) != nil
}

func bySize(pods []*corev1.Pod) []*corev1.Pod {
	return slices.SortedFunc(slices.Values(pods), func(a, b *corev1.Pod) int { return cmp.Or(bigFirst(a, b), byName(a, b)) })
}
