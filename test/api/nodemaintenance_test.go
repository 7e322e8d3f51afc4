package api

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
)

// maintenance is a NodeMaintenance with these lines in its spec.
func maintenance(name, spec string) string {
	return fmt.Sprintf(`
apiVersion: ebbtide.dev/v1alpha1
kind: NodeMaintenance
metadata:
  name: %s
spec:
%s`, name, indent(spec, "  "))
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+by)
}

// anyNode is a valid node selector.
const anyNode = `nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [a]}]}]}`

func TestNodeMaintenanceIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	tests := map[string]struct {
		name, spec string
		want       refusal
	}{
		"a name of 254 characters": {
			strings.Repeat("n", 254), anyNode,
			refusal{"metadata.name": "must be no more than 253"},
		},
		"no node selector": {
			"", `reason: none`,
			refusal{"spec.nodeSelector": "Required value"},
		},
		"a stage that does not exist": {
			"", anyNode + "\nstage: Drained",
			refusal{"spec.stage": `supported values: "Idle", "Cordon", "Drain", "Complete"`},
		},
		"a drain depth that does not exist": {
			"", anyNode + "\ndrainDepth: Job",
			refusal{"spec.drainDepth": `supported values: "Default", "DaemonSet", "Static"`},
		},
		"a reason of 10 KB": {
			"", anyNode + "\nreason: " + strings.Repeat("because ", 1280),
			refusal{"spec.reason": "may not be more than 1024"},
		},
		"a plan of 65 entries": {
			"", anyNode + "\n" + plan(65),
			refusal{"spec.drainPlan": "must have at most 64 items"},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			name := cmp.Or(test.name, "bad")
			test.want.expect(t, try(t, c, maintenance(name, test.spec)))
		})
	}
}

var badPlans = map[string]struct {
	plan string
	want refusal
}{
	"no priority": {
		`- podType: Default`,
		refusal{"spec.drainPlan[0].podPriority": "Required value"},
	},
	"a priority above int32": {
		`- podPriority: 2147483648`,
		refusal{"spec.drainPlan[0].podPriority": "should be less than or equal to 2147483647"},
	},
	"a priority below int32": {
		`- podPriority: -2147483649`,
		refusal{"spec.drainPlan[0].podPriority": "should be greater than or equal to -2147483648"},
	},
	"a priority in words": {
		`- podPriority: high`,
		refusal{"spec.drainPlan[0].podPriority": `must be of type integer: "string"`},
	},
	"a pod type that does not exist": {
		`- {podPriority: 1, podType: Mirror}`,
		refusal{"spec.drainPlan[0].podType": `supported values: "Default", "DaemonSet", "Static"`},
	},
	"pod types out of order": {
		"- {podPriority: 1, podType: Static}\n- {podPriority: 1, podType: DaemonSet}",
		refusal{"spec.drainPlan": "order the entries by podType: first Default, then DaemonSet, then Static"},
	},
	"an absent pod type is Default and comes first": {
		"- {podPriority: 1, podType: DaemonSet}\n- podPriority: 1",
		refusal{"spec.drainPlan": "order the entries by podType: first Default, then DaemonSet, then Static"},
	},
	"priorities out of order": {
		"- podPriority: 5\n- podPriority: -5",
		refusal{"spec.drainPlan": "order the entries of each podType by podPriority, lowest first"},
	},
	"priorities out of order in a later pod type": {
		"- podPriority: 9\n- {podPriority: 5, podType: Static}\n- {podPriority: 4, podType: Static}",
		refusal{"spec.drainPlan": "order the entries of each podType by podPriority, lowest first"},
	},
	"a selector after the entry without one": {
		"- podPriority: 5\n- {podPriority: 5, podSelector: {matchLabels: {app: a}}}",
		refusal{"spec.drainPlan": "of entries with the same podType and podPriority put those with a podSelector first"},
	},
	"a duplicate": {
		"- podPriority: 5\n- podPriority: 5",
		refusal{"spec.drainPlan": "each entry may occur only once; remove the duplicate"},
	},
	"a duplicate with a selector, not next to the other": {
		"- {podPriority: 5, podSelector: {matchLabels: {app: a}}}\n" +
			"- {podPriority: 5, podSelector: {matchLabels: {app: b}}}\n" +
			"- {podPriority: 5, podType: Default, podSelector: {matchLabels: {app: a}}}",
		refusal{"spec.drainPlan": "each entry may occur only once; remove the duplicate"},
	},
}

func TestDrainPlanIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	for name, test := range badPlans {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.want.expect(t, try(t, c, maintenance("bad", anyNode+"\ndrainPlan:\n"+test.plan)))
		})
	}
}

// plan is a drain plan of n entries in order.
func plan(n int) string {
	lines := []string{"drainPlan:"}
	for i := range n {
		lines = append(lines, fmt.Sprintf("- podPriority: %d", i-n/2))
	}
	return strings.Join(lines, "\n")
}
