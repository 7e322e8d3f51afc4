package drainrule_test

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
)

// The node has the label pool=old.
func TestRulesOfANode(t *testing.T) {
	for name, test := range map[string]struct {
		rules rules
		pod   *corev1.Pod
		want  drainrule.Treatment
	}{
		"no rule":                             {nil, aPod(), drainedBy("", 0)},
		"a rule without nodes":                {rules{aRule("storage")}, aPod(), drainedBy("", 0)},
		"a rule for Machines":                 {rules{aRule("storage", machines(nil, nil))}, aPod(), drainedBy("", 0)},
		"a rule for all nodes":                {rules{aRule("storage", nodes(everything))}, aPod(), skippedBy(byRule)},
		"a rule for the node":                 {rules{aRule("storage", nodes(is("pool", "old")))}, aPod(), skippedBy(byRule)},
		"a rule for another node":             {rules{aRule("storage", nodes(is("pool", "new")))}, aPod(), drainedBy("", 0)},
		"the second entry for nodes":          {rules{aRule("storage", nodes(is("pool", "new")), nodes(is("pool", "old")))}, aPod(), skippedBy(byRule)},
		"a rule for Machines and the node":    {rules{aRule("storage", nodes(everything), machines(is("os", "mars"), nil))}, aPod(), skippedBy(byRule)},
		"a rule for the node and other pods":  {rules{aRule("storage", nodes(everything), pods(is("app", "db"), nil))}, aPod(), drainedBy("", 0)},
		"the label comes first":               {rules{aRule("storage", nodes(everything))}, aPod(labelled("wait-completed")), completedBy(byLabel)},
		"a DaemonSet pod is asked about":      {rules{aRule("storage", nodes(everything), ordered(7))}, aPod(ofDaemonSet("one")), drainedBy(byRule, 7)},
		"a DaemonSet pod has the default":     {nil, aPod(ofDaemonSet("one")), drainedBy("", 0)},
		"a static pod is asked about":         {rules{aRule("storage", nodes(everything), ordered(7))}, aPod(static), drainedBy(byRule, 7)},
		"a bad selector of Machines":          {rules{aRule("storage", nodes(everything), machines(bad, nil))}, aPod(), skippedBy(byRule)},
		"a bad selector of nodes, other pods": {rules{aRule("storage", nodes(bad), pods(is("app", "db"), nil))}, aPod(), drainedBy("", 0)},
		"a bad selector of nodes":             {rules{aRule("storage", nodes(bad))}, aPod(), unclear(0)},
	} {
		t.Run(name, func(t *testing.T) {
			got := drainrule.Compile(test.rules).ForNode(map[string]string{"pool": "old"}).Ask(test.pod, facts())
			checkTreatment(t, got, test.want)
		})
	}
}

func TestRulesThatWereNotRead(t *testing.T) {
	unread := drainrule.Unread("fleet", "the server is busy").ForNode(nil)
	got, want := unread.Ask(aPod(), facts()), v1alpha1.BlockerObject{APIVersion: "v1", Kind: "Namespace", Name: "fleet"}
	checkTreatment(t, got, unclear(math.MinInt32))
	if got.Object != want {
		t.Errorf("object is %v, want %v", got.Object, want)
	}
	checkTreatment(t, unread.Ask(aPod(labelled("skip")), facts()), skippedBy(byLabel))
}

func TestObjectOfABlockerDecidesOrIsAtFault(t *testing.T) {
	for name, test := range map[string]struct {
		rules rules
		pod   *corev1.Pod
		want  v1alpha1.BlockerObject
	}{
		"the default":               {nil, aPod(), v1alpha1.BlockerObject{}},
		"the label":                 {rules{aRule("storage")}, aPod(labelled("skip")), v1alpha1.BlockerObject{}},
		"a rule":                    {rules{aRule("storage")}, aPod(), ruleObject("storage")},
		"a rule that is bad":        {rules{aRule("storage", pods(bad, nil))}, aPod(), ruleObject("storage")},
		"a behavior that is bad":    {rules{aRule("storage", behaves("Evaporate"))}, aPod(), ruleObject("storage")},
		"a DaemonSet that is there": {nil, aPod(ofDaemonSet("one")), v1alpha1.BlockerObject{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: "shop", Name: "proxy", UID: "one"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := drainrule.ForMachine(test.rules, nil, nil).Of(test.pod, blind()).Object; got != test.want {
				t.Errorf("Object = %v, want %v", got, test.want)
			}
		})
	}
}

func TestALabelThatIsIgnoredIsReported(t *testing.T) {
	for name, given := range map[string]rules{"by default": nil, "with a rule": {aRule("storage")}, "with a bad one": {aRule("storage", pods(bad, nil))}} {
		t.Run(name, func(t *testing.T) {
			for _, pod := range []*corev1.Pod{aPod(labelled("later")), aPod(labelled("later"), ofDaemonSet("two"))} {
				got := drainrule.ForMachine(given, nil, nil).Of(pod, blind())
				if len(got.Problems) != 1 || got.Problems[0].Key != v1alpha1.DrainLabel {
					t.Errorf("problems are %v, want one of the label", got.Problems)
				}
			}
		})
	}
}
