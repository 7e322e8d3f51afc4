package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// takenOver is a client with the manager's name and every right, as if somebody had
// stolen its token and RBAC allowed all that patching allows.
func takenOver(t *testing.T) (admin, manager client.Client) {
	t.Helper()
	server := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	installPolicies(t, server)
	config := rest.CopyConfig(server.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: cluster.Account.User(),
		Groups:   []string{"system:masters"},
	}
	manager, err := client.New(config, client.Options{Scheme: server.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return server.Client, manager
}

// confinement is an object with what the manager changes of it, and what it must not.
type confinement struct {
	object     string
	may, mayNo []string
	refusal    string
}

var confinements = map[string]confinement{
	"pod": {
		object: `
apiVersion: v1
kind: Pod
metadata: {name: confined, namespace: default, annotations: {example.com/a: a}}
spec:
  schedulingGates: [{name: example.com/wait}]
  tolerations:
  - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}
  - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 300}
  initContainers: [{name: init, image: init}]
  containers: [{name: app, image: app}]`,
		may: []string{
			"metadata: {labels: {app: web}, annotations: {a: b}, finalizers: [ebbtide.dev/keep]}",
			"metadata: {ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: 0f1e}]}",
			"metadata: {finalizers: []}",
		},
		mayNo: []string{
			"spec: {containers: [{name: app, image: evil}]}",
			"spec: {initContainers: [{name: init, image: evil}]}",
			"spec: {activeDeadlineSeconds: 1}",
			"spec: {tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 1}," +
				"{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 1}]}",
			"spec: {nodeSelector: {zone: mine}}",
			"spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}}",
		},
		refusal: "Ebbtide's manager changes labels, annotations, owner references, scheduling gates and finalizers of pods, and nothing else",
	},
	"budget": {
		object: `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: confined, namespace: default, annotations: {example.com/a: a}}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}`,
		may: []string{"metadata: {annotations: {ebbtide.dev/lock: any}}", "metadata: {annotations: {ebbtide.dev/lock: another}}", "metadata: {annotations: {ebbtide.dev/lock: null}}"},
		mayNo: []string{
			"spec: {maxUnavailable: 100%}",
			"spec: {selector: {matchLabels: {app: other}}}",
			"metadata: {labels: {a: b}}",
			"metadata: {annotations: {example.com/a: b}}",
			"metadata: {annotations: {example.com/a: null}}",
			"metadata: {annotations: {example.com/b: b}}",
			"metadata: {finalizers: [example.com/keep]}",
			"metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: any, uid: 0f1e}]}",
		},
		refusal: "Ebbtide's manager changes the annotation ebbtide.dev/lock of PodDisruptionBudgets, and nothing else",
	},
	"maintenance": {
		object: maintenance("confined", anyNode+"\nstage: Idle"),
		may: []string{
			"metadata: {finalizers: [example.com/keep]}", "metadata: {finalizers: []}",
			"metadata: {annotations: {ebbtide.dev/handed-over: any}}", "metadata: {annotations: {ebbtide.dev/handed-over: null}}",
		},
		mayNo: []string{
			"spec: {stage: Complete}",
			"spec: {nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}",
			"metadata: {labels: {a: b}}",
			"metadata: {annotations: {a: b}}",
			"metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: any, uid: 0f1e}]}",
		},
		refusal: maintenancesRefusal,
	},
	"maintenance that was not handed over": {
		object:  maintenance("confined-early", aNodeByName+"\nstage: Drain\ncompleteWhen: {newBoot: true}"),
		mayNo:   []string{"spec: {stage: Complete}"},
		refusal: maintenancesRefusal,
	},
	"maintenance that was handed over": {
		object: handedOver("confined-handed-over"), may: []string{"spec: {stage: Complete}"},
		mayNo: []string{"metadata: {labels: {a: b}}"}, refusal: maintenancesRefusal,
	},
	"maintenance that was handed over, with other words": {
		object: handedOver("confined-words"), mayNo: []string{"spec: {reason: another, stage: Complete}"}, refusal: maintenancesRefusal,
	},
	"maintenance that was handed over for something else": {
		object: handedOver("confined-when"),
		mayNo: []string{
			"spec: {completeWhen: null}", "spec: {completeWhen: {osImage: mine}}",
			"spec: {completeWhen: {kernelVersion: mine}, stage: Complete}",
		},
		refusal: maintenancesRefusal,
	},
	"node": {
		object: `
apiVersion: v1
kind: Node
metadata: {name: confined}`,
		may: []string{"spec: {unschedulable: true, taints: [{key: node.kubernetes.io/not-ready, effect: NoSchedule}, {key: ebbtide.dev/daemonset-drain, effect: NoSchedule}]}", "metadata: {labels: {a: b}, annotations: {a: b}}"},
		mayNo: []string{
			"spec: {taints: [{key: a, effect: NoExecute}]}",
			"spec: {taints: [{key: ebbtide.dev/daemonset-drain, effect: NoExecute}]}",
			"spec: {providerID: kwok://other}",
		},
		refusal: nodesRefusal,
	},
	"node's status": {
		object: `
apiVersion: v1
kind: Node
metadata: {name: confined-status}`,
		may: []string{"status: {conditions: [{type: DrainInProgress, status: 'True'}]}"},
		mayNo: []string{
			"status: {conditions: [{type: Ready, status: 'True'}]}",
			"status: {capacity: {cpu: 1}}", "status: {allocatable: {cpu: 2}}",
			"status: {addresses: [{type: Hostname, address: other}]}",
		},
		refusal: nodesRefusal,
	},
}

// handedOver is a maintenance that may be completed when its node is back.
func handedOver(name string) string {
	return strings.Replace(maintenance(name, aNodeByName+"\nstage: Drain\ncompleteWhen: {newBoot: true}"),
		"metadata:", "metadata:\n  annotations: {ebbtide.dev/handed-over: any}", 1)
}

func TestTheManagersAccountChangesWhatItHasReasonTo(t *testing.T) {
	t.Parallel()
	admin, manager := takenOver(t)
	for name, s := range confinements {
		t.Run(name, func(t *testing.T) { s.play(t, admin, manager) })
	}
}

const maintenancesRefusal = "Ebbtide's manager changes finalizers and the annotation ebbtide.dev/handed-over of NodeMaintenances, completes those that are deleted or whose " +
	"completeWhen asks for it, has those of nodes that shut down follow their nodes until they go down, and changes nothing else of them"

const nodesRefusal = "Ebbtide's manager cordons nodes, changes labels, annotations and a taint of its own, announces maintenances in conditions of its own, and does nothing else to nodes"

func (s confinement) play(t *testing.T, admin, manager client.Client) {
	o := create(t, admin, s.object)
	patience.Eventually(t, "the policy to be obeyed", func(context.Context) (string, bool) {
		err := patch(t, client.NewDryRunClient(manager), o, s.mayNo[0])
		return fmt.Sprint(err), apierrors.IsForbidden(err)
	})
	for _, document := range s.may {
		if err := patch(t, manager, o, document); err != nil {
			t.Errorf("%s: error %v, want it allowed", document, err)
		}
	}
	for _, document := range s.mayNo {
		if err := patch(t, manager, o, document); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), s.refusal) {
			t.Errorf("%s: error %v, want %q", document, err, s.refusal)
		}
		if err := patch(t, admin, o, document); err != nil {
			t.Errorf("%s by an administrator: %v", document, err)
		}
	}
	if err := patch(t, admin, o, "metadata: {finalizers: []}"); err != nil {
		t.Error(err)
	}
}

