package bridge_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ebbtide.dev/ebbtide/internal/core/bridge"
)

const openShift = `
apiVersion: machine.openshift.io/v1beta1
kind: Machine
metadata:
  namespace: openshift-machine-api
  name: worker-1
  ownerReferences: [{apiVersion: machine.openshift.io/v1beta1, kind: MachineSet, name: workers, uid: u, controller: true}]
spec:
  providerID: aws:///i-7
  lifecycleHooks: {preDrain: [{name: backup, owner: db-team}], preTerminate: [{name: x, owner: z}]}
status: {phase: Running, nodeRef: {name: node-7}}
`

// A step changes our hook and nothing of others, in either form, and twice is once.
func TestChangesOfAStep(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		from  string
		steps []bridge.Step
		path  []string
		want  any
	}{
		"the hook is put on": {
			openShift,
			[]bridge.Step{bridge.Put, bridge.Put},
			[]string{"spec", "lifecycleHooks", "preDrain"},
			[]any{map[string]any{"name": "backup", "owner": "db-team"}, map[string]any{"name": "ebbtide", "owner": "ebbtide.dev"}},
		},
		"and taken off": {
			openShift,
			[]bridge.Step{bridge.Put, bridge.Finish},
			[]string{"spec", "lifecycleHooks", "preDrain"},
			[]any{map[string]any{"name": "backup", "owner": "db-team"}},
		},
		"never with the annotation with which hooks are not asked": {
			openShift, []bridge.Step{bridge.Put, bridge.Finish}, []string{"metadata", "annotations"}, nil,
		},
		"other hooks stay": {
			openShift,
			[]bridge.Step{bridge.Put, bridge.Take},
			[]string{"spec", "lifecycleHooks", "preTerminate"},
			[]any{map[string]any{"name": "x", "owner": "z"}},
		},
		"nothing is left to be drained": {
			waiting,
			[]bridge.Step{bridge.Finish},
			[]string{"metadata", "annotations"},
			map[string]any{"machine.cluster.x-k8s.io/exclude-node-draining": "drained by Ebbtide"},
		},
		"Cluster API drains by itself": {waiting, []bridge.Step{bridge.Take}, []string{"metadata", "annotations"}, map[string]any{}},
		"and on again": {
			waiting,
			[]bridge.Step{bridge.Take, bridge.Put},
			[]string{"metadata", "annotations"},
			map[string]any{"pre-drain.delete.hook.machine.cluster.x-k8s.io/ebbtide": "ebbtide.dev"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			machine := object(t, test.from)
			for _, step := range test.steps {
				changed, err := bridge.Change(machine, step, now)
				if err != nil {
					t.Fatal(err)
				}
				if changed != nil {
					machine = changed
				}
			}
			got, _, _ := unstructured.NestedFieldNoCopy(machine.Object, test.path...)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s", diff)
			}
		})
	}
}

// A Machine of OpenShift has no Cluster: it is asked for by its MachineSet or itself, and
// its node is of this cluster, or gone.
func TestMachinesOfOpenShift(t *testing.T) {
	t.Parallel()
	s := bridge.Snapshot{Now: now, Machine: read(t, openShift), Around: &bridge.Around{Opt: "true"}}
	if s.Machine.Around != "workers" || told(t, bridge.Decide(s)) != "put" {
		t.Errorf("in %s: %s", s.Machine.Around, told(t, bridge.Decide(s)))
	}
	s.Machine.Deleting, s.Machine.Hooked, s.Machine.Waits = true, true, true
	if got := told(t, bridge.Decide(s)); got != "keep; BridgeWaiting" {
		t.Error(got)
	}
	s.Machine.Others = nil
	if got := told(t, bridge.Decide(s)); got != "finish; BridgeDone" {
		t.Error(got)
	}
	s.Node = node7()
	if got := told(t, bridge.Decide(s)); got != "keep; BridgeWaiting" {
		t.Error(got)
	}
	s.Node.Annotations = map[string]string{"machine.openshift.io/machine": "openshift-machine-api/worker-1"}
	if got := told(t, bridge.Decide(s)); got != "create "+bridge.MaintenanceName(bridge.OpenShift, "openshift-machine-api", "worker-1")+", keep" {
		t.Error(got)
	}
}

// What is not as its controller would have it is not there: it can neither stop the manager
// nor make it do anything.
func TestMachinesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"{apiVersion: cluster.x-k8s.io/v1beta2, kind: Machine}",
		"{apiVersion: cluster.x-k8s.io/v1beta2, kind: Machine, metadata: {deletionTimestamp: x}, spec: 1, status: {conditions: [1, {type: 2}], nodeRef: []}}",
		"{apiVersion: machine.openshift.io/v1beta1, kind: Machine, spec: {lifecycleHooks: {preDrain: [1, {name: 2}]}}}",
		"{apiVersion: machine.openshift.io/v1beta1, kind: Machine, spec: {lifecycleHooks: {preDrain: {}}}}",
	} {
		m := bridge.Read(object(t, text))
		if d := bridge.Decide(bridge.Snapshot{Now: now, Machine: &m}); told(t, d) != "keep" {
			t.Errorf("%s: %s", text, told(t, d))
		}
	}
}

// A hook of our name that somebody else has put on stays as it is, whatever is decided.
func TestTheHookOfAnotherEbbtideStays(t *testing.T) {
	t.Parallel()
	machine := object(t, strings.Replace(waiting, "ebbtide: ebbtide.dev", "ebbtide: other-ebbtide", 1))
	for _, step := range []bridge.Step{bridge.Put, bridge.Take, bridge.Finish} {
		if changed, err := bridge.Change(machine, step, now); changed != nil || err != nil {
			t.Errorf("step %d: %v, %v", step, changed, err)
		}
	}
}
