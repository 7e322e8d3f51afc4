// Package attack has accounts with one right each try what they must not be able to do with the
// rights of Ebbtide: on a control plane with the chart and the manager, by impersonation. An
// attempt is refused by RBAC, a policy or a webhook, whose name is part of the test.
package attack

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

// attempts are by the account that tries them.
var attempts = map[string][]attempt{
	owner: ofOwner, drainer: ofDrainer, reporter: ofReporter, agent: ofAgent, manager: slices.Concat(ofManager, ofManagerAndRollouts), roller: ofRoller, elsewhere: ofRemote, fleet: ofFleet, requester: ofRequester,
}

// Each account tries what it must not be able to do with the rights of Ebbtide, on one control
// plane. `make attack` shows the table.
func TestAttacksAreRefused(t *testing.T) {
	s := newStage(t)
	var table strings.Builder
	lines := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	for _, actor := range slices.Sorted(maps.Keys(attempts)) {
		for _, one := range attempts[actor] {
			err := one.try(s, s.actors[actor])
			result := "refused by " + one.refusedBy
			if !one.refuses(err) {
				result = "NOT REFUSED"
				t.Errorf("%s %s: %v, want a refusal by %s", actor, one.act, err, one.refusedBy)
			}
			fmt.Fprintf(lines, "%s\t%s\t%s\n", actor, one.act, result)
		}
	}
	if err := lines.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", table.String())
}
