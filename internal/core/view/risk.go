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

// Surroundings of a pod are read without anything of Ebbtide.
type Surroundings struct {
	Now     time.Time
	Node    *corev1.Node
	Budgets budget.Compiled
}

// obstacle returns what would block any drain of a pod.
func (s *Surroundings) obstacle(pod *corev1.Pod) (v1alpha1.Blocker, bool) {
	facts := &blocker.Facts{Now: s.Now, Pod: pod, Node: s.Node, Budgets: s.Budgets}
	if b, found := blocker.Of(facts); found {
		return b, true
	}
	return blocker.Foreseen(facts)
}

func lost(pod *corev1.Pod) []string {
	var lines []string
	if podclass.Owner(pod) == nil && podclass.Type(pod) == v1alpha1.PodTypeDefault {
		lines = append(lines, "It has no controller and will not be replaced when it leaves.")
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
		lines = append(lines, "Data in these volumes will be lost when it leaves: "+strings.Join(empty, ", ")+".")
	}
	return lines
}

const maxVolumes = 5

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

const mostObstacles = 5

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
			lines = append(lines, fmt.Sprintf("%d more would block pods.", len(sums)-i))
			break
		}
		lines = append(lines, fmt.Sprintf("%s would not leave: %s", phrase.Count(sums[i].PodCount, "pod", "pods"), sums[i].explain()))
	}
	if bare > 0 {
		lines = append(lines, phrase.Count(bare, "pod has no controller and would not be replaced.", "pods have no controller and would not be replaced."))
	}
	if local > 0 {
		lines = append(lines, phrase.Count(local, "pod has", "pods have")+" data in temporary volumes, which would be lost.")
	}
	return lines
}

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
