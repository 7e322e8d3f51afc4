package api

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// drainRule is a MachineDrainRule with these lines in its spec.
func drainRule(spec string) string {
	return fmt.Sprintf(`
apiVersion: ebbtide.dev/v1alpha1
kind: MachineDrainRule
metadata: {name: rule, namespace: default}
spec:
%s`, indent(spec, "  "))
}

const skips = "drain: {behavior: Skip}\n"

// entries are n different entries of pods or machines.
func entries(list string, n int) string {
	lines := []string{list + ":"}
	for i := range n {
		lines = append(lines, fmt.Sprintf("- selector: {matchLabels: {app: a%d}}", i))
	}
	return strings.Join(lines, "\n")
}

// drainRules are the examples of machine-drain-rules, and its scheme.
var drainRules = map[string]string{
	"exclude pods from drain": `
drain:
  behavior: Skip
machines:
- selector: {}
pods:
# This selects all Pods with the app label in (example-app1,example-app2) AND in the example-namespace
- selector:
    matchExpressions:
    - key: app
      operator: In
      values:
      - example-app1
      - example-app2
  namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: example-namespace
# This additionally selects Pods with the app label == monitoring AND in the monitoring namespace
- selector:
    matchExpressions:
    - key: app
      operator: In
      values:
      - monitoring
  namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: monitoring`,
	"drain order": `
drain:
  behavior: Drain
  order: 100
machines:
- selector: {}
pods:
- selector:
    matchLabels:
      app: portworx`,
	"selectors with nothing in them": `
drain:
  behavior: Drain
  order: 100
machines:
- selector:
    matchLabels:
    matchExpressions:
  clusterSelector:
    matchLabels:
    matchExpressions:
pods:
- selector:
    matchLabels:
    matchExpressions:
  namespaceSelector:
    matchLabels:
    matchExpressions:`,
}

func TestMachineDrainRuleIsAccepted(t *testing.T) {
	t.Parallel()
	c := server(t)
	tests := map[string]string{
		"for everything":         skips,
		"wait for pods":          "drain: {behavior: WaitCompleted}",
		"no order":               "drain: {behavior: Drain}",
		"the lowest order":       "drain: {behavior: Drain, order: -2147483648}",
		"the highest order":      "drain: {behavior: Drain, order: 2147483647}",
		"32 entries each":        skips + entries("machines", 32) + "\n" + entries("pods", 32) + "\n" + entries("nodes", 32),
		"only the second":        skips + "machines: [{clusterSelector: {}}]\npods: [{namespaceSelector: {}}]",
		"alike but for one half": skips + "pods: [{selector: {}}, {namespaceSelector: {}}, {selector: {}, namespaceSelector: {}}]",
	}
	maps.Copy(tests, drainRules)
	for name, spec := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := try(t, c, drainRule(spec)); err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

const (
	withOrder  = `order must not be set if drain behavior is "Skip" or "WaitCompleted"`
	emptyEntry = "an empty entry does not say what it selects; give it "
)

var badDrainRules = map[string]struct {
	spec string
	want refusal
}{
	"no drain":            {"pods: [{selector: {}}]", refusal{"spec.drain": "Required value"}},
	"no behavior":         {"drain: {order: 1}", refusal{"spec.drain.behavior": "Required value"}},
	"an unknown behavior": {"drain: {behavior: Evict}", refusal{"spec.drain.behavior": `supported values: "Drain", "Skip", "WaitCompleted"`}},
	"order with Skip":     {"drain: {behavior: Skip, order: 1}", refusal{"spec.drain.order": withOrder}},
	"order 0 with Skip":   {"drain: {behavior: Skip, order: 0}", refusal{"spec.drain.order": withOrder}},
	"order with WaitCompleted": {
		"drain: {behavior: WaitCompleted, order: -1}",
		refusal{"spec.drain.order": withOrder},
	},
	"order above int32": {
		"drain: {behavior: Drain, order: 2147483648}",
		refusal{"spec.drain.order": "should be less than or equal to 2147483647"},
	},
	"order in words": {"drain: {behavior: Drain, order: last}", refusal{"spec.drain.order": `must be of type integer: "string"`}},
	"empty lists": {
		skips + "machines: []\npods: []\nnodes: []",
		refusal{
			"spec.machines": "an empty list selects nothing; leave machines out to mean all, or give at least one entry",
			"spec.pods":     "an empty list selects nothing; leave pods out to mean all, or give at least one entry",
			"spec.nodes":    "an empty list selects nothing; leave nodes out if no NodeMaintenance is meant, or give at least one entry",
		},
	},
	"empty entries": {
		skips + "machines: [{}]\npods: [{selector: {}}, {}]\nnodes: [{}]",
		refusal{
			"spec.machines[0]": emptyEntry + "at least one of selector and clusterSelector, such as selector: {} for all",
			"spec.pods[1]":     emptyEntry + "at least one of selector and namespaceSelector, such as selector: {} for all",
			"spec.nodes[0]":    emptyEntry + "a selector, such as selector: {} for all",
		},
	},
	"an entry of a field that does not exist": {
		skips + "pods: [{podSelector: {}}]",
		refusal{"spec.pods[0]": emptyEntry + "at least one of selector and namespaceSelector"},
	},
	"33 entries": {
		skips + entries("pods", 33) + "\n" + entries("machines", 33) + "\n" + entries("nodes", 33),
		refusal{
			"spec.pods": "must have at most 32 items", "spec.machines": "must have at most 32 items", "spec.nodes": "must have at most 32 items",
		},
	},
	"duplicates": {
		skips + "machines: [{selector: {}}, {selector: {}}]\n" +
			"pods: [{selector: {matchLabels: {a: b, c: d}}}, {namespaceSelector: {}}, {selector: {matchLabels: {c: d, a: b}}}]\n" +
			"nodes: [{selector: {}}, {selector: {}}]",
		refusal{
			"spec.machines": "entries in machines must be unique",
			"spec.pods":     "entries in pods must be unique",
			"spec.nodes":    "entries in nodes must be unique",
		},
	},
}

func TestMachineDrainRuleIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	for name, test := range badDrainRules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.want.expect(t, try(t, c, drainRule(test.spec)))
		})
	}
}