// Whoever deletes a maintenance ends it, and the manager says so in its spec.
func TestTheManagersAccountCompletesWhatIsDeleted(t *testing.T) {
	t.Parallel()
	admin, manager := takenOver(t)
	m := create(t, admin, maintenance("ended", anyNode+"\nstage: Drain"))
	if err := patch(t, admin, m, "metadata: {finalizers: [example.com/keep]}"); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(t.Context(), m.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	patience.Eventually(t, "the policy to be obeyed", func(context.Context) (string, bool) {
		err := patch(t, client.NewDryRunClient(manager), m, "spec: {reason: another}")
		return fmt.Sprint(err), apierrors.IsForbidden(err)
	})
	for document, allowed := range map[string]bool{
		"spec: {stage: Complete, drainDepth: Default}": false,
		"spec: {stage: Complete, reason: another}":     false,
		"spec: {drainDepth: Default}":                  false,
		"spec: {stage: Complete}":                      true,
	} {
		if err := patch(t, client.NewDryRunClient(manager), m, document); apierrors.IsForbidden(err) == allowed {
			t.Errorf("%s of what is being deleted: error %v, want it allowed: %v", document, err, allowed)
		}
	}
	if err := patch(t, admin, m, "metadata: {finalizers: []}"); err != nil {
		t.Error(err)
	}
}
