package drainrule_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
)

// An invalid rule makes those pods wait that it may decide about, and no others.
func TestAnInvalidRuleHoldsUpOnlyItsPods(t *testing.T) {
	bare := aRule("storage", pods(bad, nil))
	tell(t, map[string]story{
		"a pod that it may be meant for": {rules: rules{bare}, pod: aPod(), want: unclear(0)},
		"a later rule does not help":     {rules: rules{bare, aRule("tools")}, pod: aPod(), want: unclear(drainrule.NoOrder)},
		"an earlier rule decides":        {rules: rules{aRule("a", ordered(7)), bare}, pod: aPod(), want: drainedBy("MachineDrainRule a", 7)},
		"the label decides":              {rules: rules{bare}, pod: aPod(labelled("skip")), want: skippedBy(byLabel)},
		"a label that is ignored":        {rules: rules{bare}, pod: aPod(labelled("later")), want: unclear(0)},
		"the DaemonSet decides":          {rules: rules{bare}, pod: aPod(ofDaemonSet("one")), want: skippedBy("DaemonSet")},
		"a static pod":                   {rules: rules{bare}, pod: aPod(static), want: skippedBy("static pod")},

		"another part of the selector excludes": {rules: rules{aRule("storage", pods(badBut("app", "db"), nil))}, pod: aPod(), want: drainedBy("", 0)},
		"no other part of it excludes":          {rules: rules{aRule("storage", pods(badBut("app", "web"), nil))}, pod: aPod(), want: unclear(0)},
		"the namespace excludes":                {rules: rules{aRule("storage", pods(bad, is("team", "science")))}, pod: aPod(), want: drainedBy("", 0)},
		"the pod is not meant anyway":           {rules: rules{aRule("storage", pods(is("app", "db"), bad))}, pod: aPod(), want: drainedBy("", 0)},
		"the Machine is not meant":              {rules: rules{aRule("storage", pods(bad, nil), machines(is("os", "windows"), nil))}, pod: aPod(), want: drainedBy("", 0)},
		"the rule is not for Machines":          {rules: rules{aRule("storage", pods(bad, nil), nodes(everything))}, pod: aPod(), want: drainedBy("", 0)},
		"another entry includes":                {rules: rules{aRule("storage", pods(bad, nil), pods(is("app", "web"), nil))}, pod: aPod(), want: skippedBy(byRule)},
		"another entry says nothing of it":      {rules: rules{aRule("storage", pods(bad, nil), pods(is("app", "db"), nil))}, pod: aPod(), want: unclear(0)},

		"a bad namespaceSelector": {
			rules: rules{aRule("storage", pods(is("app", "web"), bad))}, pod: aPod(),
			want: unclear(0),
		},
		"a bad selector of Machines": {
			rules: rules{aRule("storage", machines(is("os", "windows"), nil), machines(bad, nil))}, pod: aPod(),
			want: unclear(0),
		},
		"a bad clusterSelector": {
			rules: rules{aRule("storage", machines(nil, bad))}, pod: aPod(),
			want: unclear(0),
		},
		"a bad clusterSelector of other Machines": {rules: rules{aRule("storage", machines(is("os", "windows"), bad))}, pod: aPod(), want: drainedBy("", 0)},
		"a bad selector of Machines, and other pods": {
			rules: rules{aRule("storage", machines(bad, nil), pods(is("app", "db"), nil))}, pod: aPod(), want: drainedBy("", 0),
		},
		"a bad selector of nodes is not for Machines": {rules: rules{aRule("storage", nodes(bad), machines(nil, nil))}, pod: aPod(), want: skippedBy(byRule)},

		"a behavior that is not known": {
			rules: rules{aRule("storage", behaves("Evaporate"))}, pod: aPod(),
			want: unclear(0),
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
		"the rule, or the default":             {rules: rules{broken(ordered(100))}, pod: aPod(), want: unclear(0)},
		"the rule is before the default":       {rules: rules{broken(ordered(-7))}, pod: aPod(), want: unclear(-7)},
		"the rule, or the next one":            {rules: rules{broken(ordered(100)), aRule("tools", ordered(50))}, pod: aPod(), want: unclear(50)},
		"the rule is before the next one":      {rules: rules{broken(ordered(20)), aRule("tools", ordered(50))}, pod: aPod(), want: unclear(20)},
		"the next one is of other pods":        {rules: rules{broken(ordered(100)), aRule("tools", ordered(-50), pods(is("app", "db"), nil))}, pod: aPod(), want: unclear(0)},
		"what comes after a certain one":       {rules: rules{broken(ordered(100)), aRule("tools", ordered(50)), aRule("zoo", ordered(-9))}, pod: aPod(), want: unclear(50)},
		"two broken and a certain one":         {rules: rules{broken(ordered(100)), aRule("tools", ordered(30), pods(bad, nil)), aRule("zoo", ordered(60))}, pod: aPod(), want: unclear(30)},
		"it may be left to complete":           {rules: rules{broken(behaves("WaitCompleted")), aRule("tools", ordered(50))}, pod: aPod(), want: unclear(0)},
		"it may be skipped":                    {rules: rules{broken(), aRule("tools", ordered(50))}, pod: aPod(), want: unclear(50)},
		"it is skipped in any case":            {rules: rules{broken(), aRule("tools")}, pod: aPod(), want: unclear(drainrule.NoOrder)},
		"a behavior that is not known":         {rules: rules{broken(ordered(-5), behaves("Evaporate")), aRule("tools", ordered(50))}, pod: aPod(), want: unclear(-5)},
		"the DaemonSet, and the rule is known": {rules: rules{aRule("storage", ordered(7))}, pod: aPod(ofDaemonSet("one")), facts: &blind, want: unclear(7)},
		"the DaemonSet, and the default":       {pod: aPod(ofDaemonSet("one")), facts: &blind, want: unclear(0)},
		"the namespace": {
			rules: rules{aRule("storage", ordered(-3), pods(nil, is("team", "sales")))}, pod: aPod(), facts: &blind, want: unclear(-3),
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
		"the namespace":                                  {rules: rules{sales}, pod: aPod(), facts: &blind, want: unclear(0)},
		"the namespace of another pod":                   {rules: rules{noWeb}, pod: aPod(), facts: &blind, want: drainedBy("", 0)},
		"a namespace that no rule asks about":            {rules: rules{aRule("storage", pods(nil, everything))}, pod: aPod(), facts: &blind, want: skippedBy(byRule)},
		"a namespace of which another entry says enough": {rules: rules{aRule("storage", pods(nil, is("team", "sales")), pods(is("app", "web"), nil))}, pod: aPod(), facts: &blind, want: skippedBy(byRule)},
		"the namespace of a pod with a label":            {rules: rules{sales}, pod: aPod(labelled("wait-completed")), facts: &blind, want: completedBy(byLabel)},
		"a namespace that does not exist": {
			rules: rules{sales}, pod: aPod(in("gone")),
			want: unclear(0),
		},
		"the DaemonSet":                          {pod: aPod(ofDaemonSet("one")), facts: &blind, want: unclear(0)},
		"the DaemonSet of a finished pod":        {pod: aPod(ofDaemonSet("one"), finished), facts: &blind, want: drainedBy("", 0)},
		"the DaemonSet of a pod to complete":     {pod: aPod(ofDaemonSet("one"), labelled("wait-completed")), facts: &blind, want: unclear(0)},
		"the DaemonSet of a pod to skip anyway":  {pod: aPod(ofDaemonSet("one"), labelled("skip")), facts: &blind, want: skippedBy(byLabel)},
		"the DaemonSet of a pod of a Skip rule":  {rules: rules{aRule("storage")}, pod: aPod(ofDaemonSet("one")), facts: &blind, want: skippedBy(byRule)},
		"the DaemonSet and a rule":               {rules: rules{aRule("storage", pods(bad, nil))}, pod: aPod(ofDaemonSet("one")), facts: &blind, want: unclear(0)},
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
