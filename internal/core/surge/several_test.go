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
			[]string{"web-3: " + marks, "web-0: " + back, "web-2: " + second.Replace(marks), "web-1: " + back},
		},
		"one that makes room already does not for another": {
			both(web(2)).newcomer(true).newcomer(true).marked(3),
			[]string{"web-0: " + back, "web-2: " + strings.ReplaceAll(second.Replace(marks), "cost=-1", "cost=-2"), "web-1: " + back},
		},
		"one that leaves does not stand in for the next": {
			both(web(2).evacuated(0).evacuated(1)).newcomer(true).with(func(s *scene) { s.Deployment.Spec.MinReadySeconds = 600 }),
			[]string{
				"complete +NotSurged (gaveup)",
				"complete +NotSurged (gaveup)",
				"web-1: pod-template-hash=abc +PodGivenBack",
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
