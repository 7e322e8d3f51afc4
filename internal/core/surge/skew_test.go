package surge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/internal/core/surge"
)

func skewed(s *scene) { s.ClockSkewed = true }

func settles(s *scene) { s.Deployment.Spec.MinReadySeconds = 30 }

// While the clock is skewed no replacement is given up, and no pod is available because it
// was ready for long enough.
func TestSkewedClockGivesUpNoReplacement(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		scene *scene
		want  []string
	}{
		"no replacement is available in time":       {web(1).evacuated(0).detached(0, time.Hour).newcomer(false).with(skewed), []string{"again in 5s"}},
		"one is, ready for long enough as it seems": {web(1).evacuated(0).detached(0, time.Minute).newcomer(true).with(settles).with(skewed), []string{"again in 5s"}},
		"one is, for which being ready is enough": {
			web(1).evacuated(0).detached(0, time.Minute).newcomer(true).with(skewed),
			[]string{"complete (completed)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, summary(t, surge.Decide(test.scene.Snapshot))); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
	lines := strings.Join(summary(t, surge.Decide(web(3).evacuated(0).with(settles).with(skewed).Snapshot)), "\n")
	if !strings.Contains(lines, `"need":3`) {
		t.Errorf("decision\n%s\nwant web-0 detached with a need of all 3, as nobody knows how many are available", lines)
	}
}
