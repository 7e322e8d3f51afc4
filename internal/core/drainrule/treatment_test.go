package drainrule_test

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
	"ebbtide.dev/ebbtide/test/golden"
)

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

type rules = []*v1alpha1.MachineDrainRule

// story is a pod of a Machine with label os=linux in a Cluster with label
// stage=live. Facts are facts() unless they are given.
type story struct {
	rules rules
	pod   *corev1.Pod
	facts *drainrule.Facts
	// want is without Object and Problems.
	want drainrule.Treatment
}

func tell(t *testing.T, stories map[string]story) {
	t.Helper()
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			known := facts()
			if s.facts != nil {
				known = *s.facts
			}
			backwards := slices.Clone(s.rules)
			slices.Reverse(backwards)
			for _, given := range []rules{s.rules, backwards} {
				got := drainrule.ForMachine(given, map[string]string{"os": "linux"}, map[string]string{"stage": "live"}).Of(s.pod, known)
				got.Problems = nil
				checkTreatment(t, got, s.want)
			}
		})
	}
}

// checkTreatment compares treatments without their objects. Causes are in the golden file.
func checkTreatment(t *testing.T, got, want drainrule.Treatment) {
	t.Helper()
	if (got.Cause != "") != (want.Cause != "") {
		t.Errorf("cause is %q, want one: %v", got.Cause, want.Cause != "")
	}
	if got.Cause != "" {
		golden.Message(t, got.Cause)
	}
	got.Object, got.Cause, want.Cause = v1alpha1.BlockerObject{}, "", ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("treatment (-want +got):\n%s", diff)
	}
}

func skippedBy(reason string) drainrule.Treatment {
	return drainrule.Treatment{Behavior: v1alpha1.DrainBehaviorSkip, Reason: reason}
}

func completedBy(reason string) drainrule.Treatment {
	return drainrule.Treatment{Behavior: v1alpha1.DrainBehaviorWaitCompleted, Reason: reason}
}

func drainedBy(reason string, order int32) drainrule.Treatment {
	return drainrule.Treatment{Behavior: v1alpha1.DrainBehaviorDrain, Reason: reason, Order: order}
}

// unclear treatments hold an order, and their cause is in the golden file.
func unclear(order int32) drainrule.Treatment {
	return drainrule.Treatment{Cause: "any", Order: order}
}

const (
	byRule  = "MachineDrainRule storage"
	byLabel = "label cluster.x-k8s.io/drain"
)

// The order of machine-drain-rules, "Node drain behavior": DaemonSet and static
// pods, the label, the first rule, the default.
func TestWhatDecides(t *testing.T) {
	later := aRule("storage", ordered(7))
	tell(t, map[string]story{
		"nothing": {pod: aPod(), want: drainedBy("", 0)},
		"a rule":  {rules: rules{later}, pod: aPod(), want: drainedBy(byRule, 7)},

		"the DaemonSet":                  {rules: rules{later}, pod: aPod(ofDaemonSet("one")), want: skippedBy("DaemonSet")},
		"the DaemonSet before the label": {rules: rules{later}, pod: aPod(ofDaemonSet("one"), labelled("wait-completed")), want: skippedBy("DaemonSet")},
		"an orphan of a DaemonSet": {
			rules: rules{later}, pod: aPod(ofDaemonSet("one"), in("lab")), want: drainedBy(byRule, 7),
		},
		"an orphan of a DaemonSet that was created again": {rules: rules{later}, pod: aPod(ofDaemonSet("two")), want: drainedBy(byRule, 7)},
		"a finished pod of a DaemonSet":                   {rules: rules{later}, pod: aPod(ofDaemonSet("one"), finished), want: drainedBy(byRule, 7)},
		"a static pod":                                    {rules: rules{later}, pod: aPod(static), want: skippedBy("static pod")},
		"a static pod with a label":                       {rules: rules{later}, pod: aPod(static, labelled("wait-completed")), want: skippedBy("static pod")},

		"the label skip":                      {rules: rules{later}, pod: aPod(labelled("skip")), want: skippedBy(byLabel)},
		"the label Skip":                      {rules: rules{later}, pod: aPod(labelled("Skip")), want: skippedBy(byLabel)},
		"the label wait-completed":            {rules: rules{later}, pod: aPod(labelled("wait-completed")), want: completedBy(byLabel)},
		"the label WaitCompleted":             {rules: rules{later}, pod: aPod(labelled("WaitCompleted")), want: completedBy(byLabel)},
		"another label leaves it to the rule": {rules: rules{later}, pod: aPod(labelled("later")), want: drainedBy(byRule, 7)},
		"another label and no rule":           {pod: aPod(labelled("Drain")), want: drainedBy("", 0)},

		"a rule that skips":                 {rules: rules{aRule("storage")}, pod: aPod(), want: skippedBy(byRule)},
		"a rule that waits":                 {rules: rules{aRule("storage", behaves("WaitCompleted"))}, pod: aPod(), want: completedBy(byRule)},
		"a rule that waits, of a finished":  {rules: rules{aRule("storage", behaves("WaitCompleted"))}, pod: aPod(finished), want: completedBy(byRule)},
		"a rule without order":              {rules: rules{aRule("storage", behaves("Drain"))}, pod: aPod(), want: drainedBy(byRule, 0)},
		"a rule with a negative order":      {rules: rules{aRule("storage", ordered(-3))}, pod: aPod(), want: drainedBy(byRule, -3)},
		"the order of a rule that skips":    {rules: rules{aRule("storage", ordered(7), behaves("Skip"))}, pod: aPod(), want: skippedBy(byRule)},
		"the first by name, not by order":   {rules: rules{aRule("tools", ordered(-3)), later, aRule("web")}, pod: aPod(), want: drainedBy(byRule, 7)},
		"the first by name, in bytes":       {rules: rules{later, aRule("storage-2"), aRule("storage.1")}, pod: aPod(), want: drainedBy(byRule, 7)},
		"the first by name that is for it":  {rules: rules{aRule("a", pods(is("app", "db"), nil)), later}, pod: aPod(), want: drainedBy(byRule, 7)},
		"the second if the first is of lab": {rules: rules{aRule("a", pods(nil, is("team", "science"))), later}, pod: aPod(), want: drainedBy(byRule, 7)},
	})
}

