package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// rollout returns a NodeRollout with these lines in its spec.
func rollout(name, spec string) string {
	return strings.Replace(maintenance(name, spec), "kind: NodeMaintenance", "kind: NodeRollout", 1)
}

// ofPool returns a NodeRollout of a pool.
func ofPool(name, spec string) string { return rollout(name, anyNode+"\n"+spec) }

const objectGate = "object: {apiVersion: v1, kind: ConfigMap, namespace: ops, name: fleet, jsonPath: .data.state, value: go}"

func nineGates() (gates string) {
	for i := range 9 {
		gates += fmt.Sprintf("\n- {name: gate-%d, prometheus: {query: up}}", i)
	}
	return gates
}

func TestNodeRolloutIsAcceptedOrRefused(t *testing.T) {
	percent := refusal{"spec.maxUnavailable": "maxUnavailable is a number from 1 to 256, or a percentage from 1% to 100%"}
	failures := refusal{"spec.failure.maxFailures": "maxFailures is a number of at least 1, or a percentage from 1% to 100%"}
	clock := func(path string) refusal { return refusal{path: "should match"} }
	kind(ofPool).play(t, map[string]row{
		"only a node selector": {},
		"all of it": {spec: `
target: {kubeletVersion: ">=1.37.0", readySeconds: 60}
after: StayDrained
maxUnavailable: 25%
topologyKey: topology.kubernetes.io/zone
controlPlane: Last
canary: {nodeCount: 2, soakSeconds: 3600}
soakSeconds: 60
windows: [{days: [mon, sun], from: "22:00", to: "04:00", timeZone: Europe/Berlin}, {from: "00:00", to: "00:00"}]
blackouts: [{startTime: "2036-12-20T00:00:00Z", endTime: "2037-01-07T00:00:00Z", reason: change freeze}]
failure: {drainTimeoutSeconds: 0, workTimeoutSeconds: 0, retryCount: 0, maxFailures: 10%}
maintenance: {reason: kernel, drainDepth: DaemonSet, drainPlan: [{podPriority: 1}], inPlace: {expectedDowntimeSeconds: 60}}
nodes: [{name: a, skip: true}, {name: b, forgivenAttemptCount: 2}]
state: Paused`},
		"a number of 256":                 {spec: "maxUnavailable: 256"},
		"a percentage of 1":               {spec: "maxUnavailable: 1%"},
		"a percentage of 100":             {spec: "maxUnavailable: 100%\nfailure: {maxFailures: 100%}"},
		"no unavailable node":             {spec: "maxUnavailable: 0", refused: percent},
		"257 unavailable nodes":           {spec: "maxUnavailable: 257", refused: percent},
		"0 percent":                       {spec: "maxUnavailable: 0%", refused: percent},
		"101 percent":                     {spec: "maxUnavailable: 101%", refused: percent},
		"a percentage with a comma":       {spec: `maxUnavailable: "1,5%"`, refused: percent},
		"a number in quotes":              {spec: `maxUnavailable: "3"`, refused: percent},
		"no failure at all":               {spec: "failure: {maxFailures: 0}", refused: failures},
		"0 percent of failures":           {spec: "failure: {maxFailures: 0%}", refused: failures},
		"a thousand failures":             {spec: "failure: {maxFailures: 1000}"},
		"11 retries":                      {spec: "failure: {retryCount: 11}", refused: refusal{"spec.failure.retryCount": "should be less than or equal to 10"}},
		"a negative time":                 {spec: "failure: {drainTimeoutSeconds: -1}", refused: refusal{"spec.failure.drainTimeoutSeconds": "should be greater than or equal to 0"}},
		"no canary":                       {spec: "canary: {nodeCount: 0}", refused: refusal{"spec.canary.nodeCount": "should be greater than or equal to 1"}},
		"257 canaries":                    {spec: "canary: {nodeCount: 257}", refused: refusal{"spec.canary.nodeCount": "should be less than or equal to 256"}},
		"a day and a second of soak":      {spec: "soakSeconds: 86401", refused: refusal{"spec.soakSeconds": "should be less than or equal to 86400"}},
		"a topology key with a space":     {spec: "topologyKey: my zone", refused: refusal{"spec.topologyKey": "use a label key such as topology.kubernetes.io/zone"}},
		"a long topology key":             {spec: "topologyKey: " + strings.Repeat("k", 64), refused: refusal{"spec.topologyKey": "use a label key such as"}},
		"another order of control planes": {spec: "controlPlane: Never", refused: refusal{"spec.controlPlane": "supported values"}},
		"another end":                     {spec: "after: Reboot", refused: refusal{"spec.after": "supported values"}},
		"always, by conditions":           {spec: "mode: Continuous\nwhen: {rebootRequired: true, conditions: [KernelDeadlock]}\nreboot: true"},
		"always, without a need":          {spec: "mode: Continuous", refused: refusal{"spec.mode": "mode Continuous requires target or when"}},
		"a reboot of nodes that stay":     {spec: "reboot: true\nafter: StayDrained", refused: refusal{"spec.reboot": "exclude each other"}},
		"17 conditions":                   {spec: "when: {conditions: [c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17]}", refused: refusal{"spec.when.conditions": "must have at most 16 items"}},
		"another state":                   {spec: "state: Done", refused: refusal{"spec.state": "supported values"}},
		"a day that does not exist":       {spec: `windows: [{days: [monday], from: "22:00", to: "04:00"}]`, refused: refusal{"spec.windows[0].days[0]": "supported values"}},
		"a day twice":                     {spec: `windows: [{days: [mon, mon], from: "22:00", to: "04:00"}]`, refused: refusal{"spec.windows[0].days[1]": "Duplicate value"}},
		"a window from 24:00":             {spec: `windows: [{from: "24:00", to: "04:00"}]`, refused: clock("spec.windows[0].from")},
		"a window to 4":                   {spec: `windows: [{from: "22:00", to: "4:00"}]`, refused: clock("spec.windows[0].to")},
		"a window without an end":         {spec: `windows: [{from: "22:00"}]`, refused: refusal{"spec.windows[0].to": "Required value"}},
		"33 windows":                      {spec: "windows:" + strings.Repeat("\n- {from: '22:00', to: '04:00'}", 33), refused: refusal{"spec.windows": "must have at most 32 items"}},
		"a blackout of no time":           {spec: `blackouts: [{startTime: "2036-12-20T00:00:00Z", endTime: "2036-12-20T01:00:00+01:00"}]`, refused: refusal{"spec.blackouts[0].endTime": "endTime must be after startTime"}},
		"a blackout without an end":       {spec: `blackouts: [{startTime: "2036-12-20T00:00:00Z"}]`, refused: refusal{"spec.blackouts[0].endTime": "Required value"}},
		"a blackout for ever":             {spec: `blackouts: [{startTime: "2036-12-20T00:00:00Z", endTime: never}]`, refused: refusal{"spec.blackouts[0].endTime": "must be of type date-time"}},
		"a node twice":                    {spec: "nodes: [{name: a}, {name: a}]", refused: refusal{"spec.nodes[1]": "Duplicate value"}},
		"a node without a name":           {spec: "nodes: [{skip: true}]", refused: refusal{"spec.nodes[0].name": "Required value"}},
		"fewer than no attempts":          {spec: "nodes: [{name: a, forgivenAttemptCount: -1}]", refused: refusal{"spec.nodes[0].forgivenAttemptCount": "should be greater than or equal to 0"}},
		"a target of nothing":             {spec: "target: {readySeconds: 60}", refused: refusal{"spec.target": "give at least one of newBoot: true"}},
		"a range that is none":            {spec: `target: {kubeletVersion: ">=1.37"}`, refused: refusal{"spec.target.kubeletVersion": "kubeletVersion is a version as nodes report it"}},
	})
}

