package api

import (
	"fmt"
	"strings"
	"testing"
)

const (
	labelKey  = "a name of at most 63 characters of A-Z a-z 0-9 - _ . that begins and ends with a letter or digit, after an optional DNS prefix and slash"
	labelText = "should match"

	terms          = "spec.nodeSelector.nodeSelectorTerms"
	byLabel        = terms + "[0].matchExpressions[0]"
	byField        = terms + "[0].matchFields[0]"
	podSelector    = "spec.drainPlan[0].podSelector"
	podRequirement = podSelector + ".matchExpressions[0]"
)

// expression and field are node selectors of one requirement.
func expression(body string) string {
	return fmt.Sprintf("nodeSelectorTerms: [{matchExpressions: [{%s}]}]", body)
}

func field(body string) string {
	return fmt.Sprintf("nodeSelectorTerms: [{matchFields: [{%s}]}]", body)
}

var badNodeSelectors = map[string]struct {
	selector string
	want     refusal
}{
	"nothing in it": {`{}`, refusal{terms: "Required value"}},
	"no terms":      {`nodeSelectorTerms: []`, refusal{terms: "selects no node; give at least one term"}},
	"an empty term": {
		`nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}, {}]`,
		refusal{terms + "[1]": "an empty term selects no node; give it at least one of matchExpressions and matchFields"},
	},
	"a term of empty lists": {
		`nodeSelectorTerms: [{matchExpressions: [], matchFields: []}]`,
		refusal{terms + "[0]": "an empty term selects no node"},
	},
	"an operator that does not exist": {
		expression(`key: a, operator: Is, values: [b]`),
		refusal{byLabel + ".operator": "use one of the operators In, NotIn, Exists, DoesNotExist, Gt, Lt"},
	},
	"In without values": {
		expression(`key: a, operator: In`),
		refusal{byLabel: "In and NotIn need at least one entry in values"},
	},
	"Exists with values": {
		expression(`key: a, operator: Exists, values: [b]`),
		refusal{byLabel: "Exists and DoesNotExist take no values; remove them"},
	},
	"Gt with two values": {
		expression(`key: a, operator: Gt, values: ["1", "2"]`),
		refusal{byLabel: "Gt and Lt need exactly one entry in values, a whole number"},
	},
	"Lt with a word": {
		expression(`key: a, operator: Lt, values: [many]`),
		refusal{byLabel: "Gt and Lt need exactly one entry in values, a whole number"},
	},
	"a key with a space":     {expression(`key: a b, operator: Exists`), refusal{byLabel + ".key": labelKey}},
	"an empty key":           {expression(`key: "", operator: Exists`), refusal{byLabel + ".key": labelKey}},
	"a key with two slashes": {expression(`key: a/b/c, operator: Exists`), refusal{byLabel + ".key": labelKey}},
	"a key of 64 characters": {
		expression(`key: ` + strings.Repeat("k", 64) + `, operator: Exists`),
		refusal{byLabel + ".key": labelKey},
	},
	"a key that is too long for any label": {
		expression(`key: ` + strings.Repeat("k", 318) + `, operator: Exists`),
		refusal{byLabel + ".key": "may not be more than 317"},
	},
	"a value with a space": {
		expression(`key: a, operator: In, values: [b, c d]`),
		refusal{byLabel + ".values[1]": labelText},
	},
	"a value of 64 characters": {
		expression(`key: a, operator: In, values: [` + strings.Repeat("v", 64) + `]`),
		refusal{byLabel + ".values[0]": "may not be more than 63"},
	},
	"a field that is not the name": {
		field(`key: spec.unschedulable, operator: In, values: ["true"]`),
		refusal{byField + ".key": "metadata.name is the only field that nodes are selected by; use matchExpressions for labels"},
	},
	"a field with another operator": {
		field(`key: metadata.name, operator: Exists, values: [one]`),
		refusal{byField + ".operator": "matchFields knows the operators In and NotIn only"},
	},
	"a field with two names": {
		field(`key: metadata.name, operator: In, values: [one, two]`),
		refusal{byField: "matchFields needs exactly one entry in values; use one term for each node"},
	},
	"a field with an impossible name": {
		field(`key: metadata.name, operator: In, values: [Node One]`),
		refusal{byField + ".values[0]": labelText},
	},
}

func TestNodeSelectorIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	for name, test := range badNodeSelectors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.want.expect(t, try(t, c, maintenance("bad", "nodeSelector:\n"+indent(test.selector, "  "))))
		})
	}
}

func TestPodSelectorIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	tests := map[string]struct {
		selector string
		want     refusal
	}{
		"empty":        {`{}`, refusal{podSelector: "an empty podSelector selects all pods; leave podSelector out to say so"}},
		"empty labels": {`{matchLabels: {}}`, refusal{podSelector: "leave out empty matchLabels and matchExpressions"}},
		"empty expressions": {
			`{matchLabels: {a: b}, matchExpressions: []}`,
			refusal{podSelector: "leave out empty matchLabels and matchExpressions"},
		},
		"an empty list of values": {
			`{matchExpressions: [{key: a, operator: Exists, values: []}]}`,
			refusal{podRequirement: "Exists and DoesNotExist take no values; remove them"},
		},
		"a key with a space": {`{matchLabels: {a b: c}}`, refusal{podSelector + ".matchLabels": labelKey}},
		"a value with a slash": {
			`{matchLabels: {a: b/c}}`,
			refusal{podSelector + ".matchLabels.a": labelText},
		},
		"an operator for nodes only": {
			`{matchExpressions: [{key: a, operator: Gt, values: ["1"]}]}`,
			refusal{podRequirement + ".operator": "use one of the operators In, NotIn, Exists, DoesNotExist"},
		},
		"NotIn without values": {
			`{matchExpressions: [{key: a, operator: NotIn, values: []}]}`,
			refusal{podRequirement: "In and NotIn need at least one entry in values"},
		},
		"DoesNotExist with values": {
			`{matchExpressions: [{key: a, operator: DoesNotExist, values: [b]}]}`,
			refusal{podRequirement: "Exists and DoesNotExist take no values; remove them"},
		},
		"an expression with a bad key": {
			`{matchExpressions: [{key: -a, operator: Exists}]}`,
			refusal{podRequirement + ".key": labelKey},
		},
		"an expression with a bad value": {
			`{matchExpressions: [{key: a, operator: In, values: [b_]}]}`,
			refusal{podRequirement + ".values[0]": labelText},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entry := fmt.Sprintf("\ndrainPlan:\n- podPriority: 1\n  podSelector: %s", test.selector)
			test.want.expect(t, try(t, c, maintenance("bad", anyNode+entry)))
		})
	}
}
