package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// machine is a Machine with these lines in its spec.
func machine(spec string) string {
	return fmt.Sprintf(`
apiVersion: ebbtide.dev/v1alpha1
kind: Machine
metadata: {name: one, namespace: default}
spec:
%s`, indent(spec, "  "))
}

// bare is what a Machine needs.
const bare = "clusterName: east\ninfrastructureRef: {apiVersion: infra.example.com/v1, kind: BareMachine, name: one}\n"

// The first is the example of machine-deletion-hooks.
func TestMachineIsAccepted(t *testing.T) {
	t.Parallel()
	c := server(t)
	tests := map[string]string{
		"hooks at all points": `
lifecycleHooks:
  preCreate:
  - name: IPAMController
    owner: my-ipam-controller
  preDrain:
  - name: MigrateImportantApp
    owner: my-app-migration-controller
  preTerminate:
  - name: BackupFileSytem
    owner: my-backup-controller
  - name: WaitForStorageDetach
    owner: my-custom-storage-detach-controller`,
		"nothing more":                    "",
		"a bootstrap config":              `bootstrap: {configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: KubeadmConfig, name: one}}`,
		"a provider ID":                   `providerID: example:///rack-1/one`,
		"the shortest hook":               `lifecycleHooks: {preDrain: [{name: Abc, owner: abc}]}`,
		"the longest hook":                `lifecycleHooks: {preDrain: [{name: ` + strings.Repeat("n", 256) + `, owner: ` + strings.Repeat("o", 512) + `}]}`,
		"the names of the hooks document": `lifecycleHooks: {preDrain: [{name: pre-drain, owner: somebody}, {name: example.com/x, owner: somebody}, {name: Move2, owner: somebody}]}`,
		"64 hooks":                        `lifecycleHooks: {preDrain: [` + hooks(64) + `]}`,
		"one name at all points":          `lifecycleHooks: {preCreate: [` + hooks(1) + `], preDrain: [` + hooks(1) + `], preTerminate: [` + hooks(1) + `]}`,
		"no limits":                       `deletion: {nodeDrainTimeoutSeconds: 0, nodeVolumeDetachTimeoutSeconds: 0, nodeDeletionTimeoutSeconds: 0}`,
		"the longest limits":              `deletion: {nodeDrainTimeoutSeconds: 2147483647, nodeVolumeDetachTimeoutSeconds: 2147483647, nodeDeletionTimeoutSeconds: 2147483647}`,
		"an owner with odd letters":       `lifecycleHooks: {preDrain: [{name: Abc, owner: "Jörg (team/öl), call 112"}]}`,
		"a provider ID of any words":      `providerID: "any words 1"`,
	}
	for name, spec := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := try(t, c, machine(bare+spec)); err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

// hooks are n hooks with different names.
func hooks(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("{name: Hook%c%c, owner: somebody}", 'A'+i/26, 'A'+i%26))
	}
	return strings.Join(list, ", ")
}

func TestDefaultsOfAMachine(t *testing.T) {
	t.Parallel()
	c := server(t)
	create(t, c, strings.Replace(machine(bare+"deletion: {nodeDrainTimeoutSeconds: 60}"), "name: one", "name: defaults", 1))
	var got v1alpha1.Machine
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "defaults"}, &got); err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.MachineDeletionSpec{
		NodeDrainTimeoutSeconds: ptr.To[int32](60), NodeDeletionTimeoutSeconds: ptr.To[int32](v1alpha1.DefaultNodeDeletionTimeoutSeconds),
	}
	if diff := cmp.Diff(want, got.Spec.Deletion); diff != "" {
		t.Errorf("deletion (-want +got):\n%s", diff)
	}
}

func TestMachineIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	const cluster = `use the name of a Cluster, such as "east"`
	tests := map[string]struct {
		spec string
		want refusal
	}{
		"nothing in it":         {`{}`, refusal{"spec.clusterName": "Required value", "spec.infrastructureRef": "Required value"}},
		"an empty cluster":      {strings.Replace(bare, "east", `""`, 1), refusal{"spec.clusterName": "should be at least 1 chars long"}},
		"a cluster elsewhere":   {strings.Replace(bare, "east", "other/east", 1), refusal{"spec.clusterName": cluster}},
		"a cluster in capitals": {strings.Replace(bare, "east", "East", 1), refusal{"spec.clusterName": cluster}},
		"an empty provider ID":  {bare + `providerID: ""`, refusal{"spec.providerID": "should be at least 1 chars long"}},
		"a provider ID of 513":  {bare + `providerID: ` + strings.Repeat("p", 513), refusal{"spec.providerID": "may not be more than 512"}},
		"negative limits": {
			bare + `deletion: {nodeDrainTimeoutSeconds: -1, nodeVolumeDetachTimeoutSeconds: -1, nodeDeletionTimeoutSeconds: -1}`,
			refusal{
				"spec.deletion.nodeDrainTimeoutSeconds":        "should be greater than or equal to 0",
				"spec.deletion.nodeVolumeDetachTimeoutSeconds": "should be greater than or equal to 0",
				"spec.deletion.nodeDeletionTimeoutSeconds":     "should be greater than or equal to 0",
			},
		},
		"a limit above int32": {
			bare + `deletion: {nodeDrainTimeoutSeconds: 2147483648}`,
			refusal{
				"spec.deletion.nodeDrainTimeoutSeconds": "should be less than or equal to 2147483647",
			},
		},
		"a limit with a unit": {bare + `deletion: {nodeDrainTimeoutSeconds: 10m}`, refusal{"spec.deletion.nodeDrainTimeoutSeconds": `must be of type integer: "string"`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.want.expect(t, try(t, c, machine(test.spec)))
		})
	}
}

// Faults of a list of hooks, below its path.
var badHooks = map[string]struct {
	hooks string
	want  refusal
}{
	"nothing in it":          {`{}`, refusal{"[0].name": "Required value", "[0].owner": "Required value"}},
	"no owner":               {`{name: Abc}`, refusal{"[0].owner": "Required value"}},
	"a name of 2 letters":    {`{name: Ab, owner: somebody}`, refusal{"[0].name": "should be at least 3 chars long"}},
	"a name of 257 letters":  {`{name: ` + strings.Repeat("n", 257) + `, owner: somebody}`, refusal{"[0].name": "may not be more than 256"}},
	"a name of 300 letters":  {`{name: ` + strings.Repeat("n", 300) + `, owner: somebody}`, refusal{"[0].name": "may not be more than 256"}},
	"a name with a space":    {`{name: Move Apps, owner: somebody}`, refusal{"[0].name": "use at least one letter, and no spaces"}},
	"a name with a line":     {`{name: "Move\nApps", owner: somebody}`, refusal{"[0].name": "no spaces"}},
	"a name of digits":       {`{name: "123", owner: somebody}`, refusal{"[0].name": "use at least one letter"}},
	"an owner of 2 letters":  {`{name: Abc, owner: me}`, refusal{"[0].owner": "should be at least 3 chars long"}},
	"an owner of 513":        {`{name: Abc, owner: ` + strings.Repeat("o", 513) + `}`, refusal{"[0].owner": "may not be more than 512"}},
	"the same name twice":    {`{name: Abc, owner: somebody}, {name: Abc, owner: other}`, refusal{"[1]": "Duplicate value"}},
	"65 hooks":               {hooks(65), refusal{"": "must have at most 64 items"}},
	"bad ones at two places": {`{name: A B, owner: somebody}, {name: "1-2", owner: somebody}`, refusal{"[0].name": "no spaces", "[1].name": "at least one letter"}},
}

func TestHooksAreRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	for name, test := range badHooks {
		for _, point := range []string{"preCreate", "preDrain", "preTerminate"} {
			t.Run(name+" in "+point, func(t *testing.T) {
				t.Parallel()
				spec := fmt.Sprintf("lifecycleHooks: {%s: [%s]}", point, test.hooks)
				at(test.want, "spec.lifecycleHooks."+point).expect(t, try(t, c, machine(bare+spec)))
			})
		}
	}
}
