package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Surroundings are what else there is of a pod without anything of ours.
type Surroundings struct {
	// Now is the time.
	Now time.Time
	// Node is that of the pod; nil if it is not known.
	Node *corev1.Node
	// Budgets are those of the pod's namespace.
	Budgets budget.Compiled
}

// obstacle is what any drain would meet at a pod, whoever asks for it: a pod that never
// ends, a node that does not answer, a budget that refuses.
func (s *Surroundings) obstacle(pod *corev1.Pod) (v1alpha1.Blocker, bool) {
	facts := &blocker.Facts{Now: s.Now, Pod: pod, Node: s.Node, Budgets: s.Budgets}
	if b, found := blocker.Of(facts); found {
		return b, true
	}
	return blocker.Foreseen(facts)
}

// lost is what goes with a pod when it leaves, as far as it says itself.
func lost(pod *corev1.Pod) []string {
	var lines []string
	if podclass.Owner(pod) == nil && podclass.Type(pod) == v1alpha1.PodTypeDefault {
		lines = append(lines, "No controller owns it: nobody replaces it when it has left.")
	}
	var empty []string
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; podclass.Temporary(v) != "" {
			empty = append(empty, excerpt.Line(v.Name, maxWords))
		}
	}
	if more := len(empty) - maxVolumes; more > 0 {
		empty = append(empty[:maxVolumes], fmt.Sprintf("%d more", more))
	}
	if len(empty) > 0 {
		lines = append(lines, "What it has in these volumes is lost when it leaves: "+strings.Join(empty, ", ")+".")
	}
	return lines
}

// maxVolumes is how many volumes are named.
const maxVolumes = 5

// told is a blocker in lines: why, and what helps.
func told(b *v1alpha1.Blocker) []string {
	line := excerpt.Line(b.Message, maxWords)
	if object := blocker.ObjectText(b.Object); object != "" && b.Object.Kind != "Pod" && !strings.Contains(b.Message, b.Object.Name) {
		line = excerpt.Line(object, maxWords) + ": " + line
	}
	lines := []string{fmt.Sprintf("%s (%s)", line, excerpt.Line(string(b.Type), maxWords))}
	if b.Suggestion != "" {
		lines = append(lines, "What helps: "+excerpt.Line(b.Suggestion, maxCommand))
	}
	return lines
}

// mostObstacles is how many obstacles of a node are told.
const mostObstacles = 5

// obstacles are what a drain of these pods would meet, in lines, what holds most pods
// first.
func obstacles(pods []*corev1.Pod, around func(namespace string) *Surroundings) []string {
	var found []v1alpha1.Blocker
	bare, local := 0, 0
	for _, pod := range pods {
		if podclass.Terminal(pod) {
			continue
		}
		if b, stuck := around(pod.Namespace).obstacle(pod); stuck && podclass.Type(pod) == v1alpha1.PodTypeDefault {
			found = append(found, b)
		}
		bare += ones(podclass.Owner(pod) == nil && podclass.Type(pod) == v1alpha1.PodTypeDefault)
		local += ones(slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return podclass.Temporary(&v) != "" }))
	}
	sums := inOrder(blocker.Sum(found))
	slices.SortStableFunc(sums, func(a, b Blocker) int { return cmp.Compare(b.PodCount, a.PodCount) })
	var lines []string
	for i := range sums {
		if i == mostObstacles {
			lines = append(lines, fmt.Sprintf("And %d more that would hold pods up.", len(sums)-i))
			break
		}
		lines = append(lines, fmt.Sprintf("%s would not leave: %s", phrase.Count(sums[i].PodCount, "pod", "pods"), sums[i].explain()))
	}
	if bare > 0 {
		lines = append(lines, phrase.Count(bare, "pod has no controller, and nobody would replace it.", "pods have no controller, and nobody would replace them."))
	}
	if local > 0 {
		lines = append(lines, phrase.Count(local, "pod has", "pods have")+" data in temporary volumes, which would be lost.")
	}
	return lines
}

// explain is a blocker in one line.
func (b *Blocker) explain() string {
	text := fmt.Sprintf("%s (%s): %s", b.name(), b.Type, b.Message)
	if b.Suggestion != "" {
		text += " What helps: " + b.Suggestion
	}
	return text
}

func ones(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
