package surge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/internal/core/surge"
)

const wrongClock = "The manager's clock is wrong: set it."

func doubted(s *scene) { s.Doubt = wrongClock }

func settles(s *scene) { s.Deployment.Spec.MinReadySeconds = 30 }

// By a clock that is not believed nobody gives up on a replacement, and no pod is
// available because it was ready for long enough.
func TestADoubtfulClock(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		scene *scene
		want  []string
	}{
		"no replacement is available in time": {
			web(1).evacuated(0).detached(0, time.Hour).newcomer(false).with(doubted).with(silent),
			[]string{"report: Pod web-0 serves on, though no replacement was available within 10m0s. " + wrongClock, "again in 5m0s"},
		},
		"one is, ready for long enough as it seems": {
			web(1).evacuated(0).detached(0, time.Minute).newcomer(true).with(settles).with(doubted), []string{"again in 5s"},
		},
		"one is, for which being ready is enough": {
			web(1).evacuated(0).detached(0, time.Minute).newcomer(true).with(doubted),
			[]string{"complete (completed): Pod web-0 is replaced by web-1: available without it: 1, needed: 1."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, summary(surge.Decide(test.scene.Snapshot))); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// silent has nobody heard of us for a while.
func silent(s *scene) {
	for _, e := range s.Evacuations {
		e.Status.EvacuationProgressTimestamp = new(ago(time.Minute))
	}
}

// A pod that is detached while nobody knows how many others are available is waited
// for by all.
func TestNobodyIsTakenForUnavailableByADoubtfulClock(t *testing.T) {
	t.Parallel()
	lines := strings.Join(summary(surge.Decide(web(3).evacuated(0).with(settles).with(doubted).Snapshot)), "\n")
	if !strings.Contains(lines, `"need":3`) {
		t.Errorf("decision\n%s\nwant web-0 detached with a need of 3", lines)
	}
}