func TestJobsAndGatesAreAcceptedOrRefused(t *testing.T) {
	kind(ofPool).play(t, map[string]row{
		"a job":                      {spec: "job: {namespace: ops, cronJob: patch.v1}\nreboot: true"},
		"a job of nodes that stay":   {spec: "job: {namespace: ops, cronJob: patch}\nafter: StayDrained", refused: refusal{"spec.job": "exclude each other"}},
		"a job without a namespace":  {spec: "job: {cronJob: patch}", refused: refusal{"spec.job.namespace": "Required value"}},
		"a job of another namespace": {spec: "job: {namespace: ops/x, cronJob: patch}", refused: refusal{"spec.job.namespace": "should match"}},
		"a job of a long name":       {spec: "job: {namespace: ops, cronJob: " + strings.Repeat("p", 53) + "}", refused: refusal{"spec.job.cronJob": "may not be more than 52"}},
		"a job with a command":       {spec: "job: {namespace: ops, cronJob: 'patch; reboot'}", refused: refusal{"spec.job.cronJob": "should match"}},
		"gates and requirements":     {spec: "requires: [Room, NoLoss]\ngates: [{name: a, prometheus: {query: up}}, {name: b, " + objectGate + "}]"},
		"an unknown requirement":     {spec: "requires: [Luck]", refused: refusal{"spec.requires[0]": "supported values"}},
		"a requirement twice":        {spec: "requires: [Room, Room]", refused: refusal{"spec.requires[1]": "Duplicate value"}},
		"nine gates":                 {spec: "gates:" + nineGates(), refused: refusal{"spec.gates": "must have at most 8 items"}},
		"a gate twice":               {spec: "gates: [{name: a, prometheus: {query: up}}, {name: a, prometheus: {query: up}}]", refused: refusal{"spec.gates[1]": "Duplicate value"}},
		"a gate of nothing":          {spec: "gates: [{name: a}]", refused: refusal{"spec.gates[0]": "a gate has either prometheus or object"}},
		"a gate of both":             {spec: "gates: [{name: a, prometheus: {query: up}, " + objectGate + "}]", refused: refusal{"spec.gates[0]": "a gate has either prometheus or object"}},
		"a gate on a Secret":         {spec: "gates: [{name: a, " + strings.Replace(objectGate, "ConfigMap", "Secret", 1) + "}]", refused: refusal{"spec.gates[0].object.kind": "a gate cannot read Secrets"}},
		"a path to everything":       {spec: "gates: [{name: a, " + strings.Replace(objectGate, ".data.state", "..state", 1) + "}]", refused: refusal{"spec.gates[0].object.jsonPath": "should match"}},
		"a path of a condition":      {spec: "gates: [{name: a, " + strings.Replace(objectGate, ".data.state", `'.status.conditions[?(@.type=="Ready")].status'`, 1) + "}]"},
		"a path of a label":          {spec: "gates: [{name: a, " + strings.Replace(objectGate, ".data.state", `'.metadata.labels.example\.com/state'`, 1) + "}]"},
		"an object out of its place": {spec: "gates: [{name: a, " + strings.Replace(objectGate, "name: fleet", "name: ../secrets/a", 1) + "}]", refused: refusal{"spec.gates[0].object.name": "should match"}},
	})
}

