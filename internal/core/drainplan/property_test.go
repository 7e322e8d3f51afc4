package drainplan_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

var (
	priorities = []int32{-2147483648, -1, 0, 7, 2000, 2147483647}
	apps       = []string{"x", "y", "z"}
)

// everyPod is one of each kind of pod that the entries below can tell apart.
func everyPod() []*corev1.Pod {
	var all []*corev1.Pod
	for _, priority := range priorities {
		for _, app := range append(apps, "") {
			mirror := pod(priority, app)
			podclass.MakeMirror(mirror, "node")
			all = append(all, pod(priority, app), daemonSetPod(priority, app), mirror)
		}
	}
	return all
}

// bruteForce says what entries cover without compiling, ordering or pruning.
func bruteForce(entries []v1alpha1.DrainPlanEntry, p *corev1.Pod) bool {
	return slices.ContainsFunc(entries, func(e v1alpha1.DrainPlanEntry) bool {
		selector, err := metav1.LabelSelectorAsSelector(e.PodSelector)
		sameType := e.PodType == podclass.Type(p) || e.PodType == "" && podclass.Type(p) == v1alpha1.PodTypeDefault
		return err == nil && sameType && podclass.Priority(p) <= e.PodPriority && (e.PodSelector == nil || selector.Matches(labels.Set(p.Labels)))
	})
}

func someEntries(random *rand.Rand) []v1alpha1.DrainPlanEntry {
	var entries []v1alpha1.DrainPlanEntry
	for range random.IntN(7) {
		one := entry([]v1alpha1.PodType{"", "Default", "DaemonSet", "Static"}[random.IntN(4)], priorities[random.IntN(len(priorities))])
		if random.IntN(2) == 0 {
			one.PodSelector = []*metav1.LabelSelector{
				{},
				{MatchLabels: map[string]string{"app": apps[random.IntN(3)]}},
				{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"x", "y"}}}},
			}[random.IntN(3)]
		}
		entries = append(entries, one)
	}
	return entries
}

func setOf(entries []v1alpha1.DrainPlanEntry) drainplan.Set {
	return drainplan.NewSet(drainplan.Parse(entries)...)
}

func TestJoinCoversEither(t *testing.T) {
	pods := everyPod()
	for seed := range uint64(600) {
		random := rand.New(rand.NewPCG(seed, 1))
		a, b, c := someEntries(random), someEntries(random), someEntries(random)
		joined := drainplan.Join(setOf(a), setOf(b))
		for _, p := range pods {
			if got, want := joined.Covers(p), bruteForce(a, p) || bruteForce(b, p); got != want {
				t.Fatalf("seed %d: join of %q and %q covers %s/%d: %v, want %v", seed, short(a), short(b), p.Labels, *p.Spec.Priority, got, want)
			}
		}
		for law, pair := range map[string][2]drainplan.Set{
			"order-independent": {joined, drainplan.Join(setOf(b), setOf(a))},
			"idempotent":        {joined, drainplan.Join(joined, joined)},
			"absorbing":         {joined, drainplan.Join(joined, setOf(a))},
			"associative":       {drainplan.Join(joined, setOf(c)), drainplan.Join(setOf(a), drainplan.Join(setOf(b), setOf(c)))},
		} {
			if !pair[0].Equal(pair[1]) {
				t.Fatalf("seed %d: join is not %s: %s and %s", seed, law, pair[0].Key(), pair[1].Key())
			}
		}
	}
}

func TestNormaliseKeepsEveryAnswer(t *testing.T) {
	pods := everyPod()
	for seed := range uint64(150) {
		plan := someEntries(rand.New(rand.NewPCG(seed, 2)))
		normal := drainplan.Normalise(plan)
		compiled, err := drainplan.New(plan, "")
		if err != nil {
			t.Fatal(err)
		}
		for i := range compiled.Len() {
			for _, p := range pods {
				if got, want := compiled.Cum(i).Covers(p), bruteForce(normal[:i+1], p); got != want {
					t.Fatalf("seed %d: entries 0 to %d of %q cover %s/%d: %v, want %v", seed, i, short(normal), p.Labels, *p.Spec.Priority, got, want)
				}
			}
		}
	}
}

func TestRenderedTemplatesParse(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 3))
		entries, known := someEntries(random), drainplan.Parse(someEntries(random))
		set := setOf(entries)
		lines := set.Render(known)
		if back := setOf(lines); !back.Equal(set) {
			t.Fatalf("seed %d: %q is read back from %q as %s", seed, set.Key(), short(lines), back.Key())
		}
	}
}

// FuzzJoin lets the fuzzer choose entries, two bytes each.
func FuzzJoin(f *testing.F) {
	f.Add([]byte{0, 0}, []byte{1, 9, 2, 17})
	f.Add([]byte{3, 5, 3, 5}, []byte{})
	pods := everyPod()
	f.Fuzz(func(t *testing.T, first, second []byte) {
		a, b := entriesFrom(first), entriesFrom(second)
		joined := drainplan.Join(setOf(a), setOf(b))
		for _, p := range pods {
			if got, want := joined.Covers(p), bruteForce(a, p) || bruteForce(b, p); got != want {
				t.Fatalf("join of %q and %q covers %s/%d: %v, want %v", short(a), short(b), p.Labels, *p.Spec.Priority, got, want)
			}
		}
		if back := setOf(joined.Render(nil)); !back.Equal(joined) {
			t.Fatalf("%s is read back as %s", joined.Key(), back.Key())
		}
	})
}

func entriesFrom(data []byte) []v1alpha1.DrainPlanEntry {
	var entries []v1alpha1.DrainPlanEntry
	for i := 0; i+1 < len(data) && i < 128; i += 2 {
		one := entry([]v1alpha1.PodType{"", "Default", "DaemonSet", "Static"}[data[i]%4], priorities[int(data[i+1])%len(priorities)])
		if app := int(data[i+1]) / len(priorities) % 4; app < 3 {
			one.PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": apps[app]}}
		}
		entries = append(entries, one)
	}
	return entries
}
