package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	ebbtide "ebbtide.dev/ebbtide/api/v1alpha1/applyconfiguration/api/v1alpha1"
)

// maintenance returns a NodeMaintenance with these lines in its spec.
func maintenance(name, spec string) string {
	return fmt.Sprintf(`
apiVersion: ebbtide.dev/v1alpha1
kind: NodeMaintenance
metadata:
  name: %s
spec:
%s`, name, indent(spec, "  "))
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+by)
}

// Valid node selectors.
const (
	anyNode     = `nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [a]}]}]}`
	aNodeByName = "nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [node-7]}]}]}"
)

// planned returns a NodeMaintenance whose drain plan has these entries.
func planned(name, entries string) string {
	return maintenance(name, anyNode+"\ndrainPlan:\n"+entries)
}

// plan returns a drain plan of n entries in order.
func plan(n int) string {
	lines := []string{"drainPlan:"}
	for i := range n {
		lines = append(lines, fmt.Sprintf("- podPriority: %d", i-n/2))
	}
	return strings.Join(lines, "\n")
}

func TestNodeMaintenanceIsAcceptedOrRefused(t *testing.T) {
	kind(maintenance).play(t, map[string]row{
		"only a node selector":     {spec: anyNode},
		"a plan of 64 entries":     {spec: anyNode + "\n" + plan(64)},
		"an empty plan":            {spec: anyNode + "\ndrainPlan: []"},
		"a label without a value":  {spec: `nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [""]}]}]}`},
		"a label with a prefix":    {spec: `nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: example.com/a_b.C, operator: Exists}]}]}`},
		"a number to compare with": {spec: `nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Gt, values: ["7"]}]}]}`},
		"a node by its name":       {spec: `nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [one.example.com]}]}]}`},
		"256 nodes by their names": {spec: "nodeSelector:\n  nodeSelectorTerms:" + strings.Repeat("\n  - {matchFields: [{key: metadata.name, operator: In, values: [one]}]}", 256)},
		"1,024 values":             {spec: `nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [` + strings.Repeat("b,", 1024) + `]}]}]}`},
		"null, which is nothing":   {spec: anyNode + "\ninPlace: null"},
		"a time that is none":      {spec: anyNode + "\ndeadline: {time: tomorrow}", refused: refusal{"spec.deadline.time": `must be of type date-time: "tomorrow"`}},
		"a time without a zone": {spec: anyNode + `
deadline: {time: "2036-03-01T22:00:00"}`, refused: refusal{"spec.deadline.time": "must be of type date-time"}},
	})
}

func TestNameOfGreatestLengthIsAccepted(t *testing.T) {
	t.Parallel()
	c := server(t)
	for n, want := range map[int]refusal{253: nil, 254: {"metadata.name": "must be no more than 253"}} {
		want.expect(t, try(t, c, maintenance(strings.Repeat("n", n), anyNode)))
	}
	for _, pod := range []string{strings.Repeat("longest", 36) + "p", strings.Repeat("d", 148) + "--pod"} {
		refusal{}.expect(t, try(t, c, evacuation(pod, "")))
	}
}