func TestReplacementIsAcceptedOrRefused(t *testing.T) {
	replacement := refusal{"spec.after": "after: Replace requires mode Once and controlPlane Exclude, and excludes reboot and job"}
	kind(ofPool).play(t, map[string]row{
		"a replacement":                {spec: "after: Replace\nmode: Once\ncontrolPlane: Exclude\ntarget: {kubeletVersion: '>=1.37.0'}"},
		"a replaced node that reboots": {spec: "after: Replace\nreboot: true", refused: replacement},
		"a replacement after a Job":    {spec: "after: Replace\njob: {namespace: ops, cronJob: patch}", refused: replacement},
		"replaced again and again":     {spec: "after: Replace\nmode: Continuous\nwhen: {rebootRequired: true}", refused: replacement},
		"a replaced control plane":     {spec: "after: Replace\ncontrolPlane: Last", refused: replacement},
	})
}

// What a NodeMaintenance would be refused for is refused before a node starts.
func TestMaintenanceOfANodeRolloutIsRefused(t *testing.T) {
	const field = "spec.maintenance.drainPlan"
	kind(ofPool).play(t, map[string]row{
		"a long reason":       {spec: "maintenance: {reason: " + strings.Repeat("r", 1025) + "}", refused: refusal{"spec.maintenance.reason": "may not be more than 1024"}},
		"a downtime of none":  {spec: "maintenance: {inPlace: {expectedDowntimeSeconds: 0}}", refused: refusal{"spec.maintenance.inPlace.expectedDowntimeSeconds": "should be greater than"}},
		"another depth":       {spec: "maintenance: {drainDepth: All}", refused: refusal{"spec.maintenance.drainDepth": "supported values"}},
		"a plan of 65":        {spec: "maintenance:\n  drainPlan:" + strings.ReplaceAll(strings.TrimPrefix(plan(65), "drainPlan:"), "\n", "\n  "), refused: refusal{field: "must have at most 64 items"}},
		"types out of order":  {spec: "maintenance: {drainPlan: [{podPriority: 1, podType: Static}, {podPriority: 1}]}", refused: refusal{field: "order the entries by podType"}},
		"priorities likewise": {spec: "maintenance: {drainPlan: [{podPriority: 5}, {podPriority: 1}]}", refused: refusal{field: "order the entries of each podType by podPriority"}},
		"a duplicate":         {spec: "maintenance: {drainPlan: [{podPriority: 5}, {podPriority: 5}]}", refused: refusal{field: "each entry may occur only once"}},
		"an empty selector":   {spec: "maintenance: {drainPlan: [{podPriority: 5, podSelector: {}}]}", refused: refusal{field + "[0].podSelector": "an empty podSelector selects all pods"}},
		"another operator":    {spec: "maintenance: {drainPlan: [{podPriority: 5, podSelector: {matchExpressions: [{key: a, operator: Is}]}}]}", refused: refusal{field + "[0].podSelector.matchExpressions[0].operator": forPods}},
	})
}

