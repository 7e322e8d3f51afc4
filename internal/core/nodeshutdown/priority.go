package nodeshutdown

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
)

// maxPriorities is how many steps a shutdown has: a plan holds no more for each type of pod.
const maxPriorities = 16

// ParsePriorities returns the priorities of a kubelet's shutdownGracePeriodByPodPriority,
// such as "0,1000,100000", in ascending order. Like the kubelet it takes them in any order.
//
// Errors: one is not a priority of pods or is there twice, or there are more than 16.
func ParsePriorities(text string) ([]int32, error) {
	words := strings.Split(text, ",")
	if len(words) > maxPriorities {
		return nil, fmt.Errorf("must be at most %d priorities", maxPriorities)
	}
	var priorities []int32
	for _, word := range words {
		priority, err := strconv.ParseInt(strings.TrimSpace(word), 10, 32)
		if err != nil || slices.Contains(priorities, int32(priority)) {
			return nil, errors.New("must be priorities of pods, each once, such as 0,1000,100000")
		}
		priorities = append(priorities, int32(priority))
	}
	slices.Sort(priorities)
	return priorities, nil
}

// plan has pods leave in the steps in which the kubelet would end them (KEP-4212): each
// priority begins one, and the first has all pods below the second. Pods of DaemonSets and
// static pods come after, in steps of their own, as in every drain.
func (o Options) plan() []v1alpha1.DrainPlanEntry {
	var plan []v1alpha1.DrainPlanEntry
	for _, podType := range []v1alpha1.PodType{v1alpha1.PodTypeDefault, v1alpha1.PodTypeDaemonSet, v1alpha1.PodTypeStatic} {
		for i := 1; i < len(o.Priorities); i++ {
			plan = append(plan, v1alpha1.DrainPlanEntry{PodPriority: o.Priorities[i] - 1, PodType: podType})
		}
	}
	return drainplan.Inject(plan)
}
