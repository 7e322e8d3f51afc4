package api

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// told is a condition in the form of a patch.
func told(kind, status string) string {
	return fmt.Sprintf(`{type: %s, status: "%s", reason: Any, message: any, lastTransitionTime: "2026-01-01T00:00:00Z"}`, kind, status)
}

// mayWriteStatus returns an API server with our policies and no webhook, a user
// who may write everything of Machines and Clusters, and the manager.
func mayWriteStatus(t *testing.T) (admin client.Client, name string, user, manager client.Client) {
	t.Helper()
	server := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	installPolicies(t, server)
	write := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	fleet := rbacv1.PolicyRule{APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Verbs: write, Resources: []string{
		"machines", "machines/status", "machines/finalizers", "clusters", "clusters/status", "clusters/finalizers",
	}}
	name, user = server.User(t, fleet)
	manager = theManager(t, server, fleet, rest.NoWarnings{})
	return server.Client, name, user, manager
}

// known is what the manager has noted of a Machine whose Node is being drained.
const known = `status:
  observedGeneration: 1
  phase: Deleting
  nodeRef: {name: node-1, uid: uid-1}
  controlPlaneHookSeen: true
  deletion: {nodeDrainStartTime: "2026-01-01T00:00:00Z"}
  conditions: [`

// The right to write machines/status was the right to have any node drained and
// deleted with our rights, or to have a node deleted before it is drained.
func TestAForgedStatusOfAMachineIsRefused(t *testing.T) {
	t.Parallel()
	admin, name, user, manager := mayWriteStatus(t)
	empty := create(t, admin, machine("status-empty", bare))
	noted := create(t, admin, machine("status-noted", bare))
	if err := patch(t, manager, noted, known+told("Drained", "False")+", "+told("PreDrainBackupSucceeded", "False")+"]"); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		of            *unstructured.Unstructured
		forged, field string
	}{
		"a node":                     {empty, "nodeRef: {name: node-2, uid: uid-2}", "status.nodeRef"},
		"another node":               {noted, "nodeRef: {name: node-2, uid: uid-2}", "status.nodeRef"},
		"another UID":                {noted, "nodeRef: {uid: uid-2}", "status.nodeRef"},
		"no node":                    {noted, "nodeRef: null", "status.nodeRef"},
		"a drain that is over":       {empty, `deletion: {waitForNodeVolumeDetachStartTime: "2026-01-01T00:00:00Z"}`, "status.deletion"},
		"a drain that is over now":   {noted, `deletion: {waitForNodeVolumeDetachStartTime: "2026-01-01T00:00:00Z"}`, "status.deletion"},
		"a drain that began earlier": {noted, `deletion: {nodeDrainStartTime: "2020-01-01T00:00:00Z"}`, "status.deletion"},
		"a drain that has not begun": {noted, "deletion: null", "status.deletion"},
		"a hook that was seen":       {empty, "controlPlaneHookSeen: true", "status.controlPlaneHookSeen"},
		"a hook that was not seen":   {noted, "controlPlaneHookSeen: false", "status.controlPlaneHookSeen"},
		"another phase":              {noted, "phase: Running", "status.phase"},
		"another generation":         {noted, "observedGeneration: 7", "status.observedGeneration"},
		"a drain that is done":       {empty, "conditions: [" + told("Drained", "True") + "]", `condition "Drained"`},
		"a drain that is done now": {
			noted, "conditions: [" + told("Drained", "True") + ", " + told("PreDrainBackupSucceeded", "False") + "]", `condition "Drained"`,
		},
		"a condition less":     {noted, "conditions: [" + told("PreDrainBackupSucceeded", "False") + "]", `condition "Drained"`},
		"no condition":         {noted, "conditions: null", `condition "Drained"`},
		"something of ours":    {noted, "conditions: [" + told("Drained", "False") + ", " + told("VolumeDetachSucceeded", "True") + "]", `condition "VolumeDetachSucceeded"`},
		"nothing that we know": {noted, "conditions: [" + told("Drained", "False") + ", " + told("Anything", "True") + "]", `condition "Anything"`},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			for who, c := range map[string]client.Client{name: user, "": admin} {
				err := patch(t, c, test.of, "status:\n"+indent(test.forged, "  "))
				words := "may not change " + test.field + "; only Ebbtide writes the status of a Machine, because it drains and deletes the Node that is named there"
				if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), who) {
					t.Errorf("error %v, want a refusal that says %s", err, words)
				}
			}
		})
	}
}

