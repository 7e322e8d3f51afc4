package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// line is one line of an audit log; received and answered are in milliseconds after noon.
func line(agent, verb, object string, code, received, answered int) string {
	return fmt.Sprintf(`{"stage":"ResponseComplete","verb":%q,"userAgent":"%s/v0 (linux/amd64)","objectRef":%s,"responseStatus":{"code":%d},`+
		`"requestReceivedTimestamp":%q,"stageTimestamp":%q}`+"\n",
		verb, agent, object, code, at(received), at(answered))
}

func at(milliseconds int) string {
	return noon.Add(time.Duration(milliseconds) * time.Millisecond).Format("2006-01-02T15:04:05.000000Z")
}

const (
	budget       = `{"resource":"poddisruptionbudgets","namespace":"a","name":"b"}`
	budgetStatus = `{"resource":"poddisruptionbudgets","namespace":"a","name":"b","subresource":"status"}`
	eviction     = `{"resource":"pods","namespace":"a","name":"p","subresource":"eviction"}`
	otherPod     = `{"resource":"pods","namespace":"elsewhere","name":"p","subresource":"eviction"}`
	lease        = `{"resource":"leases","namespace":"a","name":"l"}`
)

func write(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func TestLogIsReadOnceAndLeavesHalfLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	write(t, path, line("old", "create", eviction, 201, 0, 1))
	log, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}

	whole := line("new", "create", eviction, 201, 5, 6)
	write(t, path, `{"stage":"RequestReceived","verb":"create"}`+"\n"+whole[:20])
	if events, err := log.Next(); err != nil || len(events) != 0 {
		t.Fatalf("half a line gave %v, %v; want nothing", events, err)
	}
	write(t, path, whole[20:])
	events, err := log.Next()
	if err != nil {
		t.Fatal(err)
	}
	if len(events) != 1 || events[0].Agent() != "new" || events[0].Answered.Sub(events[0].Received) != time.Millisecond {
		t.Errorf("events = %+v, want the one eviction by new that took 1 ms", events)
	}
	if events, err := log.Next(); err != nil || len(events) != 0 {
		t.Errorf("read again: %v, %v; want nothing", events, err)
	}
}

func TestOpenNeedsALog(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a log that is not there was opened")
	}
}

func TestALineThatIsNotJSONIsAnError(t *testing.T) {
	if _, err := parse([]byte("panic: oh\n")); err == nil {
		t.Error("rubbish was taken for an audit log")
	}
}

func TestWritesCountWhatOneAgentWrote(t *testing.T) {
	events, err := parse([]byte(line("ebbtide", "create", eviction, 201, 0, 1) +
		line("ebbtide", "create", eviction, 429, 0, 1) +
		line("ebbtide", "patch", budget, 200, 0, 1) +
		line("ebbtide", "get", budget, 200, 0, 1) +
		line("ebbtide", "watch", budget, 200, 0, 1) +
		line("ebbtide", "update", lease, 200, 0, 1) +
		line("kubectl", "create", eviction, 201, 0, 1)))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"create pods/eviction": 2, "patch poddisruptionbudgets": 1}
	if diff := cmp.Diff(want, Writes(events, "ebbtide")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestReactions(t *testing.T) {
	open := line("bench", "patch", budget, 200, 0, 1)
	opened := line("kube-controller-manager", "update", budgetStatus, 200, 2, 10)
	tests := map[string]struct {
		log  string
		want []time.Duration
	}{
		"from the status that opens the budget to the eviction that is granted": {
			log:  open + opened + line("ebbtide", "create", eviction, 201, 25, 30),
			want: []time.Duration{15 * time.Millisecond},
		},
		"refused evictions, other agents and other namespaces are no reaction": {
			log: open + opened + line("ebbtide", "create", eviction, 429, 11, 12) +
				line("kubectl", "create", eviction, 201, 12, 13) + line("ebbtide", "create", otherPod, 201, 13, 14) +
				line("ebbtide", "create", eviction, 201, 40, 41),
			want: []time.Duration{30 * time.Millisecond},
		},
		"the status after the eviction opens nothing": {
			log: open + opened + line("ebbtide", "create", eviction, 201, 15, 16) +
				line("kube-controller-manager", "update", budgetStatus, 200, 17, 18) +
				line("ebbtide", "create", eviction, 201, 50, 51),
			want: []time.Duration{5 * time.Millisecond},
		},
		"every opening counts": {
			log: open + opened + line("ebbtide", "create", eviction, 201, 11, 12) +
				open + opened + line("ebbtide", "create", eviction, 201, 14, 15),
			want: []time.Duration{time.Millisecond, 4 * time.Millisecond},
		},
		"an opening without an eviction is left out": {
			log: open + opened,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			events, err := parse([]byte(test.log))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, Reactions(events, "a", "bench", "ebbtide")); diff != "" {
				t.Errorf("reactions (-want +got):\n%s", diff)
			}
		})
	}
}
