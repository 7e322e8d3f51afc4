package validate

import (
	"fmt"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// MachineDrainRuleWarnings tells of nodes in a rule that no NodeMaintenance
// obeys, because it is not in Ebbtide's own namespace, home.
func MachineDrainRuleWarnings(rule *v1alpha1.MachineDrainRule, home string) []string {
	if len(rule.Spec.Nodes) == 0 || rule.Namespace == home {
		return nil
	}
	effect := "the nodes of this one mean nothing"
	if len(rule.Spec.Machines) == 0 {
		effect = "this one does nothing, because without machines it is not for Machines either"
	}
	return []string{fmt.Sprintf("spec.nodes: a NodeMaintenance obeys only the rules in namespace %s; here, in namespace %s, %s", home, rule.Namespace, effect)}
}