func TestSelectorOfANodeRolloutIsRefused(t *testing.T) {
	const terms = "spec.nodeSelector.nodeSelectorTerms"
	kind(rollout).play(t, map[string]row{
		"none":              {spec: "state: Running", refused: refusal{"spec.nodeSelector": "Required value"}},
		"no terms":          {spec: "nodeSelector: {nodeSelectorTerms: []}", refused: refusal{terms: "selects no node; give at least one term"}},
		"an empty term":     {spec: "nodeSelector: {nodeSelectorTerms: [{}]}", refused: refusal{terms + "[0]": "an empty term selects no node"}},
		"another operator":  {spec: "nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Is}]}]}", refused: refusal{terms + "[0].matchExpressions[0].operator": forPods + ", Gt, Lt"}},
		"two names a term":  {spec: "nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [a, b]}]}]}", refused: refusal{terms + "[0].matchFields[0]": "use one term for each node"}},
		"256 nodes by name": {spec: "nodeSelector:\n  nodeSelectorTerms:" + strings.Repeat("\n  - {matchFields: [{key: metadata.name, operator: In, values: [one]}]}", 256)},
	})
}

func TestNameOfANodeRolloutIsALabelValue(t *testing.T) {
	t.Parallel()
	c := server(t)
	for n, want := range map[int]refusal{63: nil, 64: {"metadata.name": "the name can have at most 63 characters"}} {
		want.expect(t, try(t, c, ofPool(strings.Repeat("n", n), "")))
	}
}

func TestChangeOfANodeRolloutIsRefused(t *testing.T) {
	final := refusal{"spec.state": "an aborted rollout cannot continue: create another NodeRollout"}
	kind(ofPool).play(t, map[string]row{
		"aborted, and continued":      {"state: Aborted", "spec: {state: Running}", final},
		"aborted, and paused":         {"state: Aborted", "spec: {state: Paused}", final},
		"aborted, and no state":       {"state: Aborted", "spec: {state: null}", final},
		"aborted, and another speed":  {"state: Aborted", "spec: {maxUnavailable: 2}", nil},
		"paused, and aborted":         {"state: Paused", "spec: {state: Aborted}", nil},
		"paused, and continued":       {"state: Paused", "spec: {state: Running}", nil},
		"other nodes":                 {"", "spec: {" + allNodes + "}", nil},
		"another plan":                {"maintenance: {drainPlan: [{podPriority: 1}]}", "spec: {maintenance: {drainPlan: [{podPriority: 2}]}}", nil},
		"another plan, out of order":  {"maintenance: {drainPlan: [{podPriority: 1}]}", "spec: {maintenance: {drainPlan: [{podPriority: 2}, {podPriority: 1}]}}", refusal{"spec.maintenance.drainPlan": "order the entries of each podType"}},
		"another target":              {"target: {newBoot: true}", "spec: {target: {newBoot: null, kernelVersion: any}}", nil},
		"another target, for nothing": {"target: {newBoot: true}", "spec: {target: {newBoot: false}}", refusal{"spec.target": "give at least one of newBoot: true"}},
	})
}

