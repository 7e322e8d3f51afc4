package maintenance_test

import (
	"flag"
	"os"
	"slices"
	"sync"
	"testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/test/golden"
)

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

// kind has messages stand under their reason, each once, whichever test they come from.
type kind struct {
	testing.TB
	reason string
}

func (k kind) Name() string { return k.reason }

// partial is true if only some tests run, so that messages are missing.
var partial = sync.OnceValue(func() bool {
	return flag.Lookup("test.run").Value.String()+flag.Lookup("test.skip").Value.String() != ""
})

// decide decides, and adds the messages of the decision to those of the package.
func (w *world) decide(snapshot maintenance.Snapshot) maintenance.Decision {
	decision := maintenance.Decide(snapshot)
	if partial() || w.t == nil || len(w.nodes) > 20 || len(w.maintenances) > 20 {
		return decision
	}
	for _, d := range decision.Maintenances {
		if d.GiveBack != nil { // Its status is not written.
			sayEvents(d.GiveBack.Events)
			continue
		}
		sayStatus(d.Status)
		sayEvents(d.Events, d.CompleteEvents)
	}
	for _, d := range decision.Nodes {
		sayEvents(told(d))
		for _, withdrawal := range d.WithdrawRequests {
			sayEvents(withdrawal.Events)
		}
		for _, deletion := range d.Delete {
			sayEvents(deletion.Events)
		}
	}
	return decision
}

func sayStatus(status v1alpha1.NodeMaintenanceStatus) {
	golden.Message(kind{reason: "Summary"}, status.Summary)
	for _, c := range status.Conditions {
		golden.Message(kind{reason: c.Type + " " + c.Reason}, c.Message)
	}
	for _, s := range status.NodeStatuses {
		golden.Message(kind{reason: "State " + string(s.State)}, s.DrainMessage)
		for _, b := range slices.Concat(s.Blockers, s.Retained) {
			golden.Message(kind{reason: "Blocker " + string(b.Type)}, blocker.Explain(b))
		}
	}
}

func sayEvents(events ...[]event.Event) {
	for _, e := range slices.Concat(events...) {
		golden.Message(kind{reason: "Event " + e.Reason}, e.Message)
	}
}
