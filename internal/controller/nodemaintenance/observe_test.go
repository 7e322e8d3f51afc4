package nodemaintenance

import (
	"strings"
	"testing"
)

func TestAReadThatFailsStopsThePass(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ unreadable, want string }{
		"maintenances": {unreadable: "NodeMaintenance", want: "observe: list maintenances: "},
		"nodes":        {unreadable: "Node", want: "observe: list nodes: "},
		"pods":         {unreadable: "Pod", want: "observe: list the pods of node one: "},
		"evacuations":  {unreadable: "Evacuation", want: "observe: list evacuations: "},
		"budgets":      {unreadable: "PodDisruptionBudget", want: "observe: list budgets: "},
		"records":      {unreadable: "DrainRecord", want: "observe: list drain records: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, aMaintenance("upgrade", "old"), aNode("one"), aPod("shop-1", "one"))
			w.api.Refuse = func(request string) error {
				if request == "list "+test.unreadable {
					return errRefused
				}
				return nil
			}

			_, err := w.manager().Reconcile(w.t.Context(), pass{})

			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("Reconcile = %v, want an error that begins with %q", err, test.want)
			}
			if len(w.api.Writes()) != 0 {
				t.Errorf("the pass wrote %v on what it did not know", w.api.Writes())
			}
		})
	}
}
