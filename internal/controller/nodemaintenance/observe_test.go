package nodemaintenance

import (
	"strings"
	"testing"
)

func TestAReadThatFailsStopsThePass(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ unreadable, want string }{
		"maintenances": {unreadable: "NodeMaintenanceList", want: "observe: list maintenances: "},
		"nodes":        {unreadable: "NodeList", want: "observe: list nodes: "},
		"pods":         {unreadable: "PodList", want: "observe: list the pods of node one: "},
		"evacuations":  {unreadable: "EvacuationList", want: "observe: list evacuations: "},
		"budgets":      {unreadable: "PodDisruptionBudgetList", want: "observe: list budgets: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, aMaintenance("upgrade", "old"), aNode("one"), aPod("shop-1", "one"))
			w.unreadable = test.unreadable

			_, err := w.manager().Reconcile(w.t.Context(), pass{})

			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("Reconcile = %v, want an error that begins with %q", err, test.want)
			}
			if len(w.writes) != 0 {
				t.Errorf("the pass wrote %v on what it did not know", w.writes)
			}
		})
	}
}
