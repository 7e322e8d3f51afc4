package drainplan_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
)

func asks(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: values}
}

func selecting(priority int32, requirements ...metav1.LabelSelectorRequirement) v1alpha1.DrainPlanEntry {
	return v1alpha1.DrainPlanEntry{PodPriority: priority, PodSelector: &metav1.LabelSelector{MatchExpressions: requirements}}
}

// The same pods may be selected in several ways, and by several entries together.
func TestSetsAreComparedBySelection(t *testing.T) {
	in, notIn, has, lacks := metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist
	type entries = []v1alpha1.DrainPlanEntry
	for name, test := range map[string]struct {
		narrow, wide entries
		want         bool
	}{
		"one value":                     {entries{selecting(7, asks("app", in, "x"))}, entries{entryFor("x", "", 7)}, true},
		"one value, the other way":      {entries{entryFor("x", "", 7)}, entries{selecting(7, asks("app", in, "x"))}, true},
		"twice the same":                {entries{entryFor("x", "", 7)}, entries{selecting(7, asks("app", in, "x"), asks("app", in, "x", "y"))}, true},
		"one of two values":             {entries{entryFor("x", "", 7)}, entries{selecting(7, asks("app", in, "x", "y"))}, true},
		"two values are more":           {entries{selecting(7, asks("app", in, "x", "y"))}, entries{entryFor("x", "", 7)}, false},
		"two values by two entries":     {entries{selecting(7, asks("app", in, "x", "y"))}, entries{entryFor("x", "", 7), entryFor("y", "", 8)}, true},
		"one of them comes later":       {entries{selecting(7, asks("app", in, "x", "y"))}, entries{entryFor("x", "", 7), entryFor("y", "", 6)}, false},
		"of another type":               {entries{entryFor("x", "", 7)}, entries{entryFor("x", "DaemonSet", 7)}, false},
		"a value and all others":        {entries{entry("", 7)}, entries{entryFor("x", "", 7), selecting(7, asks("app", notIn, "x"))}, true},
		"a label and none":              {entries{entry("", 7)}, entries{selecting(7, asks("app", has)), selecting(7, asks("app", lacks))}, true},
		"a label is not all":            {entries{entry("", 7)}, entries{selecting(7, asks("app", has))}, false},
		"not a value, also without any": {entries{selecting(7, asks("app", lacks))}, entries{selecting(7, asks("app", notIn, "x"))}, true},
		"another label as well":         {entries{selecting(7, asks("app", in, "x"), asks("tier", has))}, entries{entryFor("x", "", 7)}, true},
		"another label as well, wider":  {entries{entryFor("x", "", 7)}, entries{selecting(7, asks("app", in, "x"), asks("tier", has))}, false},
		"two labels cut up": {
			entries{selecting(7, asks("app", in, "x", "y"), asks("tier", in, "a", "b"))},
			entries{
				selecting(7, asks("app", in, "x"), asks("tier", in, "a")), selecting(7, asks("app", in, "y")),
				selecting(7, asks("tier", notIn, "a")),
			},
			true,
		},
		"what no pod can be": {entries{selecting(9, asks("app", has), asks("app", lacks))}, entries{entryFor("x", "", 9)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := len(setOf(test.narrow).NotCoveredBy(setOf(test.wide))) == 0; got != test.want {
				t.Errorf("%s is within %s: %v, want %v", setOf(test.narrow).Key(), setOf(test.wide).Key(), got, test.want)
			}
		})
	}
}

// Selectors that have to be cut into too many parts are not compared for ever.
func TestAComparisonOfManySelectorsEnds(t *testing.T) {
	var wide []v1alpha1.DrainPlanEntry
	for range 64 {
		wide = append(wide, v1alpha1.DrainPlanEntry{PodPriority: 7, PodSelector: &metav1.LabelSelector{}})
		for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			one := asks(key, metav1.LabelSelectorOpNotIn, string(rune('a'+len(wide))))
			at := len(wide) - 1
			wide[at].PodSelector.MatchExpressions = append(wide[at].PodSelector.MatchExpressions, one)
		}
	}
	if beyond := setOf([]v1alpha1.DrainPlanEntry{entry("", 7)}).NotCoveredBy(setOf(wide)); len(beyond) != 1 {
		t.Errorf("beyond are %v, want the entry that could not be compared", beyond)
	}
}

