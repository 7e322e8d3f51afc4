package api

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	ebbtide "ebbtide.dev/ebbtide/api/v1alpha1/applyconfiguration/api/v1alpha1"
)

func TestNodeMaintenanceIsAccepted(t *testing.T) {
	t.Parallel()
	c := server(t)
	tests := map[string]string{
		"only a node selector":       anyNode,
		"a plan of 64 entries":       anyNode + "\n" + plan(64),
		"an empty plan":              anyNode + "\ndrainPlan: []",
		"a reason of 1,024 letters":  anyNode + "\nreason: " + strings.Repeat("r", 1024),
		"complete at once":           anyNode + "\nstage: Complete",
		"a label without a value":    `nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [""]}]}]}`,
		"a label with a prefix":      `nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: example.com/a_b.C, operator: Exists}]}]}`,
		"a number to compare with":   `nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Gt, values: ["7"]}]}]}`,
		"a node by its name":         `nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [one.example.com]}]}]}`,
		"256 nodes by their names":   "nodeSelector:\n  nodeSelectorTerms:" + strings.Repeat("\n  - {matchFields: [{key: metadata.name, operator: In, values: [one]}]}", 256),
		"1,024 values":               `nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [` + strings.Repeat("b,", 1024) + `]}]}]}`,
		"the extremes of priority":   anyNode + "\ndrainPlan:\n- podPriority: -2147483648\n- podPriority: 2147483647",
		"selectors on one priority":  anyNode + "\ndrainPlan:\n- {podPriority: 1, podSelector: {matchLabels: {app: b}}}\n- {podPriority: 1, podSelector: {matchLabels: {app: a}}}\n- podPriority: 1",
		"priorities per pod type":    anyNode + "\ndrainPlan:\n- podPriority: 9\n- {podPriority: 1, podType: DaemonSet}\n- {podPriority: 0, podType: Static}",
		"expressions in a selector":  anyNode + "\ndrainPlan:\n- {podPriority: 1, podSelector: {matchExpressions: [{key: example.com/tier, operator: NotIn, values: [db, cache]}]}}",
		"a drain that stops earlier": anyNode + "\ndrainDepth: Default",
		"the shortest downtime":      anyNode + "\ninPlace: {expectedDowntimeSeconds: 1, lockTimeoutSeconds: 1}",
		"the longest downtime":       anyNode + "\ninPlace: {expectedDowntimeSeconds: 3600, lockTimeoutSeconds: 86400, onLockTimeout: Wait}",
		"null, which is nothing":     anyNode + "\ninPlace: null",
	}
	for name, spec := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := try(t, c, maintenance("good", spec)); err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

func TestLongestNameIsAccepted(t *testing.T) {
	t.Parallel()
	c := server(t)
	if err := try(t, c, maintenance(strings.Repeat("n", 253), anyNode)); err != nil {
		t.Errorf("a name of 253 characters is refused: %v", err)
	}
	pod := strings.Repeat("longest", 36) + "p"
	if err := try(t, c, evacuation(uid+"-"+pod[:150], pod, "")); err != nil {
		t.Errorf("the evacuation of a pod whose name has 253 characters is refused: %v", err)
	}
	dashed := strings.Repeat("d", 148) + "--pod"
	if err := try(t, c, evacuation(uid+"-"+dashed[:148], dashed, "")); err != nil {
		t.Errorf("the evacuation of a pod whose name is cut at a dash is refused: %v", err)
	}
}

func TestExamplesOfDocumentsAreAccepted(t *testing.T) {
	t.Parallel()
	c := server(t)
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	accepted := map[string]int{}
	blocks := regexp.MustCompile("(?s)<!-- example: accepted by the API server in test/api -->\n```yaml\n(.*?)```")
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks.FindAllSubmatch(text, -1) {
			example := object(t, string(block[1]))
			accepted[example.GetKind()]++
			if example.GetKind() != "NodeMaintenance" {
				example.SetNamespace(metav1.NamespaceDefault)
			}
			if err := c.Create(t.Context(), example, client.DryRunAll); err != nil {
				t.Errorf("the %s of %s is refused: %v", example.GetKind(), filepath.Base(page), err)
			}
		}
	}
	for _, kind := range []string{"NodeMaintenance", "Machine", "MachineDrainRule"} {
		if accepted[kind] == 0 {
			t.Errorf("no document shows a %s", kind)
		}
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c := server(t)
	name := create(t, c, maintenance("defaults", anyNode+"\ndrainPlan: [{podPriority: 1}]")).GetName()
	var nm v1alpha1.NodeMaintenance
	if err := c.Get(t.Context(), client.ObjectKey{Name: name}, &nm); err != nil {
		t.Fatal(err)
	}
	nm.Spec.NodeSelector = nil
	want := v1alpha1.NodeMaintenanceSpec{
		Stage:      v1alpha1.StageIdle,
		DrainDepth: v1alpha1.PodTypeStatic,
		DrainPlan:  []v1alpha1.DrainPlanEntry{{PodPriority: 1, PodType: v1alpha1.PodTypeDefault}},
	}
	if diff := cmp.Diff(want, nm.Spec); diff != "" {
		t.Errorf("NodeMaintenance (-want +got):\n%s", diff)
	}

	name = create(t, c, evacuation(uid+"-defaults", "defaults", "")).GetName()
	var evac v1alpha1.Evacuation
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &evac); err != nil {
		t.Fatal(err)
	}
	if got := evac.Spec.ProgressDeadlineSeconds; got == nil || *got != v1alpha1.DefaultProgressDeadlineSeconds {
		t.Errorf("progressDeadlineSeconds is %v, want %d", got, v1alpha1.DefaultProgressDeadlineSeconds)
	}
}