// Fields of a status that come later are guarded, too: the policy names none.
func TestEveryFieldOfAStatusOfAMachineIsGuarded(t *testing.T) {
	t.Parallel()
	tried := map[string]string{
		"observedGeneration": "7", "phase": "Running", "controlPlaneHookSeen": "true", "infrastructureSeen": "true",
		"nodeRef": "{name: a, uid: b}", "deletion": `{nodeDrainStartTime: "2026-01-01T00:00:00Z"}`, "conditions": "[" + told("Drained", "True") + "]",
	}
	admin, _, user, _ := mayWriteStatus(t)
	m := create(t, admin, machine("status-fields", bare))
	for i := range reflect.TypeFor[v1alpha1.MachineStatus]().NumField() {
		field, _, _ := strings.Cut(reflect.TypeFor[v1alpha1.MachineStatus]().Field(i).Tag.Get("json"), ",")
		value, known := tried[field]
		if !known {
			t.Errorf("nobody has tried to forge status.%s", field)
			continue
		}
		if err := patch(t, user, m, "status: {"+field+": "+value+"}"); !apierrors.IsForbidden(err) {
			t.Errorf("status.%s can be forged: %v", field, err)
		}
	}
}

// Whoever implements a hook says there how it goes, as machine-deletion-hooks asks.
func TestHookIsReportedInTheStatusOfAMachine(t *testing.T) {
	t.Parallel()
	admin, _, user, manager := mayWriteStatus(t)
	m := create(t, admin, machine("status-hook", bare))
	drained, ready := told("Drained", "False"), told("NodeReady", "True")
	if err := patch(t, manager, m, known+drained+", "+ready+"]"); err != nil {
		t.Fatal(err)
	}
	for _, hooks := range []string{
		told("PreDrainMigrateImportantAppSucceeded", "False"), told("PreDrainMigrateImportantAppSucceeded", "True"),
		told("PreDrainMigrateImportantAppSucceed", "False"),
		told("PreCreateAddressSucceeded", "True") + ", " + told("PreTerminatebackup-dataSucceeded", "False"),
		told("example.com/PreTerminateBackupSucceeded", "True"),
	} {
		for _, all := range []string{drained + ", " + ready + ", " + hooks, ready + ", " + drained + ", " + hooks} {
			if err := patch(t, user, m, "status: {conditions: ["+all+"]}"); err != nil {
				t.Errorf("%s is refused: %v", all, err)
			}
		}
	}
	if err := patch(t, user, m, "status: {conditions: ["+drained+", "+ready+"]}"); err != nil {
		t.Errorf("the end of a hook is refused: %v", err)
	}
	if err := patch(t, user, m, "metadata: {labels: {a: b}}"); err != nil {
		t.Errorf("a label is refused: %v", err)
	}
	var many []string
	for n := range 193 {
		many = append(many, told(fmt.Sprintf("PreDrainHook%dSucceeded", n), "True"))
	}
	long := strings.Replace(told("PreDrainLongSucceeded", "True"), "message: any", "message: "+strings.Repeat("a", 4097), 1)
	for _, flood := range []string{strings.Join(many, ", "), long} {
		err := patch(t, user, m, "status: {conditions: ["+drained+", "+ready+", "+flood+"]}")
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "a Machine has room for 192 conditions of hooks") {
			t.Errorf("error %v, want too much refused", err)
		}
	}
	if err := patch(t, user, m, "status: {conditions: ["+drained+", "+ready+", "+strings.Join(many[1:], ", ")+"]}"); err != nil {
		t.Errorf("as much as there is room for is refused: %v", err)
	}
}

// What is noted there lets Nodes be left undrained.
func TestAForgedStatusOfAClusterIsRefused(t *testing.T) {
	t.Parallel()
	admin, name, user, manager := mayWriteStatus(t)
	c := create(t, admin, workloadCluster("status-cluster", "{}"))
	if err := patch(t, manager, c, "status: {controlPlaneMachinesSeen: true}"); err != nil {
		t.Fatal(err)
	}
	for _, forged := range []string{"controlPlaneMachinesSeen: false", "observedGeneration: 7", "conditions: [" + told("Reachable", "True") + "]"} {
		err := patch(t, user, c, "status: {"+forged+"}")
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), fmt.Sprintf("user %q may not change the status of a Cluster", name)) {
			t.Errorf("%s: error %v, want it refused", forged, err)
		}
	}
	if err := patch(t, user, c, "spec: {paused: true}"); err != nil {
		t.Errorf("a pause is refused: %v", err)
	}
}

// Without its UID a Node of the same name, made by somebody else, is taken for the
// Machine's.
func TestANodeOfAMachineIsKnownByItsUID(t *testing.T) {
	t.Parallel()
	admin, _, _, manager := mayWriteStatus(t)
	m := create(t, admin, machine("status-uid", bare))
	for _, ref := range []string{"{name: node-1}", `{name: node-1, uid: ""}`, `{name: "", uid: uid-1}`} {
		if err := patch(t, manager, m, "status: {nodeRef: "+ref+"}"); !apierrors.IsInvalid(err) {
			t.Errorf("nodeRef %s: error %v, want it refused", ref, err)
		}
	}
	if err := patch(t, manager, m, "status: {nodeRef: {name: node-1, uid: uid-1}}"); err != nil {
		t.Error(err)
	}
}
