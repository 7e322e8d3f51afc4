package placement_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/internal/core/placement"
)

func run(t *testing.T, stories map[string]filter) {
	t.Helper()
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story.check(t)
		})
	}
}

func TestNodeFitsOnlySomePods(t *testing.T) {
	t.Parallel()
	run(t, map[string]filter{
		"no nodes":     {},
		"an open node": {world: placement.World{Nodes: nodes(newNode("a", ""))}, node: "a"},
		"a cordoned node": {
			world: placement.World{Nodes: nodes(newNode("a", "", isCordoned))},
		},
		"a cordon that the pod tolerates": {
			world: placement.World{Nodes: nodes(newNode("a", "", isCordoned))},
			pod:   newPod("new", "", "", "tolerations: [{key: node.kubernetes.io/unschedulable, operator: Exists}]"),
			node:  "a", thenCordon: "a", thenNode: "a",
		},
	})
}

func TestTaintsKeepPodsAway(t *testing.T) {
	t.Parallel()
	gpu := newNode("a", "", taint("gpu", "yes", "NoSchedule"))
	run(t, map[string]filter{
		"a taint": {world: placement.World{Nodes: nodes(gpu)}},
		"a taint that evicts": {
			world: placement.World{Nodes: nodes(newNode("a", "", taint("down", "", "NoExecute")))},
		},
		"a taint that is only a wish": {
			world: placement.World{Nodes: nodes(newNode("a", "", taint("gpu", "yes", "PreferNoSchedule")))},
			node:  "a",
		},
		"a taint that is tolerated": {
			world: placement.World{Nodes: nodes(gpu)},
			pod:   newPod("new", "", "", "tolerations: [{key: gpu, value: 'yes', effect: NoSchedule}]"), node: "a",
		},
		"a number that is not": {
			world: placement.World{Nodes: nodes(newNode("a", "", taint("tier", "2", "NoSchedule")))},
			pod:   newPod("new", "", "", "tolerations: [{key: tier, operator: Gt, value: '2'}, {key: tier, operator: Lt, value: '2'}]"),
		},
		"a node affinity": {
			world: placement.World{Nodes: nodes(newNode("a", "disk=hdd"), newNode("b", ""))},
			pod: newPod("new", "", "", `affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution:
  {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: In, values: [ssd]}]}, {matchFields: [{key: metadata.name, operator: In, values: [c]}]}]}}}`),
		},
	})
}

func on(p ...*corev1.Pod) placement.World {
	return placement.World{Nodes: nodes(newNode("a", "")), Pods: p}
}

func TestPodsNeedRoom(t *testing.T) {
	t.Parallel()
	full := newPod("old", "a", "", asking("cpu: 3, memory: 1Gi"))
	done := full.DeepCopy()
	done.Status.Phase = corev1.PodSucceeded
	run(t, map[string]filter{
		"enough":   {world: on(), pod: newPod("new", "", "", asking("cpu: 4, memory: 8Gi")), node: "a"},
		"too much": {world: on(), pod: newPod("new", "", "", asking("cpu: 4001m"))},
		"too much memory for what is free": {
			world: on(full), pod: newPod("new", "", "", asking("memory: 7681Mi")),
		},
		"the other pod is done": {world: on(done), pod: newPod("new", "", "", asking("cpu: 1500m")), node: "a"},
		"what the pod asks for as a whole counts": {
			world: on(), pod: newPod("new", "", "", "{resources: {requests: {cpu: 5}}, containers: [{name: app}]}"),
		},
		"a resource that no node has": {
			world: on(), pod: newPod("new", "", "", asking("example.com/gpu: 1")),
		},
	})
}

func TestPodsNeedASlotAndTheirPorts(t *testing.T) {
	t.Parallel()
	full := newPod("old", "a", "", asking("cpu: 3, memory: 1Gi"))
	port := "containers: [{name: app, ports: [{containerPort: 80, hostPort: 80}]}]"
	local := "containers: [{name: app, ports: [{containerPort: 80, hostPort: 80, hostIP: 127.0.0.1}]}]"
	other := "containers: [{name: app, ports: [{containerPort: 80, hostPort: 80, hostIP: 10.0.0.1}]}]"
	run(t, map[string]filter{
		"too many pods": {
			world: placement.World{Nodes: nodes(newNode("a", "", offers("pods", "1"))), Pods: pods(full)},
		},
		"a port of the node":         {world: on(newPod("old", "a", "", port)), pod: newPod("new", "", "", local)},
		"a port of the same address": {world: on(newPod("old", "a", "", local)), pod: newPod("new", "", "", local)},
		"a port of another address": {
			world: on(newPod("old", "a", "", local)), pod: newPod("new", "", "", other), node: "a",
		},
		"a port of a sidecar": {
			world: on(newPod("old", "a", "", "{initContainers: [{name: i, restartPolicy: Always, ports: [{containerPort: 80, hostPort: 80}]}], containers: [{name: app}]}")),
			pod:   newPod("new", "", "", port),
		},
		"a port while the pod begins": {
			world: on(newPod("old", "a", "", "{initContainers: [{name: i, ports: [{containerPort: 80, hostPort: 80}]}], containers: [{name: app}]}")),
			pod:   newPod("new", "", "", port), node: "a",
		},
	})
}

func TestReasonsAreSummed(t *testing.T) {
	t.Parallel()
	run(t, map[string]filter{
		"the most first": {
			world: placement.World{Nodes: nodes(
				newNode("a", "", isCordoned), newNode("b", "", isCordoned), newNode("c", ""), newNode("d", ""), newNode("e", "", taint("gpu", "yes", "NoSchedule")),
			)},
			pod: newPod("new", "", "", asking("memory: 16Gi")),
		},
		"not all of many": {
			world: placement.World{Nodes: nodes(
				newNode("a", "", taint("a", "", "NoSchedule")), newNode("b", "", taint("b", "", "NoSchedule")), newNode("c", "", taint("c", "", "NoSchedule")),
				newNode("d", "", taint("d", "", "NoSchedule")), newNode("e", "", taint("e", "", "NoSchedule")), newNode("f", "", taint("f", "", "NoSchedule")),
				newNode("g", "", taint("g", "", "NoSchedule")),
			)},
		},
	})
}

func TestUnknownIsNotConsent(t *testing.T) {
	t.Parallel()
	world := placement.World{Nodes: nodes(newNode("a", ""))}
	forbidden := world
	forbidden.Unread = placement.Unread{Claims: "forbidden", Namespaces: "forbidden"}
	for name, story := range map[string]struct {
		filter
		unknown bool
	}{
		"another scheduler": {filter{
			world: world, pod: newPod("new", "", "", "schedulerName: batch"),
		}, true},
		"devices": {filter{
			world: world, pod: newPod("new", "", "", "resourceClaims: [{name: gpu, resourceClaimName: gpu}]"),
		}, true},
		"claims that could not be read": {filter{
			world: forbidden, pod: newPod("new", "", "", "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]"),
		}, true},
		"namespaces that could not be read": {filter{
			world: forbidden, pod: newPod("new", "", "app=web", affine("podAffinity", "app=web", "zone", "namespaceSelector: {matchLabels: {team: a}}")),
		}, true},
		"a gate is known to hold it": {filter{
			world: world, pod: newPod("new", "", "", "schedulingGates: [{name: example.com/quota}]"),
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			why := story.check(t)
			if got := placement.IsUnknown(why); got != story.unknown {
				t.Errorf("IsUnknown(%q) = %v", why, got)
			}
		})
	}
}
