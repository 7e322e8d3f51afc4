package validate

import (
	"fmt"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// MachineDrainRuleWarnings warns of rules with nodes outside of Ebbtide's namespace, home.
func MachineDrainRuleWarnings(rule *v1alpha1.MachineDrainRule, home string) []string {
	forNodes := len(rule.Spec.Nodes) > 0
	switch {
	case forNodes == (rule.Namespace == home):
		return nil
	case !forNodes:
		return []string{"spec.nodes: without nodes no NodeMaintenance obeys this rule, it is only for the Machines of this namespace; to mean all nodes give nodes: [{selector: {}}]"}
	}
	effect := "the nodes of this one mean nothing"
	if len(rule.Spec.Machines) == 0 {
		effect = "this one does nothing, because without machines it is not for Machines either"
	}
	return []string{fmt.Sprintf("spec.nodes: a NodeMaintenance obeys only the rules in namespace %s; here, in namespace %s, %s", home, rule.Namespace, effect)}
}