func TestASetKeepsTheWidestOfItsEntries(t *testing.T) {
	in := metav1.LabelSelectorOpIn
	both := selecting(7, asks("app", in, "y", "x"))
	set := setOf([]v1alpha1.DrainPlanEntry{entryFor("x", "", 7), both, selecting(6, asks("app", in, "y")), entryFor("z", "", 6)})
	if got, want := set.Key(), "Default 6 (app=z); Default 7 (app in (x,y))"; got != want {
		t.Errorf("the set is %s, want %s", got, want)
	}
	if !set.AtTop(drainplan.Parse([]v1alpha1.DrainPlanEntry{entryFor("x", "", 7)})[0]) {
		t.Error("an entry of its greatest pods is not at its top")
	}
	known := drainplan.Parse([]v1alpha1.DrainPlanEntry{entryFor("x", "", 5), selecting(3, asks("app", in, "x")), entryFor("z", "", 6)})
	if diff := cmp.Diff([]string{"Default 7 app=x", "Default 6 app=z", "Default 7 app in (x,y)"}, short(set.Render(known))); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// someSelectors are selectors in all words.
func someSelectors(random *rand.Rand) []v1alpha1.DrainPlanEntry {
	var entries []v1alpha1.DrainPlanEntry
	for range random.IntN(5) {
		var requirements []metav1.LabelSelectorRequirement
		for range random.IntN(3) {
			one := asks([]string{"app", "tier"}[random.IntN(2)], []metav1.LabelSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist"}[random.IntN(4)])
			if one.Operator == "In" || one.Operator == "NotIn" {
				one.Values = [][]string{{"x"}, {"y"}, {"x", "y"}, {"y", "z", "x"}}[random.IntN(4)]
			}
			requirements = append(requirements, one)
		}
		entries = append(entries, selecting([]int32{7, 9}[random.IntN(2)], requirements...))
	}
	return entries
}

// everyLabel is a pod for each pair of labels that selectors can tell apart.
func everyLabel() []*corev1.Pod {
	var pods []*corev1.Pod
	label := func(p *corev1.Pod, key, value string) {
		delete(p.Labels, key)
		if value != "" {
			p.Labels[key] = value
		}
	}
	values := []string{"", "x", "y", "z", "other"}
	for i := range len(values) * len(values) {
		for _, priority := range []int32{7, 9} {
			one := pod(priority, "")
			label(one, "app", values[i%len(values)])
			label(one, "tier", values[i/len(values)])
			pods = append(pods, one)
		}
	}
	return pods
}

// Whether one set is beyond another one is asked of every pod that selectors can tell apart.
func TestNotCoveredByAgreesWithPods(t *testing.T) {
	pods := everyLabel()
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 5))
		a, b := someSelectors(random), someSelectors(random)
		want := slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return bruteForce(a, p) && !bruteForce(b, p) })
		if got := len(setOf(a).NotCoveredBy(setOf(b))) > 0; got != want {
			t.Fatalf("seed %d: %s is beyond %s: %v, want %v", seed, setOf(a).Key(), setOf(b).Key(), got, want)
		}
		if back := setOf(setOf(a).Render(drainplan.Parse(b))); !back.Equal(setOf(a)) {
			t.Fatalf("seed %d: %s is read back as %s", seed, setOf(a).Key(), back.Key())
		}
		joined := drainplan.Join(setOf(a), setOf(b))
		if !joined.Equal(drainplan.Join(setOf(b), setOf(a))) || !joined.Equal(drainplan.Join(joined, setOf(b))) {
			t.Fatalf("seed %d: join of %s and %s is %s", seed, setOf(a).Key(), setOf(b).Key(), joined.Key())
		}
	}
}
