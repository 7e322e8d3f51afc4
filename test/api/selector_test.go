package api

import (
	"maps"
	"strings"
	"testing"
)

const (
	labelKey  = "a name of at most 63 characters of A-Z a-z 0-9 - _ . that begins and ends with a letter or digit, after an optional DNS prefix and slash"
	labelText = "should match"
	forPods   = "use one of the operators In, NotIn, Exists, DoesNotExist"
	needsOne  = "In and NotIn need at least one entry in values"
	takesNone = "Exists and DoesNotExist take no values; remove them"
	oneNumber = "Gt and Lt need exactly one entry in values, a whole number"
)

// selected returns a NodeMaintenance with these terms in its node selector.
func selected(name, terms string) string {
	return maintenance(name, "nodeSelector: {nodeSelectorTerms: ["+terms+"]}")
}

// byLabel and byField return NodeMaintenances of one requirement.
func byLabel(name, requirement string) string {
	return selected(name, "{matchExpressions: [{"+requirement+"}]}")
}

func byField(name, requirement string) string {
	return selected(name, "{matchFields: [{"+requirement+"}]}")
}

func TestNodeSelectorIsRefused(t *testing.T) {
	const terms = "spec.nodeSelector.nodeSelectorTerms"
	kind(selected).play(t, map[string]row{
		"no terms":              {spec: "", refused: refusal{terms: "selects no node; give at least one term"}},
		"an empty term":         {spec: "{matchExpressions: [{key: a, operator: Exists}]}, {}", refused: refusal{terms + "[1]": "an empty term selects no node; give it at least one of matchExpressions and matchFields"}},
		"a term of empty lists": {spec: "{matchExpressions: [], matchFields: []}", refused: refusal{terms + "[0]": "an empty term selects no node"}},
	})
}

func TestNodeSelectorOfLabelsIsRefused(t *testing.T) {
	const path = "spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0]"
	kind(byLabel).play(t, map[string]row{
		"no operator":          {spec: "key: a, operator: Is, values: [b]", refused: refusal{path + ".operator": forPods + ", Gt, Lt"}},
		"In without values":    {spec: "key: a, operator: In", refused: refusal{path: needsOne}},
		"Exists with values":   {spec: "key: a, operator: Exists, values: [b]", refused: refusal{path: takesNone}},
		"Gt with two values":   {spec: `key: a, operator: Gt, values: ["1", "2"]`, refused: refusal{path: oneNumber}},
		"Lt with a word":       {spec: "key: a, operator: Lt, values: [many]", refused: refusal{path: oneNumber}},
		"a space in a key":     {spec: "key: a b, operator: Exists", refused: refusal{path + ".key": labelKey}},
		"an empty key":         {spec: `key: "", operator: Exists`, refused: refusal{path + ".key": labelKey}},
		"two slashes in a key": {spec: "key: a/b/c, operator: Exists", refused: refusal{path + ".key": labelKey}},
		"64 letters in a key":  {spec: "key: " + strings.Repeat("k", 64) + ", operator: Exists", refused: refusal{path + ".key": labelKey}},
		"a space in a value":   {spec: "key: a, operator: In, values: [b, c d]", refused: refusal{path + ".values[1]": labelText}},
	})
}

func TestNodeSelectorOfFieldsIsRefused(t *testing.T) {
	const path = "spec.nodeSelector.nodeSelectorTerms[0].matchFields[0]"
	kind(byField).play(t, map[string]row{
		"no name":            {spec: `key: spec.unschedulable, operator: In, values: ["true"]`, refused: refusal{path + ".key": "metadata.name is the only field that nodes are selected by; use matchExpressions for labels"}},
		"another operator":   {spec: "key: metadata.name, operator: Exists, values: [one]", refused: refusal{path + ".operator": "matchFields knows the operators In and NotIn only"}},
		"two names":          {spec: "key: metadata.name, operator: In, values: [one, two]", refused: refusal{path: "matchFields needs exactly one entry in values; use one term for each node"}},
		"an impossible name": {spec: "key: metadata.name, operator: In, values: [Node One]", refused: refusal{path + ".values[0]": labelText}},
	})
}

