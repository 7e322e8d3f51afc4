package api

import (
	"strings"
	"testing"
)

// nodeBudget returns a NodeBudget with these lines in its spec.
func nodeBudget(name, spec string) string {
	return strings.Replace(maintenance(name, spec), "kind: NodeMaintenance", "kind: NodeBudget", 1)
}

func TestNodeBudgetIsAcceptedOrRefused(t *testing.T) {
	share := refusal{"spec.maxUnavailable": "maxUnavailable is a number from 1 to 256, or a percentage from 1% to 100%"}
	const terms = "spec.nodeSelector.nodeSelectorTerms"
	kind(nodeBudget).play(t, map[string]row{
		"only a node selector":         {spec: anyNode},
		"all of it":                    {spec: anyNode + "\nmaxUnavailable: 25%\ntopologyKey: topology.kubernetes.io/zone"},
		"it applies to rollouts":       {spec: anyNode + "\nappliesTo: Rollouts"},
		"it applies to all":            {spec: anyNode + "\nappliesTo: All"},
		"it applies to something else": {spec: anyNode + "\nappliesTo: Users", refused: refusal{"spec.appliesTo": `supported values: "Rollouts", "All"`}},
		"a number of 256":              {spec: anyNode + "\nmaxUnavailable: 256"},
		"no unavailable node":          {spec: anyNode + "\nmaxUnavailable: 0", refused: share},
		"257 unavailable nodes":        {spec: anyNode + "\nmaxUnavailable: 257", refused: share},
		"0 percent":                    {spec: anyNode + "\nmaxUnavailable: 0%", refused: share},
		"101 percent":                  {spec: anyNode + "\nmaxUnavailable: 101%", refused: share},
		"a topology key with a space":  {spec: anyNode + "\ntopologyKey: my zone", refused: refusal{"spec.topologyKey": "use a label key such as"}},
		"no selector":                  {spec: "maxUnavailable: 1", refused: refusal{"spec.nodeSelector": "Required value"}},
		"no terms":                     {spec: "nodeSelector: {nodeSelectorTerms: []}", refused: refusal{terms: "selects no node; give at least one term"}},
		"an operator that nodes lack":  {spec: "nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Is}]}]}", refused: refusal{terms + "[0].matchExpressions[0].operator": "use one of the operators"}},
		"a field that nodes lack":      {spec: "nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: spec.name, operator: In, values: [a]}]}]}", refused: refusal{terms + "[0].matchFields[0].key": "metadata.name is the only field"}},
		"a value that is not a number": {spec: "nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Gt, values: [b]}]}]}", refused: refusal{terms + "[0].matchExpressions[0]": "a whole number"}},
	})
}
