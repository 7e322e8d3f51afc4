package view

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const maxWaiting = 5

// BudgetFacts holds what the API shows of a PodDisruptionBudget.
type BudgetFacts struct {
	Now         time.Time
	Budget      *policyv1.PodDisruptionBudget
	Pods        []*corev1.Pod
	Budgets     []*policyv1.PodDisruptionBudget
	Evacuations []*v1alpha1.Evacuation
	Unknown     bool
}

// Why returns lines about what a budget allows, who has locked it and who waits for it.
func (f *BudgetFacts) Why() []string {
	b := f.Budget
	name := "PodDisruptionBudget " + b.Namespace + "/" + b.Name
	allowed, known := budget.Allowed(b)
	lines := []string{fmt.Sprintf("%s allows %s: %s of %d healthy, %d required.", name, phrase.Count(int(allowed), "disruption", "disruptions"),
		phrase.Count(int(b.Status.CurrentHealthy), "pod", "pods"), b.Status.ExpectedPods, b.Status.DesiredHealthy)}
	if !known {
		lines = []string{fmt.Sprintf("The disruptions that %s allows are unknown because its status is outdated. If this persists, check the disruption controller.", name)}
	}
	if hold, locked := budget.LockOf(b, f.Now, 0); locked {
		lines = append(lines, excerpt.Line(hold.Describe(b), maxWords)+".", "What helps: "+blocker.Unlock(b, hold))
	}
	lines = append(lines, f.refuses(allowed, known)...)
	lines = append(lines, f.entangled()...)
	return append(lines, f.waiting()...)
}

func (f *BudgetFacts) mine() []*corev1.Pod {
	compiled := budget.Compile([]*policyv1.PodDisruptionBudget{f.Budget})
	var mine []*corev1.Pod
	for _, pod := range f.Pods {
		if !podclass.Terminal(pod) && len(compiled.Applying(pod)) > 0 {
			mine = append(mine, pod)
		}
	}
	slices.SortStableFunc(mine, func(a, b *corev1.Pod) int { return ones(podclass.Ready(b)) - ones(podclass.Ready(a)) })
	return mine
}

func (f *BudgetFacts) refuses(allowed int32, known bool) []string {
	if allowed > 0 || !known {
		return nil
	}
	mine := f.mine()
	if len(mine) == 0 {
		if f.Unknown {
			return nil
		}
		return []string{"It selects no pods."}
	}
	// The advice is about a ready pod: others get different advice.
	pod := mine[0].DeepCopy()
	pod.DeletionTimestamp, pod.Status.Phase = nil, corev1.PodRunning
	unlocked := f.Budget.DeepCopy()
	delete(unlocked.Annotations, v1alpha1.LockAnnotation)
	found, refused := blocker.Foreseen(&blocker.Facts{Now: f.Now, Pod: pod, Budgets: budget.Compile([]*policyv1.PodDisruptionBudget{unlocked})})
	if !refused {
		return nil
	}
	if found.Type != v1alpha1.BlockerPDBUnsatisfiable {
		return []string{"What helps: " + excerpt.Line(found.Suggestion, maxCommand)}
	}
	return told(&found)
}

// entangled reports pods under several budgets, which the eviction API refuses.
func (f *BudgetFacts) entangled() []string {
	all := budget.Compile(f.Budgets)
	several, example := 0, v1alpha1.Blocker{}
	for _, pod := range f.mine() {
		if len(all.Applying(pod)) < 2 {
			continue
		}
		if several++; several == 1 {
			example, _ = blocker.Foreseen(&blocker.Facts{Now: f.Now, Pod: running(pod), Budgets: all})
		}
	}
	if several == 0 {
		return nil
	}
	return append([]string{phrase.Count(several, "of its pods has another budget, too.", "of its pods have another budget, too.")}, told(&example)...)
}

func running(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.DeletionTimestamp, pod.Status.Phase = nil, corev1.PodRunning
	return pod
}

func (f *BudgetFacts) waiting() []string {
	var waiting []string
	for _, e := range f.Evacuations {
		refused := meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionEvictionRefused)
		if refused && e.Namespace == f.Budget.Namespace && e.Status.RefusingBudgetName == f.Budget.Name {
			word := excerpt.Line(e.Spec.PodRef.Name, maxWords)
			if node := e.Annotations[v1alpha1.NodeAnnotation]; node != "" {
				word += " (node " + excerpt.Line(node, maxWords) + ")"
			}
			waiting = append(waiting, word)
		}
	}
	slices.Sort(waiting)
	switch {
	case len(waiting) == 0 && f.Unknown:
		return []string{"Cannot determine which pods wait for it."}
	case len(waiting) == 0:
		return []string{"No pods wait for it."}
	}
	text := fmt.Sprintf("%s for it: %s", phrase.Count(len(waiting), "pod waits", "pods wait"), phrase.Some(waiting, maxWaiting))
	return []string{text + "."}
}