func TestDrainPlanIsAcceptedOrRefused(t *testing.T) {
	const (
		byType     = "order the entries by podType: first Default, then DaemonSet, then Static"
		byPriority = "order the entries of each podType by podPriority, lowest first"
		bySelector = "of entries with the same podType and podPriority put those with a podSelector first"
		once       = "each entry may occur only once; remove the duplicate"
	)
	refused := func(words string) refusal { return refusal{"spec.drainPlan": words} }
	kind(planned).play(t, map[string]row{
		"selectors on one priority":               {spec: "- {podPriority: 1, podSelector: {matchLabels: {app: b}}}\n- {podPriority: 1, podSelector: {matchLabels: {app: a}}}\n- podPriority: 1"},
		"priorities per pod type":                 {spec: "- podPriority: 9\n- {podPriority: 1, podType: DaemonSet}\n- {podPriority: 0, podType: Static}"},
		"expressions in a selector":               {spec: "- {podPriority: 1, podSelector: {matchExpressions: [{key: example.com/tier, operator: NotIn, values: [db, cache]}]}}"},
		"pod types out of order":                  {spec: "- {podPriority: 1, podType: Static}\n- {podPriority: 1, podType: DaemonSet}", refused: refused(byType)},
		"Default, which is absent, not first":     {spec: "- {podPriority: 1, podType: DaemonSet}\n- podPriority: 1", refused: refused(byType)},
		"priorities out of order":                 {spec: "- podPriority: 5\n- podPriority: -5", refused: refused(byPriority)},
		"priorities out of order in a later type": {spec: "- podPriority: 9\n- {podPriority: 5, podType: Static}\n- {podPriority: 4, podType: Static}", refused: refused(byPriority)},
		"a selector after the entry without one":  {spec: "- podPriority: 5\n- {podPriority: 5, podSelector: {matchLabels: {app: a}}}", refused: refused(bySelector)},
		"a duplicate":                             {spec: "- podPriority: 5\n- podPriority: 5", refused: refused(once)},
		"a duplicate further down": {
			spec: "- {podPriority: 5, podSelector: {matchLabels: {app: a}}}\n" +
				"- {podPriority: 5, podSelector: {matchLabels: {app: b}}}\n" +
				"- {podPriority: 5, podType: Default, podSelector: {matchLabels: {app: a}}}",
			refused: refused(once),
		},
	})
}

func TestStageMovesForward(t *testing.T) {
	t.Parallel()
	c := server(t)
	stages := []string{"Idle", "Cordon", "Drain", "Complete"}
	for i, from := range stages {
		o := create(t, c, maintenance("from-"+strings.ToLower(from), anyNode+"\nstage: "+from))
		for _, to := range stages[i:] {
			accepts(t, c, o, "spec: {stage: "+to+"}")
		}
		// It is in Complete now, which is final.
		for _, to := range stages[:3] {
			words := fmt.Sprintf("stage cannot go back from Complete to %s; it only moves forward along Idle, Cordon, Drain, Complete: create another NodeMaintenance instead", to)
			refusal{"spec.stage": words}.expect(t, patch(t, c, o, "spec: {stage: "+to+"}"))
		}
	}
}

// ofAnyNode returns a NodeMaintenance of a pool.
func ofAnyNode(name, spec string) string { return maintenance(name, anyNode+"\n"+spec) }

func TestChangeOfNodeMaintenanceIsRefused(t *testing.T) {
	const plans = "spec.drainPlan"
	immutable := refusal{plans: "drainPlan is immutable; complete or delete this NodeMaintenance and create another one with the new plan"}
	early := refusal{"spec.completedNodes": "completedNodes can be added to in stages Cordon and Drain only"}
	grows := refusal{"spec.completedNodes": "completedNodes only grows: these nodes have been given back"}
	kind(ofAnyNode).play(t, map[string]row{
		"a stage back":                   {"stage: Drain", "spec: {stage: Cordon}", refusal{"spec.stage": "stage cannot go back from Drain to Cordon"}},
		"a stage removed":                {"stage: Cordon", "spec: {stage: null}", refusal{"spec.stage": "stage cannot go back from Cordon to Idle"}},
		"a plan added":                   {"stage: Idle", "spec: {drainPlan: [{podPriority: 1}]}", immutable},
		"a plan filled":                  {"drainPlan: []", "spec: {drainPlan: [{podPriority: 1}]}", immutable},
		"a plan removed":                 {"drainPlan: [{podPriority: 1}]", "spec: {drainPlan: null}", immutable},
		"a plan emptied":                 {"drainPlan: [{podPriority: 1}]", "spec: {drainPlan: []}", immutable},
		"an entry added":                 {"drainPlan: [{podPriority: 1}]", "spec: {drainPlan: [{podPriority: 1}, {podPriority: 2}]}", immutable},
		"a priority changed":             {"drainPlan: [{podPriority: 1}]", "spec: {inPlace: {expectedDowntimeSeconds: 7}, drainPlan: [{podPriority: 2}]}", immutable},
		"a selector changed":             {"drainPlan: [{podPriority: 1, podSelector: {matchLabels: {app: a}}}]", "spec: {drainPlan: [{podPriority: 1, podSelector: {matchLabels: {app: b}}}]}", immutable},
		"a node completed while idle":    {"stage: Idle", "spec: {completedNodes: [{name: a}]}", early},
		"a node completed with all":      {"stage: Drain", "spec: {completedNodes: [{name: a}], stage: Complete}", early},
		"a node no longer completed":     {"stage: Drain\ncompletedNodes: [{name: a}, {name: b}]", "spec: {completedNodes: [{name: b}, {name: c}]}", grows},
		"no node completed any longer":   {"stage: Drain\ncompletedNodes: [{name: a}, {name: b}]", "spec: {completedNodes: null}", grows},
		"a node completed twice":         {"stage: Drain", "spec: {completedNodes: [{name: a}, {name: a}]}", refusal{"spec.completedNodes[1]": "Duplicate value"}},
		"a downtime of none":             {"inPlace: {expectedDowntimeSeconds: 5}", "spec: {inPlace: {expectedDowntimeSeconds: 0}}", refusal{"spec.inPlace.expectedDowntimeSeconds": "should be greater than"}},
		"more nodes, and no plan before": {"stage: Drain", "spec: {drainDepth: Default, nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [a, b]}]}]}}", nil},
	})
}

func TestNodesAreCompletedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	c := server(t)
	many := ""
	for i := range 254 {
		many += fmt.Sprintf("{name: node-%d}, ", i)
	}
	accepts(t, c, create(t, c, maintenance("gives-back", anyNode+"\nstage: Cordon")),
		"spec: {completedNodes: [{name: a}]}",
		"spec: {completedNodes: [{name: a}], stage: Drain}",
		"spec: {completedNodes: [{name: b}, {name: a}]}",
		"spec: {completedNodes: ["+many+"{name: a}, {name: b}]}",
		"spec: {stage: Complete}",
		"spec: {reason: it is over}")
}

const (
	whenField = "spec.completeWhen"
	oneNode   = "completeWhen works on one node: select it by matchFields metadata.name"
)

// completed returns a NodeMaintenance of one node that completes on this condition.
func completed(name, when string) string {
	return maintenance(name, aNodeByName+"\ncompleteWhen: "+when)
}

func TestCompleteWhenIsAcceptedOrRefused(t *testing.T) {
	something := refusal{whenField: "give at least one of newBoot: true, kubeletVersion, kernelVersion, osImage and containerRuntimeVersion"}
	versions := refusal{whenField + ".kubeletVersion": "kubeletVersion is a version as nodes report it, such as v1.37.1, or a range of versions with three numbers each, such as >=1.37.0"}
	kind(completed).play(t, map[string]row{
		"a boot":              {spec: "{newBoot: true}"},
		"a version":           {spec: "{kubeletVersion: v1.37.1}"},
		"a vendor's version":  {spec: "{kubeletVersion: v1.37.1-gke.100}"},
		"a range":             {spec: `{kubeletVersion: ">=1.37.0"}`},
		"a range with end":    {spec: `{kubeletVersion: ">=1.36.2 <1.38.0"}`},
		"two ranges":          {spec: `{kubeletVersion: "<1.36.0 || >=1.37.0-rc.1 !=1.37.2"}`},
		"all others":          {spec: `{kernelVersion: 6.12.1-generic, osImage: "Ebb OS 3 (rolling)", containerRuntimeVersion: "containerd://2.1.4"}`},
		"null":                {spec: "null"},
		"nothing":             {spec: "{}", refused: something},
		"no boot":             {spec: "{newBoot: false}", refused: something},
		"an empty version":    {spec: `{kubeletVersion: ""}`, refused: something},
		"only for how long":   {spec: "{readySeconds: 60}", refused: something},
		"a version without v": {spec: "{kubeletVersion: 1.37.1}", refused: versions},
		"a range of two":      {spec: `{kubeletVersion: ">=1.37"}`, refused: versions},
		"a range with v":      {spec: `{kubeletVersion: ">=v1.37.0"}`, refused: versions},
		"a wildcard":          {spec: `{kubeletVersion: ">=1.37.x"}`, refused: versions},
		"a dangling range":    {spec: `{kubeletVersion: ">=1.37.0 ||"}`, refused: versions},
		"a number too large":  {spec: `{kubeletVersion: ">=99999999999999999999.0.0"}`, refused: versions},
		"a node completed":    {spec: "{newBoot: true}\ncompletedNodes: [{name: a}]", refused: refusal{"spec.completedNodes": "completeWhen works on one node: to give it back set stage Complete"}},
	})
}

