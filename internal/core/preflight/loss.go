package preflight

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Loss describes permanent losses that the pods alone show, without claims and rules.
type Loss struct {
	// Data names pods with temporary volumes, Unreplaced pods without a controller, and Failed
	// those whose Job fails, with the reason; each by name.
	Data, Unreplaced, Failed []string
}

// Any is true if something is lost.
func (l Loss) Any() bool { return len(l.Data)+len(l.Unreplaced)+len(l.Failed) > 0 }

// LossOf returns the loss of a drain. Like kubectl drain, it ignores DaemonSet and static pods.
func LossOf(pods []*corev1.Pod, jobs []*batchv1.Job) (loss Loss) {
	known := newOwners(Owners{Jobs: jobs})
	for _, pod := range pods {
		if podclass.Terminal(pod) || podclass.Type(pod) != v1alpha1.PodTypeDefault {
			continue
		}
		if behavior, _ := podclass.DrainLabel(pod); behavior == v1alpha1.DrainBehaviorSkip {
			continue
		}
		name := pod.Namespace + "/" + pod.Name
		if lost := known.dataLost(pod); len(lost) > 0 {
			loss.Data = append(loss.Data, fmt.Sprintf("%s (%s)", name, strings.Join(lost, ", ")))
		}
		owner := podclass.Owner(pod)
		if owner == nil {
			loss.Unreplaced = append(loss.Unreplaced, name)
		} else if fails := known.jobEnds(owner.UID); fails != "" {
			loss.Failed = append(loss.Failed, fmt.Sprintf("%s (%s)", name, fails))
		}
	}
	slices.Sort(loss.Data)
	slices.Sort(loss.Failed)
	slices.Sort(loss.Unreplaced)
	return loss
}
