package drainrule_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
)

const (
	mayBe   = "MachineDrainRule fleet/storage may be meant for the pod, but "
	badPods = mayBe + `spec.pods[0].selector cannot be understood: "Near" is not a valid label selector operator. Correct or delete the rule.`
	unread  = "namespace shop could not be read: the server is busy. It is tried again; until then only label cluster.x-k8s.io/drain on the pod decides."
	noTeam  = mayBe + unread
	noOwner = "DaemonSet shop/proxy, the owner of the pod, could not be read: the server is busy. It is tried again; until then only label cluster.x-k8s.io/drain=skip on the pod decides."
)

// An invalid rule makes those pods wait that it may decide about, and no others.
func TestAnInvalidRuleHoldsUpOnlyItsPods(t *testing.T) {
	bare := aRule("storage", pods(bad, nil))
	tell(t, map[string]story{
		"a pod that it may be meant for": {rules: rules{bare}, pod: aPod(), want: unclear(badPods)},
		"a later rule does not help":     {rules: rules{bare, aRule("tools")}, pod: aPod(), want: unclearIn(drainrule.NoOrder, badPods)},
		"an earlier rule decides":        {rules: rules{aRule("a", ordered(7)), bare}, pod: aPod(), want: drainedBy("MachineDrainRule a", 7)},
		"the label decides":              {rules: rules{bare}, pod: aPod(labelled("skip")), want: skippedBy(byLabel)},
		"a label that is ignored":        {rules: rules{bare}, pod: aPod(labelled("later")), want: unclear(badPods)},
		"the DaemonSet decides":          {rules: rules{bare}, pod: aPod(ofDaemonSet("one")), want: skippedBy("DaemonSet")},
		"a static pod":                   {rules: rules{bare}, pod: aPod(static), want: skippedBy("static pod")},

		"another part of the selector excludes": {rules: rules{aRule("storage", pods(badBut("app", "db"), nil))}, pod: aPod(), want: drainedBy("", 0)},
		"no other part of it excludes":          {rules: rules{aRule("storage", pods(badBut("app", "web"), nil))}, pod: aPod(), want: unclear(badPods)},
		"the namespace excludes":                {rules: rules{aRule("storage", pods(bad, is("team", "science")))}, pod: aPod(), want: drainedBy("", 0)},
		"the pod is not meant anyway":           {rules: rules{aRule("storage", pods(is("app", "db"), bad))}, pod: aPod(), want: drainedBy("", 0)},
		"the Machine is not meant":              {rules: rules{aRule("storage", pods(bad, nil), machines(is("os", "windows"), nil))}, pod: aPod(), want: drainedBy("", 0)},
		"the rule is not for Machines":          {rules: rules{aRule("storage", pods(bad, nil), nodes(everything))}, pod: aPod(), want: drainedBy("", 0)},
		"another entry includes":                {rules: rules{aRule("storage", pods(bad, nil), pods(is("app", "web"), nil))}, pod: aPod(), want: skippedBy(byRule)},
		"another entry says nothing of it":      {rules: rules{aRule("storage", pods(bad, nil), pods(is("app", "db"), nil))}, pod: aPod(), want: unclear(badPods)},

		"a bad namespaceSelector": {
			rules: rules{aRule("storage", pods(is("app", "web"), bad))}, pod: aPod(),
			want: unclear(mayBe + `spec.pods[0].namespaceSelector cannot be understood: "Near" is not a valid label selector operator. Correct or delete the rule.`),
		},
		"a bad selector of Machines": {
			rules: rules{aRule("storage", machines(is("os", "windows"), nil), machines(bad, nil))}, pod: aPod(),
			want: unclear(mayBe + `spec.machines[1].selector cannot be understood: "Near" is not a valid label selector operator. Correct or delete the rule.`),
		},
		"a bad clusterSelector": {
			rules: rules{aRule("storage", machines(nil, bad))}, pod: aPod(),
			want: unclear(mayBe + `spec.machines[0].clusterSelector cannot be understood: "Near" is not a valid label selector operator. Correct or delete the rule.`),
		},
		"a bad clusterSelector of other Machines": {rules: rules{aRule("storage", machines(is("os", "windows"), bad))}, pod: aPod(), want: drainedBy("", 0)},
		"a bad selector of Machines, and other pods": {
			rules: rules{aRule("storage", machines(bad, nil), pods(is("app", "db"), nil))}, pod: aPod(), want: drainedBy("", 0),
		},
		"a bad selector of nodes is not for Machines": {rules: rules{aRule("storage", nodes(bad), machines(nil, nil))}, pod: aPod(), want: skippedBy(byRule)},

		"a behavior that is not known": {
			rules: rules{aRule("storage", behaves("Evaporate"))}, pod: aPod(),
			want: unclear(`MachineDrainRule fleet/storage is meant for the pod, but spec.drain.behavior "Evaporate" is not known. Correct or delete the rule.`),
		},
		"a behavior that is not known, of other pods": {
			rules: rules{aRule("storage", behaves("Evaporate"), pods(is("app", "db"), nil))}, pod: aPod(), want: drainedBy("", 0),
		},
	})
}

