package bridge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	core "ebbtide.dev/ebbtide/internal/core/bridge"
)

// An alert goes by how long a Machine waits for us and for nobody else, whoever was waited
// for before, and whichever manager asks.
func TestTheOldestWaitIsShown(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := began.Add(time.Hour)
	m := newMetrics(prometheus.NewRegistry(), kindsOf(core.Names{core.ClusterAPI, core.OpenShift}), func() time.Time { return now })
	q := func(name string) request { return requestOf(core.ClusterAPI, "infra", name)[0] }
	waits := core.Machine{Deleting: true, Hooked: true, Waits: true, WaitsSince: began}
	backedUp := waits
	backedUp.Others = []core.Hook{{Name: "backup", Owner: "db-team"}}
	before := waits
	before.Waits = false

	shows(t, m, "with no Machine", 0, 0)
	m.note(q("early"), &before, now)
	m.note(q("backed-up"), &backedUp, now)
	shows(t, m, "while nobody waits for us alone", 0, 0)

	m.note(q("backed-up"), &waits, now)
	now = now.Add(time.Minute)
	shows(t, m, "a minute after the backup of an hour", 1, time.Minute)

	m.note(q("seen-late"), &waits, now)
	m.note(q("seen-late"), &waits, now.Add(time.Second))
	shows(t, m, "by a manager that came later", 2, time.Hour+time.Minute)

	released := waits
	released.Hooked = false
	m.note(q("seen-late"), &released, now)
	m.note(q("backed-up"), nil, now)
	shows(t, m, "after they were let go", 0, 0)
	if len(m.at) > 0 {
		t.Errorf("%v is remembered", m.at)
	}
}

func shows(t *testing.T, m *metrics, when string, machines int, oldest time.Duration) {
	t.Helper()
	want := fmt.Sprintf(`
# HELP ebbtide_bridge_oldest_wait_seconds Longest time that the deletion of a Machine of another controller has waited for Ebbtide; 0 if none waits.
# TYPE ebbtide_bridge_oldest_wait_seconds gauge
ebbtide_bridge_oldest_wait_seconds{bridge="cluster-api"} %v
ebbtide_bridge_oldest_wait_seconds{bridge="openshift"} 0
# HELP ebbtide_bridge_waiting_machines Machines of another controller whose deletion waits only for Ebbtide.
# TYPE ebbtide_bridge_waiting_machines gauge
ebbtide_bridge_waiting_machines{bridge="cluster-api"} %d
ebbtide_bridge_waiting_machines{bridge="openshift"} 0
`, oldest.Seconds(), machines)
	if err := testutil.CollectAndCompare(m, strings.NewReader(want)); err != nil {
		t.Errorf("%s: %v", when, err)
	}
}