// GitOps tools apply on the server, which merges plans as a whole.
func TestServerSideApply(t *testing.T) {
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
	var nm v1alpha1.NodeMaintenance
	if err := c.Get(t.Context(), client.ObjectKey{Name: created.GetName()}, &nm); err != nil {
		t.Fatal(err)
	}
	if nm.Spec.Stage != v1alpha1.StageDrain || len(nm.Spec.DrainPlan) != 2 {
		t.Errorf("spec after apply: %+v", nm.Spec)
	}
}

// A status carries targets that merge several plans, so it is bound by none of
// the rules of a plan.
func TestStatusIsAccepted(t *testing.T) {
	t.Parallel()
	c := server(t)
	created := create(t, c, maintenance("status", anyNode))
	nm := &v1alpha1.NodeMaintenance{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: created.GetName()}, nm); err != nil {
		t.Fatal(err)
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
	nm.Status.NodeStatuses = []v1alpha1.NodeMaintenanceNodeStatus{{
		NodeRef: v1alpha1.NodeReference{Name: "one"},
		DrainTargets: []v1alpha1.DrainPlanEntry{
			{PodPriority: 9, PodType: v1alpha1.PodTypeDefault},
			{PodPriority: 9, PodType: v1alpha1.PodTypeDefault, PodSelector: selector},
		},
	}}
	if err := c.Status().Update(t.Context(), nm); err != nil {
		t.Errorf("status is refused: %v", err)
	}
}

// A typed client drops empty lists; that must not look like a changed plan.
func TestTypedUpdateKeepsThePlan(t *testing.T) {
	t.Parallel()
	c := server(t)
	tests := map[string]string{
		"no plan":       `reason: none`,
		"an empty plan": `drainPlan: []`,
		"a plan":        `drainPlan: [{podPriority: 0, podSelector: {matchExpressions: [{key: a, operator: Exists}]}}]`,
	}
	for name, spec := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			created := create(t, c, maintenance("typed-"+strings.ReplaceAll(name, " ", "-"), anyNode+"\n"+spec))
			nm := &v1alpha1.NodeMaintenance{}
			if err := c.Get(t.Context(), client.ObjectKey{Name: created.GetName()}, nm); err != nil {
				t.Fatal(err)
			}
			nm.Spec.Stage = v1alpha1.StageCordon
			if err := c.Update(t.Context(), nm); err != nil {
				t.Errorf("update: %v", err)
			}
		})
	}
}