func TestCompleteWhenNeedsOneNode(t *testing.T) {
	t.Parallel()
	c := server(t)
	for _, terms := range []string{
		"{matchExpressions: [{key: pool, operator: In, values: [a]}]}",
		"{matchFields: [{key: metadata.name, operator: In, values: [a]}]}, {matchFields: [{key: metadata.name, operator: In, values: [b]}]}",
		"{matchFields: [{key: metadata.name, operator: NotIn, values: [a]}]}",
		"{matchExpressions: [{key: a, operator: Exists}], matchFields: [{key: metadata.name, operator: In, values: [a]}]}",
	} {
		err := try(t, c, maintenance("bad", "nodeSelector: {nodeSelectorTerms: ["+terms+"]}\ncompleteWhen: {newBoot: true}"))
		refusal{whenField: oneNode}.expect(t, err)
	}
}

// It may come, change and go until the maintenance is complete.
func TestCompleteWhenMayChange(t *testing.T) {
	t.Parallel()
	c := server(t)
	o := create(t, c, maintenance("complete-when-changes", aNodeByName))
	accepts(t, c, o, "spec: {completeWhen: {newBoot: true}}", "spec: {stage: Drain}", "spec: {completeWhen: {kubeletVersion: v1.37.1}}",
		"spec: {completeWhen: null}", "spec: {completeWhen: {newBoot: true}}")
	if got := read[v1alpha1.NodeMaintenance](t, c, o).Spec.CompleteWhen; got == nil || got.ReadySeconds == nil || *got.ReadySeconds != 30 {
		t.Errorf("it is Ready for %+v, want 30s", got)
	}
	refusal{whenField: oneNode}.expect(t, patch(t, c, o, "spec: {nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}"))
	accepts(t, c, o, "spec: {stage: Complete}")
	for _, change := range []string{"spec: {completeWhen: null}", "spec: {completeWhen: {kernelVersion: any}}"} {
		refusal{whenField: "completeWhen cannot change any more: this NodeMaintenance is Complete"}.expect(t, patch(t, c, o, change))
	}
}

