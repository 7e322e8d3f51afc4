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

const maxPriorities = 16

// ParsePriorities returns the priorities of a kubelet's shutdownGracePeriodByPodPriority, such as
// "0,1000,100000", in ascending order. It fails for an invalid or repeated priority, or more than
// 16.
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

// plan drains pods in the steps in which the kubelet would end them (KEP-4212): each priority
// starts one, and the first step includes all lower ones. Pods of DaemonSets and static pods follow
// in steps of their own.
func (o Options) plan() []v1alpha1.DrainPlanEntry {
	var plan []v1alpha1.DrainPlanEntry
	for _, podType := range []v1alpha1.PodType{v1alpha1.PodTypeDefault, v1alpha1.PodTypeDaemonSet, v1alpha1.PodTypeStatic} {
		for i := 1; i < len(o.Priorities); i++ {
			plan = append(plan, v1alpha1.DrainPlanEntry{PodPriority: o.Priorities[i] - 1, PodType: podType})
		}
	}
	return drainplan.Inject(plan)
}
