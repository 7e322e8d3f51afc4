package preflight

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Loss is what a drain takes for good, as far as the pods themselves tell: without their
// claims, and without the rules by which some of them stay.
type Loss struct {
	// Data are the pods with volumes that go with them, such as "shop/web-0 (emptyDir
	// volume cache)", and Unreplaced those that nobody makes again; each by name.
	Data, Unreplaced []string
}

// LossOf is the loss of a drain of these pods. Pods of DaemonSets and static ones are left
// out, as kubectl drain leaves them out, and so are those that are done or labelled to stay.
func LossOf(pods []*corev1.Pod) (loss Loss) {
	for _, pod := range pods {
		if podclass.Terminal(pod) || podclass.Type(pod) != v1alpha1.PodTypeDefault {
			continue
		}
		if behavior, _ := podclass.DrainLabel(pod); behavior == v1alpha1.DrainBehaviorSkip {
			continue
		}
		name := pod.Namespace + "/" + pod.Name
		if lost := (&owners{}).dataLost(pod); len(lost) > 0 {
			loss.Data = append(loss.Data, fmt.Sprintf("%s (%s)", name, strings.Join(lost, ", ")))
		}
		if podclass.Owner(pod) == nil {
			loss.Unreplaced = append(loss.Unreplaced, name)
		}
	}
	slices.Sort(loss.Data)
	slices.Sort(loss.Unreplaced)
	return loss
}