// Inside an entry AND, between entries OR; what is absent or empty matches
// everything.
func TestPodsThatSelectorsSelect(t *testing.T) {
	skipped, drained := skippedBy(byRule), drainedBy("", 0)
	tell(t, map[string]story{
		"an empty selector":              {rules: rules{aRule("storage", pods(everything, nil))}, pod: aPod(), want: skipped},
		"an empty entry":                 {rules: rules{aRule("storage", pods(nil, nil), machines(nil, nil))}, pod: aPod(), want: skipped},
		"the pod's label":                {rules: rules{aRule("storage", pods(is("app", "web"), nil))}, pod: aPod(), want: skipped},
		"another label":                  {rules: rules{aRule("storage", pods(is("app", "db"), nil))}, pod: aPod(), want: drained},
		"the namespace's label":          {rules: rules{aRule("storage", pods(nil, is("team", "sales")))}, pod: aPod(), want: skipped},
		"another namespace's label":      {rules: rules{aRule("storage", pods(nil, is("team", "science")))}, pod: aPod(), want: drained},
		"both":                           {rules: rules{aRule("storage", pods(is("app", "web"), is("team", "sales")))}, pod: aPod(), want: skipped},
		"both, and the pod is another":   {rules: rules{aRule("storage", pods(is("app", "db"), is("team", "sales")))}, pod: aPod(), want: drained},
		"both, and it is in another":     {rules: rules{aRule("storage", pods(is("app", "web"), is("team", "science")))}, pod: aPod(), want: drained},
		"the second entry":               {rules: rules{aRule("storage", pods(is("app", "db"), nil), pods(nil, is("team", "sales")))}, pod: aPod(), want: skipped},
		"half of each entry":             {rules: rules{aRule("storage", pods(is("app", "web"), is("team", "science")), pods(is("app", "db"), is("team", "sales")))}, pod: aPod(), want: drained},
		"one of several values":          {rules: rules{aRule("storage", pods(expression("app", "In", "db", "web"), nil))}, pod: aPod(), want: skipped},
		"none of several values":         {rules: rules{aRule("storage", pods(expression("app", "NotIn", "db", "web"), nil))}, pod: aPod(), want: drained},
		"a label that is not there":      {rules: rules{aRule("storage", pods(expression("tier", "DoesNotExist"), nil))}, pod: aPod(), want: skipped},
		"the Machine":                    {rules: rules{aRule("storage", machines(is("os", "linux"), nil))}, pod: aPod(), want: skipped},
		"another Machine":                {rules: rules{aRule("storage", machines(is("os", "windows"), nil))}, pod: aPod(), want: drained},
		"the Cluster":                    {rules: rules{aRule("storage", machines(nil, is("stage", "live")))}, pod: aPod(), want: skipped},
		"another Cluster":                {rules: rules{aRule("storage", machines(is("os", "linux"), is("stage", "test")))}, pod: aPod(), want: drained},
		"the second entry for Machines":  {rules: rules{aRule("storage", machines(is("os", "windows"), nil), machines(nil, is("stage", "live")))}, pod: aPod(), want: skipped},
		"the Machine, but not the pod":   {rules: rules{aRule("storage", machines(is("os", "linux"), nil), pods(is("app", "db"), nil))}, pod: aPod(), want: drained},
		"a rule for nodes only":          {rules: rules{aRule("storage", nodes(everything))}, pod: aPod(), want: drained},
		"a rule for nodes and Machines":  {rules: rules{aRule("storage", nodes(is("os", "windows")), machines(everything, nil))}, pod: aPod(), want: skipped},
		"a rule for nodes, not this one": {rules: rules{aRule("storage", nodes(everything), machines(is("os", "windows"), nil))}, pod: aPod(), want: drained},
	})
}
