package nodedrain

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

// machine-deletion-process: "There are various reasons why an eviction could fail".
func TestRefusals(t *testing.T) {
	tests := map[string]struct {
		answer evacuation.Outcome
		want   outline
	}{
		"The eviction would violate a PodDisruptionBudget": {
			budgeted,
			outline{Evict: []string{"a"}, Refused: []string{"a"}},
		},
		"The namespace is terminating, kube-controller-manager is responsible": {
			ending,
			outline{Evict: []string{"a"}, Refused: []string{"a"}},
		},
		"Other errors, e.g. a connection issue": {
			silent,
			outline{Evict: []string{"a"}, Refused: []string{"a"}, Failed: true},
		},
		"more than one budget never passes by itself": {
			several,
			outline{Evict: []string{"a"}, Refused: []string{"a"}, Failed: true},
		},
		"a locked budget is unlocked some day": {
			evacuation.Outcome{Result: evacuation.Locked, Type: v1alpha1.BlockerPDBLocked, Message: "locked"},
			outline{Evict: []string{"a"}, Refused: []string{"a"}},
		},
		"the API server has too much to do": {
			throttled,
			outline{Evict: []string{"a"}, Refused: []string{"a"}},
		},
		"the API server lost a race": {
			contended,
			outline{Evict: []string{"a"}, Refused: []string{"a"}},
		},
		"an answer that is no refusal": {
			evacuation.Outcome{Result: evacuation.Evicted},
			outline{Evict: []string{"a"}},
		},
		"the pod was gone a moment ago": {
			evacuation.Outcome{Result: evacuation.Gone},
			outline{Evict: []string{"a"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, answered(test.answer, snapshot(pod("a"))), test.want)
		})
	}
}

// A refusal is about a pod, not about a name, and only while it is to be evicted.
func TestRefusalsOfOthersAreIgnored(t *testing.T) {
	tests := map[string]struct {
		pods []*corev1.Pod
		uid  types.UID
		want outline
	}{
		"of an earlier pod of the name": {
			[]*corev1.Pod{pod("a")},
			"uid-of-an-earlier-a",
			outline{Evict: []string{"a"}},
		},
		"of a pod that terminates by now": {
			[]*corev1.Pod{terminating(time.Minute, pod("a"))},
			"uid-of-a",
			outline{Terminating: []string{"a"}},
		},
		"of a pod that is skipped by now": {
			[]*corev1.Pod{skipped(pod("a"))},
			"uid-of-a",
			outline{Done: true, Skipped: []string{"a"}},
		},
		"of a pod that has a higher order by now": {
			[]*corev1.Pod{ordered(1, pod("a")), pod("b")},
			"uid-of-a",
			outline{Evict: []string{"b"}, Later: []string{"a"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := snapshot(test.pods...)
			s.Answers[test.uid] = several
			check(t, s, test.want)
		})
	}
}
