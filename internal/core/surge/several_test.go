package surge_test

import (
	"strings"
	"testing"
	"time"
)

// Several pods of one decision know of each other.
func TestSeveralPodsAtOnce(t *testing.T) {
	t.Parallel()
	const back = "pod-template-hash=abc" + unwanted
	second := strings.NewReplacer("web-0", "web-1", "uid-0", "uid-1")
	both := func(s *scene) *scene { return s.detached(0, 10*time.Minute).detached(1, 10*time.Minute) }
	check(t, map[string]story{
		"each that goes back has a newcomer of its own make room": {
			both(web(2)).newcomer(true).newcomer(true),
			[]string{"web-3: " + marks + makes, "web-0: " + back, "web-2: " + second.Replace(marks+makes), "web-1: " + back},
		},
		"one that makes room already does not for another": {
			both(web(2)).newcomer(true).newcomer(true).marked(3),
			[]string{"web-0: " + back, "web-2: " + strings.ReplaceAll(second.Replace(marks+makes), "cost=-1", "cost=-2"), "web-1: " + back},
		},
		"one that leaves does not stand in for the next": {
			both(web(2).evacuated(0).evacuated(1)).newcomer(true).with(func(s *scene) { s.Deployment.Spec.MinReadySeconds = 600 }),
			[]string{
				"complete +NotSurged (gaveup): Pod web-0 waits no longer: no replacement was available within 10m0s, but others are ready in its place.",
				"complete +NotSurged (gaveup): Gave up on replacing pod web-1 after 10m0s; it goes back to ReplicaSet web-abc. Not available: web-2. Look at: kubectl -n shop describe pod web-2",
				"web-1: pod-template-hash=abc +PodGivenBack: Goes back to ReplicaSet web-abc: no replacement was available within 10m0s.",
				"again in 9m0s",
			},
		},
		"a pod does not wait for itself": {
			web(1).evacuated(0).detached(0, time.Minute).with(func(s *scene) { s.Deployment.Spec.MinReadySeconds = 62 }),
			[]string{"again in 5s"},
		},
		"but for others": {
			web(1).evacuated(0).detached(0, time.Minute).newcomer(true).with(func(s *scene) { s.Deployment.Spec.MinReadySeconds = 62 }),
			[]string{"again in 2s"},
		},
	})
}