func TestDefaultsOfANodeRollout(t *testing.T) {
	t.Parallel()
	c := server(t)
	want := v1alpha1.NodeRolloutSpec{
		Mode: v1alpha1.RolloutOnce, After: v1alpha1.AfterGiveBack, ControlPlane: v1alpha1.ControlPlaneExclude, State: v1alpha1.RolloutRunning,
		MaxUnavailable: new(intstr.FromInt32(1)),
		Failure: v1alpha1.RolloutFailure{
			DrainTimeoutSeconds: new(int32(1800)), WorkTimeoutSeconds: new(int32(3600)), RetryCount: new(int32(1)), MaxFailures: new(intstr.FromInt32(1)),
		},
	}
	for name, spec := range map[string]string{
		"rollout-defaults":          "",
		"rollout-defaults-of-nulls": "after: null\nmaxUnavailable: null\ncontrolPlane: null\nstate: null\nfailure: null",
		"rollout-defaults-failure":  "failure: {retryCount: null}",
	} {
		got := read[v1alpha1.NodeRollout](t, c, create(t, c, ofPool(name, spec))).Spec
		got.NodeSelector = nil
		got.Maintenance = v1alpha1.RolloutMaintenance{}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	o := create(t, c, ofPool("rollout-defaults-of-parts", "target: {newBoot: true}\nmaintenance: {inPlace: {expectedDowntimeSeconds: 60}, drainPlan: [{podPriority: 1}]}"))
	got := read[v1alpha1.NodeRollout](t, c, o).Spec
	wantMaintenance := v1alpha1.RolloutMaintenance{
		DrainDepth: v1alpha1.PodTypeStatic, DrainPlan: []v1alpha1.DrainPlanEntry{{PodPriority: 1, PodType: v1alpha1.PodTypeDefault}},
		InPlace: &v1alpha1.InPlace{ExpectedDowntimeSeconds: 60, LockTimeoutSeconds: 300, OnLockTimeout: v1alpha1.LockTimeoutEvict, ExpectedRebootCount: new(int32(1))},
	}
	if diff := cmp.Diff(wantMaintenance, got.Maintenance); diff != "" {
		t.Errorf("maintenance (-want +got):\n%s", diff)
	}
	if got.Target == nil || got.Target.ReadySeconds == nil || *got.Target.ReadySeconds != 30 {
		t.Errorf("target is %+v, want 30 s of Ready", got.Target)
	}
}

// The lists of a status have bounds, so that no rollout grows beyond what an API server stores.
func TestStatusOfANodeRolloutIsBounded(t *testing.T) {
	t.Parallel()
	c := server(t)
	o := create(t, c, ofPool("rollout-bounded", ""))
	names := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf("{name: node-%d}", i)
		}
		return strings.Join(all, ", ")
	}
	const counts = "status: {nodeCount: 1, doneCount: 0, workingCount: 0, waitingCount: 0, failedCount: 0, skippedCount: 0, "
	for status, want := range map[string]refusal{
		"working: [" + names(256) + "]}":                                   nil,
		"working: [" + names(257) + "]}":                                   {"status.working": "must have at most 256 items"},
		"failed: [" + names(21) + "]}":                                     {"status.failed": "must have at most 20 items"},
		"waiting: [{reason: A, nodeCount: 9, nodes: [" + names(6) + "]}]}": {"status.waiting[0].nodes": "must have at most 5 items"},
	} {
		want.expect(t, patch(t, c, o, counts+status))
	}
}
