package evacuation_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/test/difference"
)

// naming has the pod name a responder.
func naming(s *evacuation.Snapshot) {
	s.Pod.Spec.EvictionResponders = []corev1.EvictionResponder{{Name: "example.com/leader", Priority: new(int32(20000))}}
}

// While a responder moves a pod, whoever evicts it waits and is told for whom; its evacuators
// are not asked besides. Words of others come last, in one line, and not all of them.
func TestACallWaitsForAResponder(t *testing.T) {
	t.Parallel()
	const turn = "eviction in progress: responder example.com/leader has its turn to move pod web-0 (Eviction pod-1-web-0); try again until the pod is gone"
	leader := evacuation.Responding{Eviction: "pod-1-web-0", Responder: "example.com/leader"}
	says := func(words string) evacuation.Responding {
		return evacuation.Responding{Eviction: "pod-1-web-0", Responder: "example.com/leader", Says: words}
	}
	admitted := evacuation.Verdict{Admitted: true}
	for name, tc := range map[string]struct {
		snapshot evacuation.Snapshot
		by       evacuation.Responding
		as       string
		want     evacuation.Verdict
	}{
		"a responder has its turn":         {of(barePod(), noEvacuation, naming), leader, "", evacuation.Verdict{Message: turn}},
		"it says something":                {of(barePod(), noEvacuation, naming), says("moving\nshards"), "", evacuation.Verdict{Message: turn + ". It says: moving shards"}},
		"it says much":                     {of(barePod(), noEvacuation, naming), says(strings.Repeat("x", 4000)), "", evacuation.Verdict{Message: turn + ". It says: " + strings.Repeat("x", 297) + "…"}},
		"there are evacuators as well":     {of(webPod(), noEvacuation, naming), leader, "", evacuation.Verdict{Message: turn}},
		"its caller waits for them":        {of(webPod(), naming, called(-time.Minute)), leader, "", evacuation.Verdict{Message: turn, Attempt: nowText}},
		"nobody has a turn":                {of(barePod(), noEvacuation, naming), evacuation.Responding{}, "", admitted},
		"it evicts itself":                 {of(barePod(), noEvacuation, naming), leader, "example.com/leader", admitted},
		"another responder evicts":         {of(barePod(), noEvacuation, naming), leader, "example.com/next", evacuation.Verdict{Message: turn}},
		"the pod terminates":               {of(barePod(), noEvacuation, naming, terminating), leader, "", admitted},
		"the pod names nobody":             {of(barePod(), noEvacuation), leader, "", admitted},
		"nobody knows, of a pod of no one": {of(barePod(), noEvacuation), evacuation.Responding{Unknown: "etcd is gone"}, "", admitted},
		"nobody knows": {
			of(barePod(), noEvacuation, naming),
			evacuation.Responding{Unknown: "etcd is gone"},
			"example.com/leader",
			evacuation.Verdict{Message: "it is not known whether a responder moves pod web-0: etcd is gone; try again"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := evacuation.Admit(evacuation.Call{Snapshot: tc.snapshot, Responding: tc.by, As: tc.as})
			difference.None(t, "verdict", tc.want, got)
		})
	}
}
