package drainplan_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
	"ebbtide.dev/ebbtide/test/golden"
)

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

func entry(podType v1alpha1.PodType, priority int32) v1alpha1.DrainPlanEntry {
	return v1alpha1.DrainPlanEntry{PodType: podType, PodPriority: priority}
}

func entryFor(app string, podType v1alpha1.PodType, priority int32) v1alpha1.DrainPlanEntry {
	return v1alpha1.DrainPlanEntry{
		PodType: podType, PodPriority: priority,
		PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
	}
}

// short writes entries in one line each, defaults as they are in the API.
func short(entries []v1alpha1.DrainPlanEntry) []string {
	var all []string
	for _, one := range entries {
		word := fmt.Sprintf("%s %d", one.PodType, one.PodPriority)
		if one.PodSelector != nil {
			word += " " + metav1.FormatLabelSelector(one.PodSelector)
		}
		all = append(all, word)
	}
	return all
}

func pod(priority int32, app string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Priority: &priority},
	}
}

func daemonSetPod(priority int32, app string) *corev1.Pod {
	controller := true
	p := pod(priority, app)
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Controller: &controller}}
	return p
}

func TestNormalise(t *testing.T) {
	defaults := []string{
		"Default 1000000000", "Default 2000000000", "Default 2000001000", "Default 2147483647",
		"DaemonSet 1000000000", "DaemonSet 2000000000", "DaemonSet 2000001000", "DaemonSet 2147483647",
		"Static 1000000000", "Static 2000000000", "Static 2000001000", "Static 2147483647",
	}
	for name, test := range map[string]struct {
		plan []v1alpha1.DrainPlanEntry
		want []string
	}{
		"nothing becomes the twelve entries": {nil, defaults},
		"the twelve entries stay":            {drainplan.Defaults(), defaults},
		"a plan as validation knows it": {
			[]v1alpha1.DrainPlanEntry{entry("Default", 5000), entry("DaemonSet", 3000), entry("Static", 2147483647)},
			append(append([]string{"Default 5000"}, defaults[:4]...), append([]string{"DaemonSet 3000"}, defaults[4:]...)...),
		},
		"an unordered plan with duplicates, written before validation": {
			[]v1alpha1.DrainPlanEntry{
				entry("Static", -1), entry("", 7), entry("Default", 7), entryFor("b", "Default", 7), entryFor("a", "", 7),
				entryFor("b", "", 7),
				{PodPriority: 7, PodSelector: &metav1.LabelSelector{}},
			},
			append(append([]string{"Default 7 app=b", "Default 7 app=a", "Default 7"}, defaults[:8]...), append([]string{"Static -1"}, defaults[8:]...)...),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := drainplan.Normalise(test.plan)
			if diff := cmp.Diff(test.want, short(got)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(got, drainplan.Normalise(got)); diff != "" {
				t.Errorf("normalising again changes it:\n%s", diff)
			}
		})
	}
}

func TestInvalidPlansNameTheField(t *testing.T) {
	broken := entryFor("a", "Default", 1)
	broken.PodSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near", Values: []string{"b"}}}
	for name, test := range map[string]struct {
		plan  []v1alpha1.DrainPlanEntry
		depth v1alpha1.PodType
	}{
		"selector": {[]v1alpha1.DrainPlanEntry{entry("Static", 1), broken}, ""},
		"pod type": {[]v1alpha1.DrainPlanEntry{entry("Sidecar", 1)}, ""},
		"depth":    {nil, "Abyss"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := drainplan.New(test.plan, test.depth)
			if err == nil {
				t.Fatal("the plan is taken")
			}
			golden.Message(t, err.Error())
		})
	}
}

func TestPlanEndsAtItsDepth(t *testing.T) {
	for depth, want := range map[v1alpha1.PodType]string{
		"":          "Static 2147483647",
		"Static":    "Static 2147483647",
		"DaemonSet": "DaemonSet 2147483647",
		"Default":   "Default 2147483647",
	} {
		plan, err := drainplan.New(nil, depth)
		if err != nil {
			t.Fatal(err)
		}
		if got := plan.Entry(plan.Len() - 1).String(); got != want {
			t.Errorf("depth %q: the plan ends with %s, want %s", depth, got, want)
		}
	}
}