// badLabelSelectors are faults that no selector of pods, Machines or Nodes may have, below its path.
var badLabelSelectors = map[string]row{
	"an operator that does not exist": {spec: `{matchExpressions: [{key: a, operator: Is, values: [b]}]}`, refused: refusal{".matchExpressions[0].operator": forPods}},
	"an operator for nodes only":      {spec: `{matchExpressions: [{key: a, operator: Gt, values: ["1"]}]}`, refused: refusal{".matchExpressions[0].operator": forPods}},
	"In without values":               {spec: `{matchExpressions: [{key: a, operator: In}]}`, refused: refusal{".matchExpressions[0]": needsOne}},
	"NotIn with an empty list":        {spec: `{matchExpressions: [{key: a, operator: NotIn, values: []}]}`, refused: refusal{".matchExpressions[0]": needsOne}},
	"Exists with values":              {spec: `{matchExpressions: [{key: a, operator: Exists, values: [b]}]}`, refused: refusal{".matchExpressions[0]": takesNone}},
	"Exists with an empty list":       {spec: `{matchExpressions: [{key: a, operator: Exists, values: []}]}`, refused: refusal{".matchExpressions[0]": takesNone}},
	"DoesNotExist with values":        {spec: `{matchExpressions: [{key: a, operator: DoesNotExist, values: [b]}]}`, refused: refusal{".matchExpressions[0]": takesNone}},
	"a key with a space":              {spec: `{matchExpressions: [{key: a b, operator: Exists}]}`, refused: refusal{".matchExpressions[0].key": labelKey}},
	"a key that begins with a dash":   {spec: `{matchExpressions: [{key: -a, operator: Exists}]}`, refused: refusal{".matchExpressions[0].key": labelKey}},
	"a value that ends in a dash":     {spec: `{matchExpressions: [{key: a, operator: In, values: [b_]}]}`, refused: refusal{".matchExpressions[0].values[0]": labelText}},
	"a label with two slashes":        {spec: `{matchLabels: {a/b/c: d}}`, refused: refusal{".matchLabels": labelKey}},
	"a label with a space":            {spec: `{matchLabels: {a b: c}}`, refused: refusal{".matchLabels": labelKey}},
	"a value with a slash":            {spec: `{matchLabels: {a: b/c}}`, refused: refusal{".matchLabels.a": labelText}},
	// Dropped, as the API server does with it elsewhere, it would have the selector select everything.
	"a label without a value": {spec: `{matchLabels: {a: b, c: null}}`, refused: refusal{".matchLabels": `a label without a value selects nothing; give every label its value, such as "web", or "" for an empty one`}},
}

// Every selector is held to the same, and all faults of an object are reported together.
func TestLabelSelectorIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	for name, bad := range badLabelSelectors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at(bad.refused, "spec.drainPlan[0].podSelector").expect(t, try(t, c, planned("bad", "- {podPriority: 1, podSelector: "+bad.spec+"}")))
			want := refusal{}
			for _, path := range []string{"machines[0].selector", "machines[0].clusterSelector", "pods[1].selector", "pods[1].namespaceSelector", "nodes[0].selector"} {
				maps.Copy(want, at(bad.refused, "spec."+path))
			}
			want.expect(t, try(t, c, drainRule("bad", strings.ReplaceAll(skips+`
machines: [{selector: BAD, clusterSelector: BAD}]
pods: [{selector: {}}, {selector: BAD, namespaceSelector: BAD}]
nodes: [{selector: BAD}]`, "BAD", bad.spec))))
		})
	}
}

// An entry of a plan without a selector is for all pods.
func TestEmptyPodSelectorIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	for selector, words := range map[string]string{
		`{}`:                "an empty podSelector selects all pods; leave podSelector out to say so",
		`{matchLabels: {}}`: "leave out empty matchLabels and matchExpressions",
		`{matchLabels: {a: b}, matchExpressions: []}`: "leave out empty matchLabels and matchExpressions",
	} {
		refusal{"spec.drainPlan[0].podSelector": words}.expect(t, try(t, c, planned("bad", "- {podPriority: 1, podSelector: "+selector+"}")))
	}
}