func TestDefaultsOfANodeMaintenance(t *testing.T) {
	t.Parallel()
	c := server(t)
	want := v1alpha1.NodeMaintenanceSpec{
		Stage:      v1alpha1.StageIdle,
		DrainDepth: v1alpha1.PodTypeStatic,
		DrainPlan:  []v1alpha1.DrainPlanEntry{{PodPriority: 1, PodType: v1alpha1.PodTypeDefault}},
		InPlace: &v1alpha1.InPlace{
			ExpectedDowntimeSeconds: 600, LockTimeoutSeconds: 300, OnLockTimeout: v1alpha1.LockTimeoutEvict, ExpectedRebootCount: new(int32(1)),
		},
	}
	for name, nulls := range map[string]string{"defaults": "", "defaults-of-nulls": ", lockTimeoutSeconds: null, onLockTimeout: null"} {
		o := create(t, c, maintenance(name, anyNode+"\ndrainPlan: [{podPriority: 1}]\ninPlace: {expectedDowntimeSeconds: 600"+nulls+`}
deadline: {time: "2036-03-01T22:00:00+01:00"}`))
		got := read[v1alpha1.NodeMaintenance](t, c, o).Spec
		if d := got.Deadline; d == nil || d.OnDeadline != v1alpha1.DeadlineWait || d.DeleteBeforeSeconds != 60 {
			t.Errorf("%s: deadline is %+v, want Wait and 60 seconds", name, d)
		}
		got.NodeSelector, got.Deadline = nil, nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A maintenance may become one in place or get a deadline, and cease to have it, at any stage.
func TestInPlaceAndDeadlineMayChange(t *testing.T) {
	t.Parallel()
	c := server(t)
	o := create(t, c, maintenance("in-place-changes", anyNode+"\ndrainPlan: [{podPriority: 1}]"))
	accepts(t, c, o,
		"spec: {inPlace: {expectedDowntimeSeconds: 60, expectedRebootCount: 0}}",
		"spec: {stage: Drain}",
		"spec: {inPlace: {expectedDowntimeSeconds: 600, onLockTimeout: Wait}}",
		"spec: {inPlace: {lockTimeoutSeconds: 30}}",
		"spec: {inPlace: null}",
		"spec: {inPlace: {expectedDowntimeSeconds: 5}}",
		`spec: {deadline: {time: "2036-03-01T23:00:00Z"}}`,
		"spec: {deadline: {deleteBeforeSeconds: 3}}",
		"spec: {deadline: null}")
	want := &v1alpha1.InPlace{ExpectedDowntimeSeconds: 5, LockTimeoutSeconds: 300, OnLockTimeout: v1alpha1.LockTimeoutEvict, ExpectedRebootCount: new(int32(1))}
	if diff := cmp.Diff(want, read[v1alpha1.NodeMaintenance](t, c, o).Spec.InPlace); diff != "" {
		t.Errorf("inPlace (-want +got):\n%s", diff)
	}
}

// GitOps tools apply on the server, which merges plans as a whole.
func TestServerSideApplyKeepsThePlan(t *testing.T) {
	t.Parallel()
	c := server(t)
	created := create(t, c, maintenance("applied", anyNode+"\ndrainPlan: [{podPriority: 1}, {podPriority: 2}]"))
	apply := ebbtide.NodeMaintenance(created.GetName()).WithSpec(
		ebbtide.NodeMaintenanceSpec().WithStage(v1alpha1.StageDrain).WithDrainPlan(
			ebbtide.DrainPlanEntry().WithPodPriority(1).WithPodType(v1alpha1.PodTypeDefault),
			ebbtide.DrainPlanEntry().WithPodPriority(2).WithPodType(v1alpha1.PodTypeDefault),
		),
	)
	if err := c.Apply(t.Context(), apply, client.FieldOwner("gitops"), client.ForceOwnership); err != nil {
		t.Fatalf("apply: %v", err)
	}
	if spec := read[v1alpha1.NodeMaintenance](t, c, created).Spec; spec.Stage != v1alpha1.StageDrain || len(spec.DrainPlan) != 2 {
		t.Errorf("spec after apply: %+v", spec)
	}
}

// A typed client drops empty lists, which must not look like a changed plan. A status carries
// targets that merge several plans, so no rule of a plan applies to it.
func TestTypedUpdateIsAccepted(t *testing.T) {
	t.Parallel()
	c := server(t)
	for name, spec := range map[string]string{
		"no":    `reason: none`,
		"empty": `drainPlan: []`,
		"one":   `drainPlan: [{podPriority: 0, podSelector: {matchExpressions: [{key: a, operator: Exists}]}}]`,
	} {
		nm := read[v1alpha1.NodeMaintenance](t, c, create(t, c, maintenance("typed-"+name, anyNode+"\n"+spec)))
		nm.Spec.Stage = v1alpha1.StageCordon
		if err := c.Update(t.Context(), nm); err != nil {
			t.Errorf("update with %s plan: %v", name, err)
		}
		nm.Status.NodeStatuses = []v1alpha1.NodeMaintenanceNodeStatus{{
			NodeRef: v1alpha1.NodeReference{Name: "one"},
			DrainTargets: []v1alpha1.DrainPlanEntry{
				{PodPriority: 9, PodType: v1alpha1.PodTypeDefault},
				{PodPriority: 9, PodType: v1alpha1.PodTypeDefault, PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}},
			},
		}}
		if err := c.Status().Update(t.Context(), nm); err != nil {
			t.Errorf("status is refused: %v", err)
		}
	}
}