func TestFirst(t *testing.T) {
	plan, err := drainplan.New([]v1alpha1.DrainPlanEntry{entry("Default", 1000), entryFor("postgres", "Default", 2000)}, "DaemonSet")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		pod         *corev1.Pod
		limit, want int
	}{
		"the least priority":                  {pod(-2147483648, "web"), plan.Len(), 0},
		"at the priority":                     {pod(1000, "postgres"), plan.Len(), 0},
		"above it, with the label":            {pod(1001, "postgres"), plan.Len(), 1},
		"above it, without":                   {pod(1001, "web"), plan.Len(), 2},
		"above it, without, below the limit":  {pod(1001, "web"), 2, 2},
		"a DaemonSet pod comes after Default": {daemonSetPod(0, "web"), plan.Len(), 6},
	} {
		if got := plan.First(drainplan.SubjectOf(test.pod), test.limit); got != test.want {
			t.Errorf("%s: first position %d, want %d", name, got, test.want)
		}
	}
}

func TestCovers(t *testing.T) {
	set := drainplan.NewSet(drainplan.Parse([]v1alpha1.DrainPlanEntry{
		entry("Default", 1000), entryFor("postgres", "Default", 2000), entryFor("web", "DaemonSet", 10),
	})...)
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"at the priority":                  {pod(1000, "web"), true},
		"above the priority":               {pod(1001, "web"), false},
		"above, with the label":            {pod(2000, "postgres"), true},
		"above that too":                   {pod(2001, "postgres"), false},
		"DaemonSet pod with the label":     {daemonSetPod(10, "web"), true},
		"DaemonSet pod without the label":  {daemonSetPod(0, "postgres"), false},
		"DaemonSet pod above the priority": {daemonSetPod(11, "web"), false},
		"a pod without priority has 0":     {&corev1.Pod{}, true},
		"the highest priority":             {pod(2147483647, ""), false},
	} {
		if got := set.Covers(test.pod); got != test.want {
			t.Errorf("%s: covered is %v, want %v", name, got, test.want)
		}
	}
	if (drainplan.Set{}).Covers(&corev1.Pod{}) {
		t.Error("an empty set covers a pod")
	}
}

// The section "PodTypes and Label Selectors Progression" of KEP-4212, with the
// entries that are always added.
func TestProgression(t *testing.T) {
	plan, err := drainplan.New([]v1alpha1.DrainPlanEntry{
		entry("Default", 1000),
		entryFor("postgres", "Default", 2000),
		entry("Default", 2147483647),
		entry("DaemonSet", 1000),
		entry("DaemonSet", 2147483647),
		entry("Static", 2147483647),
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range plan.Len() {
		got = append(got, strings.Join(short(plan.Cum(i).Render(plan.Entries())), ", "))
	}
	const all = "Default 2147483647, Default 2147483647 app=postgres"
	want := []string{
		"Default 1000, Default 1000 app=postgres",
		"Default 1000, Default 2000 app=postgres",
		"Default 1000000000, Default 1000000000 app=postgres",
		"Default 2000000000, Default 2000000000 app=postgres",
		"Default 2000001000, Default 2000001000 app=postgres",
		all,
		all + ", DaemonSet 1000",
		all + ", DaemonSet 1000000000",
		all + ", DaemonSet 2000000000",
		all + ", DaemonSet 2000001000",
		all + ", DaemonSet 2147483647",
		all + ", DaemonSet 2147483647, Static 1000000000",
		all + ", DaemonSet 2147483647, Static 2000000000",
		all + ", DaemonSet 2147483647, Static 2000001000",
		all + ", DaemonSet 2147483647, Static 2147483647",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("drainTargets (-want +got):\n%s", diff)
	}
}

func TestASelectorThatIsNotReachedHasNoLine(t *testing.T) {
	plan, err := drainplan.New([]v1alpha1.DrainPlanEntry{entryFor("a", "Default", 10), entryFor("b", "Default", 20)}, "")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"Default 10 app=a", "Default 10 app=a, Default 20 app=b"} {
		if got := strings.Join(short(plan.Cum(i).Render(plan.Entries())), ", "); got != want {
			t.Errorf("at entry %d: %s, want %s", i, got, want)
		}
	}
}

func TestEqualSelectorsAreOneLine(t *testing.T) {
	twoWays := func(values ...string) v1alpha1.DrainPlanEntry {
		return v1alpha1.DrainPlanEntry{PodPriority: 7, PodSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: values}, {Key: "old", Operator: metav1.LabelSelectorOpDoesNotExist},
		}}}
	}
	a := drainplan.NewSet(drainplan.Parse([]v1alpha1.DrainPlanEntry{twoWays("x", "y")})...)
	b := drainplan.NewSet(drainplan.Parse([]v1alpha1.DrainPlanEntry{twoWays("y", "x")})...)
	if !a.Equal(b) || !drainplan.Join(a, b).Equal(a) {
		t.Errorf("%s and %s are not the same", a.Key(), b.Key())
	}
}