// Nothing leaves under a pod that nobody knows how to treat: it holds the lowest
// order that what is in question could give it.
func TestAnUnclearPodHoldsTheLowestOrderThatItCouldHave(t *testing.T) {
	broken := func(changes ...func(*v1alpha1.MachineDrainRule)) *v1alpha1.MachineDrainRule {
		return aRule("storage", append(changes, pods(bad, nil))...)
	}
	blind := blind()
	tell(t, map[string]story{
		"the rule, or the default":             {rules: rules{broken(ordered(100))}, pod: aPod(), want: unclearIn(0, badPods)},
		"the rule is before the default":       {rules: rules{broken(ordered(-7))}, pod: aPod(), want: unclearIn(-7, badPods)},
		"the rule, or the next one":            {rules: rules{broken(ordered(100)), aRule("tools", ordered(50))}, pod: aPod(), want: unclearIn(50, badPods)},
		"the rule is before the next one":      {rules: rules{broken(ordered(20)), aRule("tools", ordered(50))}, pod: aPod(), want: unclearIn(20, badPods)},
		"the next one is of other pods":        {rules: rules{broken(ordered(100)), aRule("tools", ordered(-50), pods(is("app", "db"), nil))}, pod: aPod(), want: unclearIn(0, badPods)},
		"what comes after a certain one":       {rules: rules{broken(ordered(100)), aRule("tools", ordered(50)), aRule("zoo", ordered(-9))}, pod: aPod(), want: unclearIn(50, badPods)},
		"two broken and a certain one":         {rules: rules{broken(ordered(100)), aRule("tools", ordered(30), pods(bad, nil)), aRule("zoo", ordered(60))}, pod: aPod(), want: unclearIn(30, badPods)},
		"it may be left to complete":           {rules: rules{broken(behaves("WaitCompleted")), aRule("tools", ordered(50))}, pod: aPod(), want: unclearIn(0, badPods)},
		"it may be skipped":                    {rules: rules{broken(), aRule("tools", ordered(50))}, pod: aPod(), want: unclearIn(50, badPods)},
		"it is skipped in any case":            {rules: rules{broken(), aRule("tools")}, pod: aPod(), want: unclearIn(drainrule.NoOrder, badPods)},
		"a behavior that is not known":         {rules: rules{broken(ordered(-5), behaves("Evaporate")), aRule("tools", ordered(50))}, pod: aPod(), want: unclearIn(-5, badPods)},
		"the DaemonSet, and the rule is known": {rules: rules{aRule("storage", ordered(7))}, pod: aPod(ofDaemonSet("one")), facts: &blind, want: unclearIn(7, noOwner)},
		"the DaemonSet, and the default":       {pod: aPod(ofDaemonSet("one")), facts: &blind, want: unclearIn(0, noOwner)},
		"the namespace": {
			rules: rules{aRule("storage", ordered(-3), pods(nil, is("team", "sales")))}, pod: aPod(), facts: &blind, want: unclearIn(-3, noTeam),
		},
	})
}

