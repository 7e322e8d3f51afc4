package bridge_test

import (
	"strings"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/bridge"
)

// holds is what stops a drain, and what no longer holds the Machine.
var holds = map[string]struct {
	change func(*testing.T, *bridge.Snapshot)
	want   string
}{
	"one whose instance is gone": {
		during(5, func(s *bridge.Snapshot) { s.Instance.Gone = true }),
		"pause, take; BridgeSkipped",
	},
	"one whose instance is being deleted": {
		func(_ *testing.T, s *bridge.Snapshot) { s.Instance.Deleting = true },
		"take; BridgeSkipped",
	},
	"also before Cluster API comes to our hook": {
		func(_ *testing.T, s *bridge.Snapshot) { s.Machine.Waits, s.Instance.Deleting = false, true },
		"take; BridgeSkipped",
	},
	"an instance that cannot be read is there, unless Cluster API says that it is gone": {
		during(5, func(s *bridge.Snapshot) { s.Instance.Unread = "forbidden" }),
		"keep; BridgeDraining",
	},
	"as it does here": {
		func(t *testing.T, s *bridge.Snapshot) { ready(t, s, "Deleted"); s.Instance.Unread = "forbidden" },
		"take; BridgeSkipped",
	},
	"or here": {
		func(t *testing.T, s *bridge.Snapshot) { ready(t, s, "DoesNotExist"); s.Instance.Unread = "forbidden" },
		"take; BridgeSkipped",
	},
	"which is not believed of one that was read": {
		func(t *testing.T, s *bridge.Snapshot) { ready(t, s, "Deleted") }, "create cluster-api.infra.worker-1, keep",
	},
	"one that is not ready is drained": {
		func(t *testing.T, s *bridge.Snapshot) { ready(t, s, "NotReady"); s.Instance.Unread = "forbidden" },
		"create cluster-api.infra.worker-1, keep",
	},
	"one whose node is not known yet": {
		func(_ *testing.T, s *bridge.Snapshot) { s.Machine.Node, s.Machine.Waits = "", false }, "keep",
	},
	"a pause in the middle stops the drain": {
		during(5, func(s *bridge.Snapshot) { s.Machine.Paused = true }),
		"pause, keep; BridgeWaiting",
	},
	"and its end goes on with it": {
		func(t *testing.T, s *bridge.Snapshot) { *s = begun(t, *s, 5); pause(t, s) },
		"resume, keep; BridgeDraining",
	},
	"one that is paused stays so": {
		func(t *testing.T, s *bridge.Snapshot) {
			*s = begun(t, *s, 5)
			pause(t, s)
			s.Machine.Paused = true
		}, "keep; BridgeWaiting",
	},
	"a hook of others in the middle stops the drain": {
		during(5, func(s *bridge.Snapshot) { s.Machine.Others = []bridge.Hook{{Name: "backup", Owner: "db-team"}} }), "pause, keep; BridgeWaiting",
	},
	"a Cluster that cannot be read may be paused": {
		during(5, func(s *bridge.Snapshot) {
			s.Around, s.AroundUnread = nil, "Cluster infra/prod could not be read: timeout"
		}), "pause, keep; BridgeWaiting",
	},
	"one that is excluded in the middle": {
		during(5, func(s *bridge.Snapshot) { s.Machine.Excluded = v1alpha1.ExcludeNodeDrainingAnnotation }), "pause, take; BridgeSkipped",
	},
	"the beginning of a drain is noted, as its time may be limited in the middle": {
		func(_ *testing.T, s *bridge.Snapshot) { s.Machine.DrainStart = time.Time{} }, "begin",
	},
	"not while others are waited for": {
		func(_ *testing.T, s *bridge.Snapshot) {
			s.Machine.DrainStart, s.Machine.Others = time.Time{}, []bridge.Hook{{Name: "backup", Owner: "db-team"}}
		}, "keep; BridgeWaiting",
	},
	"and is not begun by a clock that is skewed": {
		func(_ *testing.T, s *bridge.Snapshot) { s.Machine.DrainStart, s.ClockSkewed = time.Time{}, true },
		"create cluster-api.infra.worker-1, keep",
	},
}

func TestWhatHoldsAMachine(t *testing.T) {
	t.Parallel()
	checkAll(t, holds)
}

// ready has Cluster API say why the instance is not ready.
func ready(t *testing.T, s *bridge.Snapshot, reason string) {
	t.Helper()
	s.Machine = read(t, strings.Replace(waiting, "conditions: [", "conditions: [{type: InfrastructureReady, status: \"False\", reason: "+reason+"}, ", 1))
}

// pause has the maintenance be paused.
func pause(t *testing.T, s *bridge.Snapshot) {
	t.Helper()
	now := *s
	now.Machine = read(t, waiting)
	now.Machine.Paused = true
	if s.Maintenance = bridge.Decide(now).Update; s.Maintenance == nil {
		t.Fatal("the maintenance is not paused")
	}
}

// decisions are by what happens to the Machine of world.
type decisions = map[string]struct {
	change func(*testing.T, *bridge.Snapshot)
	want   string
}

// checkAll checks what is decided, in words.
func checkAll(t *testing.T, all decisions) {
	t.Helper()
	for name, test := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := world(t)
			if test.change != nil {
				test.change(t, &s)
			}
			if got := told(t, bridge.Decide(s)); got != test.want {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
		})
	}
}

// When a drain begins is noted on the Machine, and goes with the hook.
func TestTheBeginningOfADrainIsNoted(t *testing.T) {
	t.Parallel()
	begun, err := bridge.Change(object(t, waiting), bridge.Begin, now)
	if err != nil {
		t.Fatal(err)
	}
	if m := bridge.Read(begun); !m.DrainStart.Equal(now) || !m.Hooked {
		t.Errorf("the drain began at %s, and the Machine has the hook: %v", m.DrainStart, m.Hooked)
	}
	over, err := bridge.Change(begun, bridge.Finish, now)
	if err != nil {
		t.Fatal(err)
	}
	if m := bridge.Read(over); !m.DrainStart.IsZero() || m.Hooked {
		t.Errorf("the drain began at %s, and the Machine has the hook: %v", m.DrainStart, m.Hooked)
	}
}
