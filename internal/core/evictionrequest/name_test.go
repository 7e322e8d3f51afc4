package evictionrequest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

// Names are ones that the API server takes, however long those of pods are.
func TestNamesThatAreTooLong(t *testing.T) {
	t.Parallel()
	for _, length := range []int{1, 239, 240, 241, 246, 247, 253} {
		s := newStage(t)
		name := strings.Repeat("a.", 126) + "a"
		pod := s.pod(strings.TrimRight(name[:length], "."))
		s.ask("example.com/a", pod)
		s.settle()
		if faults := validation.IsDNS1123Subdomain(s.evictions[0].Name); len(faults) > 0 {
			t.Errorf("a pod with a name of %d characters has the Eviction %q: %v", length, s.evictions[0].Name, faults)
		}
	}
	s := newStage(t)
	twins := []*corev1.Pod{s.pod(strings.Repeat("a", 252) + "b"), s.pod(strings.Repeat("a", 252) + "c")}
	for _, pod := range twins {
		s.ask("example.com/"+pod.Name[252:], pod)
	}
	s.settle()
	if len(s.evictions) != 2 || s.evictions[0].Name == s.evictions[1].Name || evictionrequest.Stem(twins[0].Name) != evictionrequest.Stem(twins[1].Name) {
		t.Errorf("pods with names that begin alike have the Evictions %v", s.evictions)
	}
}

// A name with a number that nobody can count is left alone.
func TestNumbersOfOthersDoNotCount(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.ask("example.com/a", s.pod("web-0"))
	other := s.pod("web-0-x")
	for _, name := range []string{"pod-99999999999999999999-web-0", "pod-1000000-web-0", "pod--5-web-0", "pod-web-0", "pod-1-web-0"} {
		e := &lifecyclev1alpha1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: s.uid(), Generation: 1}}
		e.Spec.Target.Pod = &lifecyclev1alpha1.EvictionPodReference{Name: other.Name, UID: other.UID}
		s.evictions = append(s.evictions, e)
	}
	s.settle()
	s.expect("turns", turns(s.eviction("pod-2-web-0")), evictor+" Active")
}

// FuzzNames makes Evictions of pods of any names, beside those that somebody else has made:
// each has a name of its own that the API server takes.
func FuzzNames(f *testing.F) {
	f.Add("web-0", "web-0-1", "pod-7-web-0", 3)
	f.Add(strings.Repeat("a.", 126)+"a", strings.Repeat("a.", 126)+"b", "pod-999999-"+strings.Repeat("a.", 120), 200)
	f.Fuzz(func(t *testing.T, first, second, others string, length int) {
		names := slices.DeleteFunc([]string{first, second, first[:min(max(length, 0), len(first))]}, func(name string) bool { return !valid(name) })
		slices.Sort(names)
		names = slices.Compact(names)
		s := newStage(t)
		e := &lifecyclev1alpha1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: others, UID: s.uid(), Generation: 1}}
		e.Spec.Target.Pod = &lifecyclev1alpha1.EvictionPodReference{Name: first, UID: s.uid()}
		s.evictions = append(s.evictions, e)
		for n, name := range names {
			s.ask(fmt.Sprintf("example.com/%d", n), s.pod(name))
		}
		s.settle()
		s.areNamed(names, others)
	})
}

func valid(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

// areNamed checks that each pod has an Eviction besides the first one, which is named otherwise.
func (s *stage) areNamed(pods []string, first string) {
	s.t.Helper()
	if len(s.evictions) != len(pods)+1 {
		s.t.Errorf("%d pods have %d Evictions besides the one that was there", len(pods), len(s.evictions)-1)
	}
	taken := map[string]bool{first: true}
	for _, e := range s.evictions[1:] {
		if taken[e.Name] || !valid(e.Name) {
			s.t.Errorf("the Eviction of %q is named %q, which is taken (%t) or invalid", e.Spec.Target.Pod.Name, e.Name, taken[e.Name])
		}
		taken[e.Name] = true
	}
}

// An Eviction is found by the pods that its name is for, whoever it evicts.
func TestForWhichPodANameIs(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"pod-1-web-0": "web-0", "pod-12345678-a.b": "a.b", "pod--1-web": "", "pod-x-web": "", "pod-1": "", "theirs": "", "pod-1-": "",
		"pod-7-" + strings.Repeat("a", 247): strings.Repeat("a", 241),
	} {
		if got := evictionrequest.NameStem(name); got != want {
			t.Errorf("%q is for pods with %q, want %q", name, got, want)
		}
	}
}