// Faults of a selector, below its path.
var badLabelSelectors = map[string]struct {
	selector string
	want     refusal
}{
	"an operator that does not exist": {
		`{matchExpressions: [{key: a, operator: Is, values: [b]}]}`,
		refusal{".matchExpressions[0].operator": "use one of the operators In, NotIn, Exists, DoesNotExist"},
	},
	"an operator for nodes only": {
		`{matchExpressions: [{key: a, operator: Gt, values: ["1"]}]}`,
		refusal{".matchExpressions[0].operator": "use one of the operators In, NotIn, Exists, DoesNotExist"},
	},
	"In without values": {
		`{matchExpressions: [{key: a, operator: In}]}`,
		refusal{".matchExpressions[0]": "In and NotIn need at least one entry in values"},
	},
	"Exists with values": {
		`{matchExpressions: [{key: a, operator: Exists, values: [b]}]}`,
		refusal{".matchExpressions[0]": "Exists and DoesNotExist take no values; remove them"},
	},
	"a key with a space": {
		`{matchExpressions: [{key: a b, operator: Exists}]}`,
		refusal{".matchExpressions[0].key": labelKey},
	},
	"a label with two slashes": {`{matchLabels: {a/b/c: d}}`, refusal{".matchLabels": labelKey}},
	// Dropped, as the API server does with it elsewhere, it would have the selector select everything.
	"a label without a value": {`{matchLabels: {a: b, c: null}}`, refusal{".matchLabels": `a label without a value selects nothing; give every label its value, such as "web", or "" for an empty one`}},
	"a value with a slash":    {`{matchLabels: {a: b/c}}`, refusal{".matchLabels.a": labelText}},
	"17 expressions": {
		`{matchExpressions: [` + strings.Repeat("{key: a, operator: Exists},", 17) + `]}`,
		refusal{".matchExpressions": "must have at most 16 items"},
	},
}

// Every selector of a rule is held to the same, and all are reported together.
func TestSelectorsOfMachineDrainRuleAreRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	for name, test := range badLabelSelectors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := strings.ReplaceAll(skips+`
machines: [{selector: BAD, clusterSelector: BAD}]
pods: [{selector: {}}, {selector: BAD, namespaceSelector: BAD}]
nodes: [{selector: BAD}]`, "BAD", test.selector)
			want := refusal{}
			for _, path := range []string{
				"spec.machines[0].selector", "spec.machines[0].clusterSelector",
				"spec.pods[1].selector", "spec.pods[1].namespaceSelector", "spec.nodes[0].selector",
			} {
				maps.Copy(want, at(test.want, path))
			}
			want.expect(t, try(t, c, drainRule(spec)))
		})
	}
}
