package placement_test

import (
	"testing"

	"ebbtide.dev/ebbtide/internal/core/placement"
)

const (
	bound   = "{metadata: {name: data, annotations: {pv.kubernetes.io/bind-completed: 'yes'}}, spec: {volumeName: pv-1}, status: {phase: Bound}}"
	waiting = "{metadata: {name: data}, spec: {storageClassName: local, resources: {requests: {storage: 5Gi}}, accessModes: [ReadWriteOnce]}}"
	onB     = "nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [b]}]}]}}"
	local   = "{metadata: {name: local}, provisioner: kubernetes.io/no-provisioner, volumeBindingMode: WaitForFirstConsumer}"
	uses    = "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]"
	spare   = "{metadata: {name: pv-1}, spec: {storageClassName: local, capacity: {storage: 10Gi}, accessModes: [ReadWriteOnce], " + onB + "}, status: {phase: Available}}"
)

// claimed is where the pod of a claim goes, in the zones of both.
func claimed(claim, class, volume, node string) filter {
	w := placement.World{Nodes: both, Claims: claims(claim)}
	if class != "" {
		w.Classes = classes(class)
	}
	if volume != "" {
		w.Volumes = volumes(volume)
	}
	return filter{world: w, pod: newPod("new", "", "", uses), node: node}
}

func TestVolumesAreReachedFromSomeNodes(t *testing.T) {
	t.Parallel()
	two, user := both, newPod("new", "", "", uses)
	run(t, map[string]filter{
		"in one of the zones of its volume": {
			world: placement.World{
				Nodes:  nodes(newNode("a1", "topology.kubernetes.io/zone=a"), newNode("b1", "topology.kubernetes.io/zone=b")),
				Claims: claims(bound), Volumes: volumes("{metadata: {name: pv-1, labels: {failure-domain.beta.kubernetes.io/zone: c__b}}}"),
			},
			pod: user, node: "b1",
		},
		"nodes without zones": claimed(bound, "", "{metadata: {name: pv-1, labels: {topology.kubernetes.io/zone: b}}}", "a1"),
		"no claim":            {world: placement.World{Nodes: two}, pod: user},
		"no volume":           claimed(bound, "", "", ""),
		"volumes that could not be read": {
			world: placement.World{Nodes: two, Claims: claims(bound), Unread: placement.Unread{Volumes: "forbidden"}}, pod: user,
		},
		"a claim that is lost":          claimed("{metadata: {name: data}, spec: {volumeName: pv-1}, status: {phase: Lost}}", "", "", ""),
		"a claim that is being deleted": claimed("metadata: {name: data, deletionTimestamp: '2026-01-01T00:00:00Z'}", "", "", ""),
		"a claim that is not bound yet": claimed("{metadata: {name: data}, spec: {volumeName: pv-1}}", "", "", ""),
		"a claim that only one pod may use": {
			world: placement.World{
				Nodes: two, Claims: claims("{metadata: {name: data, annotations: {pv.kubernetes.io/bind-completed: 'yes'}}, spec: {volumeName: pv-1, accessModes: [ReadWriteOncePod]}}"),
				Volumes: volumes("metadata: {name: pv-1}"), Pods: pods(newPod("old", "a1", "", uses)),
			},
			pod: user,
		},
	})
}

func TestClaimsWaitForTheirFirstPod(t *testing.T) {
	t.Parallel()
	two, user := both, newPod("new", "", "", uses)
	run(t, map[string]filter{
		"a volume that is there": {
			world: placement.World{Nodes: two, Claims: claims(waiting), Classes: classes(local), Volumes: volumes(spare)},
			pod:   user, node: "b1", thenCordon: "b1",
		},
		"a volume by its node affinity alone": {
			world: placement.World{
				Nodes: nodes(newNode("a1", "topology.kubernetes.io/zone=a")), Claims: claims(waiting), Classes: classes(local),
				Volumes: volumes("{metadata: {name: pv-1, labels: {topology.kubernetes.io/zone: b}}, spec: {storageClassName: local, capacity: {storage: 9Gi}, accessModes: [ReadWriteOnce]}, status: {phase: Available}}"),
			},
			pod: user, node: "a1",
		},
		"none is large enough":          claimed(waiting, local, "{metadata: {name: pv-1}, spec: {storageClassName: local, capacity: {storage: 4Gi}, accessModes: [ReadWriteOnce]}, status: {phase: Available}}", ""),
		"one is kept for another claim": claimed(waiting, local, "{metadata: {name: pv-1}, spec: {storageClassName: local, claimRef: {namespace: shop, name: other}, capacity: {storage: 9Gi}, accessModes: [ReadWriteOnce]}, status: {phase: Available}}", ""),
	})
}

func TestVolumesAreMadeForTheirFirstPod(t *testing.T) {
	t.Parallel()
	made := "{metadata: {name: local}, provisioner: example.com/disk, volumeBindingMode: WaitForFirstConsumer, "
	run(t, map[string]filter{
		"one is made":                      claimed(waiting, made+"}", "", "a1"),
		"one is being made for a node":     claimed("{metadata: {name: data, annotations: {volume.kubernetes.io/selected-node: b1}}, spec: {storageClassName: local}}", made+"}", "", "b1"),
		"one would have been made at once": claimed(waiting, "{metadata: {name: local}, provisioner: example.com/disk, volumeBindingMode: Immediate}", "", ""),
		"its class does not exist":         claimed(waiting, "", "", ""),
		"it has no class":                  claimed("metadata: {name: data}", "", "", ""),
		"a claim of each pod": {
			world: placement.World{Nodes: both, Classes: classes(made + "allowedTopologies: [{matchLabelExpressions: [{key: zone, values: [b]}]}]}")},
			pod:   newPod("new", "", "", "volumes: [{name: data, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: local}}}}]"),
			node:  "b1",
		},
		"a claim of each pod, of the default class": {
			world: placement.World{Nodes: both, Classes: classes("{metadata: {name: any, annotations: {storageclass.kubernetes.io/is-default-class: 'true'}}, provisioner: example.com/disk, volumeBindingMode: Immediate}")},
			pod:   newPod("new", "", "", "volumes: [{name: data, ephemeral: {volumeClaimTemplate: {spec: {}}}}]"),
			node:  "a1",
		},
	})
}