// A namespace or DaemonSet that cannot be read makes those pods wait for which
// it makes a difference.
func TestWhatCannotBeReadHoldsUpOnlyItsPods(t *testing.T) {
	blind := blind()
	sales := aRule("storage", pods(is("app", "web"), is("team", "sales")))
	noWeb := aRule("storage", pods(is("app", "db"), is("team", "sales")))
	tell(t, map[string]story{
		"the namespace":                                  {rules: rules{sales}, pod: aPod(), facts: &blind, want: unclear(noTeam)},
		"the namespace of another pod":                   {rules: rules{noWeb}, pod: aPod(), facts: &blind, want: drainedBy("", 0)},
		"a namespace that no rule asks about":            {rules: rules{aRule("storage", pods(nil, everything))}, pod: aPod(), facts: &blind, want: skippedBy(byRule)},
		"a namespace of which another entry says enough": {rules: rules{aRule("storage", pods(nil, is("team", "sales")), pods(is("app", "web"), nil))}, pod: aPod(), facts: &blind, want: skippedBy(byRule)},
		"the namespace of a pod with a label":            {rules: rules{sales}, pod: aPod(labelled("wait-completed")), facts: &blind, want: completedBy(byLabel)},
		"a namespace that does not exist": {
			rules: rules{sales}, pod: aPod(in("gone")),
			want: unclear(mayBe + "namespace gone does not exist. Delete the pod; until then only label cluster.x-k8s.io/drain on it decides."),
		},
		"the DaemonSet":                          {pod: aPod(ofDaemonSet("one")), facts: &blind, want: unclear(noOwner)},
		"the DaemonSet of a finished pod":        {pod: aPod(ofDaemonSet("one"), finished), facts: &blind, want: drainedBy("", 0)},
		"the DaemonSet of a pod to complete":     {pod: aPod(ofDaemonSet("one"), labelled("wait-completed")), facts: &blind, want: unclear(noOwner)},
		"the DaemonSet of a pod to skip anyway":  {pod: aPod(ofDaemonSet("one"), labelled("skip")), facts: &blind, want: skippedBy(byLabel)},
		"the DaemonSet of a pod of a Skip rule":  {rules: rules{aRule("storage")}, pod: aPod(ofDaemonSet("one")), facts: &blind, want: skippedBy(byRule)},
		"the DaemonSet and a rule":               {rules: rules{aRule("storage", pods(bad, nil))}, pod: aPod(ofDaemonSet("one")), facts: &blind, want: unclear(noOwner)},
		"other DaemonSets":                       {pod: aPod(ofDaemonSet("one")), facts: &drainrule.Facts{DaemonSets: facts().DaemonSets, DaemonSetErrors: blind.DaemonSetErrors}, want: skippedBy("DaemonSet")},
		"DaemonSets, and the one there is newer": {pod: aPod(ofDaemonSet("two")), facts: &drainrule.Facts{DaemonSets: facts().DaemonSets, DaemonSetErrors: blind.DaemonSetErrors}, want: drainedBy("", 0)},
		"the DaemonSet of another pod":           {pod: aPod(ofDaemonSet("one"), in("lab")), facts: &blind, want: drainedBy("", 0)},
		"the namespace of a pod elsewhere":       {rules: rules{sales}, pod: aPod(in("lab")), facts: new(besides(blind, "lab")), want: drainedBy("", 0)},
		"neither, of an ordinary pod":            {pod: aPod(), facts: &blind, want: drainedBy("", 0)},
	})
}

func besides(f drainrule.Facts, namespace string) drainrule.Facts {
	f.Namespaces = map[string]map[string]string{namespace: {}}
	return f
}

// Of a rule with several faults the same one is named every time.
func TestTheCauseDoesNotFlap(t *testing.T) {
	several := bad.DeepCopy()
	several.MatchLabels = map[string]string{"c d": "", "a b": "", "b c": ""}
	want := drainrule.ForMachine(rules{aRule("storage", pods(several, nil))}, nil, nil).Of(aPod(), facts())
	for range 20 {
		got := drainrule.ForMachine(rules{aRule("storage", pods(several, nil))}, nil, nil).Of(aPod(), facts())
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("treatment changes:\n%s", diff)
		}
	}
}
