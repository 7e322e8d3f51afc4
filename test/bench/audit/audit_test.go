package audit

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const budgetStatus = `{"resource":"poddisruptionbudgets","namespace":"a","name":"b","subresource":"status"}`

// request is what was asked of the API server.
type request struct{ verb, object string }

var (
	readBudget    = request{"get", `{"resource":"poddisruptionbudgets","namespace":"a","name":"b"}`}
	openBudget    = request{"update", budgetStatus + `,"requestObject":{"status":{"disruptionsAllowed":1}}`}
	closeBudget   = request{"update", budgetStatus + `,"requestObject":{"status":{"disruptionsAllowed":0}}`}
	evict         = request{"create", `{"resource":"pods","namespace":"a","name":"p","subresource":"eviction"}`}
	evictNextDoor = request{"create", `{"resource":"pods","namespace":"elsewhere","name":"p","subresource":"eviction"}`}
)

// line is one line of an audit log: a request that arrived some milliseconds
// after noon and was answered one later.
func line(agent string, asked request, code, received int) string {
	return fmt.Sprintf(`{"stage":"ResponseComplete","verb":%q,"userAgent":"%s/v0 (linux/amd64)","objectRef":%s,"responseStatus":{"code":%d},`+
		`"requestReceivedTimestamp":%q,"stageTimestamp":%q}`+"\n",
		asked.verb, agent, asked.object, code, at(received), at(received+1))
}

func at(milliseconds int) string {
	return noon.Add(time.Duration(milliseconds) * time.Millisecond).Format("2006-01-02T15:04:05.000000Z")
}

func TestTheFirstIsTheOneThatArrivedFirstAndWasGranted(t *testing.T) {
	events, err := parse([]byte(line("ebbtide", evict, 429, 1) +
		line("kubectl", evict, 201, 2) +
		line("ebbtide", readBudget, 200, 3) +
		line("ebbtide", evict, 201, 9) +
		line("ebbtide", evict, 201, 6)))
	if err != nil {
		t.Fatal(err)
	}
	if first := First(events, "ebbtide", "create pods/eviction"); !first.Equal(noon.Add(6 * time.Millisecond)) {
		t.Errorf("the first eviction came at %v, want 6 ms after noon", first)
	}
	if first := First(events, "ebbtide", "create evacuations"); !first.IsZero() {
		t.Errorf("an evacuation was created at %v, want none", first)
	}
}

func TestReactions(t *testing.T) {
	const controller = "kube-controller-manager"
	opened := line(controller, openBudget, 200, 10)
	tests := map[string]struct {
		log  string
		want []time.Duration
	}{
		"from the status that opens the budget to the eviction that is granted": {
			log:  opened + line("ebbtide", evict, 201, 25),
			want: []time.Duration{15 * time.Millisecond},
		},
		"refused evictions, other agents and other namespaces are no reaction": {
			log: opened + line("ebbtide", evict, 429, 11) + line("kubectl", evict, 201, 12) +
				line("ebbtide", evictNextDoor, 201, 13) + line("ebbtide", evict, 201, 40),
			want: []time.Duration{30 * time.Millisecond},
		},
		"a budget that says again that it is open has not opened again": {
			log:  opened + line(controller, openBudget, 200, 20) + line("ebbtide", evict, 201, 25),
			want: []time.Duration{15 * time.Millisecond},
		},
		"an eviction that was under way when the budget opened took no time": {
			log:  opened + line("ebbtide", evict, 201, 4),
			want: []time.Duration{0},
		},
		"every opening counts": {
			log: opened + line("kube-apiserver", closeBudget, 200, 12) + line("ebbtide", evict, 201, 11) +
				line(controller, openBudget, 200, 20) + line("kube-apiserver", closeBudget, 200, 26) + line("ebbtide", evict, 201, 24),
			want: []time.Duration{time.Millisecond, 4 * time.Millisecond},
		},
		"an opening that closed again unused is left out": {
			log: opened + line(controller, closeBudget, 200, 12) +
				line(controller, openBudget, 200, 20) + line("ebbtide", evict, 201, 24),
			want: []time.Duration{4 * time.Millisecond},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			events, err := parse([]byte(test.log))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, Reactions(events, "a", "ebbtide")); diff != "" {
				t.Errorf("reactions (-want +got):\n%s", diff)
			}
		})
	}
}
