package nodeshutdown

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
)

// Priorities that are staged in the kubelet are staged in the same way here.
func TestPodsLeaveInTheStepsOfTheKubelet(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0,1000,100000": "-2147483648 -5 0 999|1000 99999|100000 1000000000",
		"100000,0,1000": "-2147483648 -5 0 999|1000 99999|100000 1000000000",
		"-5,0":          "-2147483648 -6 -5 -1|0 999 1000 1000000000",
		"7":             "-2147483648 0 1000000000",
		"0,1000000001":  "0 1000000000|1000000001 2000000000",
	} {
		priorities, err := ParsePriorities(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, podType := range []v1alpha1.PodType{v1alpha1.PodTypeDefault, v1alpha1.PodTypeDaemonSet, v1alpha1.PodTypeStatic} {
			plan, err := drainplan.New(Options{Priorities: priorities}.plan(), podType)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if got := steps(plan, want); got != want {
				t.Errorf("with priorities %s pods leave as %s, want %s", text, got, want)
			}
		}
	}
}

func steps(plan drainplan.Plan, text string) string {
	got, last := "", -1
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '|' }) {
		priority, _ := strconv.ParseInt(word, 10, 32)
		pod := &corev1.Pod{Spec: corev1.PodSpec{Priority: ptr.To(int32(priority))}}
		switch step := plan.First(drainplan.SubjectOf(pod), plan.Len()); {
		case got == "":
			got, last = word, step
		case step == last:
			got += " " + word
		default:
			got, last = got+"|"+word, step
		}
	}
	return got
}

// As many steps as can be asked for fit into a plan with the steps of every drain.
func TestTheMostPrioritiesFitIntoAPlan(t *testing.T) {
	t.Parallel()
	var priorities []int32
	for i := range int32(maxPriorities) {
		priorities = append(priorities, i*10)
	}
	plan := Options{Priorities: priorities}.plan()
	if !slices.Contains(plan, v1alpha1.DrainPlanEntry{PodPriority: 2147483647, PodType: v1alpha1.PodTypeStatic}) || len(plan) != 12+3*(maxPriorities-1) {
		t.Errorf("the plan has %d entries, want those of every drain, too", len(plan))
	}
}

func TestPrioritiesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "0,", "0,0", "5,0,5", "high", "2147483648", "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"} {
		if got, err := ParsePriorities(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}
