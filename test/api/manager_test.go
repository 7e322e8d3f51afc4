package api

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/test/cluster"
)

// takenOver is a client with the name of the manager, or of another account, and every
// right, as if somebody had stolen its token and RBAC allowed all that patching allows.
func takenOver(t *testing.T, account ...string) (admin, manager client.Client) {
	t.Helper()
	server := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	installPolicies(t, server)
	return server.Client, server.Mighty(t, append(account, cluster.Account.User())[0])
}

// confinement is an object with what an account changes of it, and what it must not.
type confinement struct {
	object     string
	may, mayNo []string
}

const (
	// toNothing is an owner that does not exist: who has it is deleted.
	toNothing = "metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: gone, uid: 0f1e}]}"
	held      = "metadata: {finalizers: [example.com/keep]}"
	// Kubernetes, or Ebbtide, may act on these.
	reservedLabel      = "metadata: {labels: {example.k8s.io/a: b}}"
	reservedAnnotation = "metadata: {annotations: {ebbtide.dev/another: b}}"
)

var confinements = map[string]confinement{
	"pods": {
		object: confinedPod,
		may: []string{
			"metadata: {labels: {pod-template-hash: detached-by-ebbtide}, annotations: {ebbtide.dev/surge: any}}",
			"metadata: {annotations: {ebbtide.dev/surge-replacement: any, controller.kubernetes.io/pod-deletion-cost: '-1'}}",
			"spec: {schedulingGates: [{name: example.com/wait}]}",
		},
		mayNo: []string{
			toNothing, held, reservedLabel, reservedAnnotation, "metadata: {annotations: {example.com/a: b}}", "metadata: {annotations: {example.com/a: null}}",
			"spec: {containers: [{name: app, image: evil}]}",
			"spec: {initContainers: [{name: init, image: evil}]}",
			"spec: {activeDeadlineSeconds: 1}",
			"spec: {tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 1}," +
				"{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 1}]}",
			"spec: {nodeSelector: {zone: mine}}",
			"spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}}",
			"spec: {schedulingGates: []}", "status: {phase: Failed}",
		},
	},
	"poddisruptionbudgets": {
		object: confinedBudget,
		may:    []string{"metadata: {annotations: {ebbtide.dev/lock: any}}", "metadata: {annotations: {ebbtide.dev/lock: another}}", "metadata: {annotations: {ebbtide.dev/lock: null}}"},
		mayNo: []string{
			"spec: {maxUnavailable: 100%}",
			"spec: {selector: {matchLabels: {app: other}}}",
			reservedLabel, reservedAnnotation,
			"metadata: {annotations: {example.com/a: b}}",
			"metadata: {annotations: {example.com/a: null}}",
			held, toNothing, "status: {disruptionsAllowed: 9}",
		},
	},
	"nodemaintenances": {
		object: maintenance("confined", anyNode+"\nstage: Idle"),
		may: []string{
			"metadata: {finalizers: [nodemaintenance.k8s.io/maintenance-completion]}", "metadata: {finalizers: []}",
			"metadata: {annotations: {ebbtide.dev/handed-over: any}}", "metadata: {annotations: {ebbtide.dev/handed-over: null}}",
		},
		mayNo: []string{
			"spec: {stage: Complete}", "spec: {reason: another}",
			"spec: {nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}",
			reservedLabel, reservedAnnotation, held, toNothing,
		},
	},
	"nodemaintenances that were not handed over": {
		object: maintenance("confined-early", aNodeByName+"\nstage: Drain\ncompleteWhen: {newBoot: true}"),
		mayNo:  []string{"spec: {stage: Complete}"},
	},
	"nodemaintenances with a deadline that gives nodes back": {
		object: maintenance("confined-late", aNodeByName+"\nstage: Drain\ndeadline: {time: '2036-03-01T22:00:00Z', onDeadline: GiveBack}"),
		may: []string{
			givenBack + "\nspec: {completedNodes: [{name: any}]}", "spec: {completedNodes: [{name: any}, {name: other}]}",
		},
		mayNo: []string{
			"spec: {completedNodes: [{name: any}, {name: other}, {name: third}], reason: another}",
			"spec: {deadline: null}", "spec: {stage: Complete, reason: another}",
		},
	},
	"nodemaintenances that their deadline completes": {
		object: maintenance("confined-late-all", aNodeByName+"\nstage: Drain\ndeadline: {time: '2036-03-01T22:00:00Z', onDeadline: GiveBack}"),
		may:    []string{givenBack + "\nspec: {stage: Complete}"},
	},
	"nodemaintenances whose deadline gives no node back": {
		object: maintenance("confined-waits", aNodeByName+"\nstage: Drain\ndeadline: {time: '2036-03-01T22:00:00Z', onDeadline: Wait}"),
		mayNo:  []string{givenBack + "\nspec: {completedNodes: [{name: any}]}", givenBack + "\nspec: {stage: Complete}"},
	},
	"nodemaintenances whose deadline is not recorded": {
		object: maintenance("confined-unrecorded", aNodeByName+"\nstage: Drain\ndeadline: {time: '2036-03-01T22:00:00Z', onDeadline: GiveBack}"),
		mayNo:  []string{"spec: {completedNodes: [{name: any}]}", "spec: {stage: Complete}"},
	},
	"nodemaintenances that were handed over": {
		object: handedOver("confined-handed-over"), may: []string{"spec: {stage: Complete}"}, mayNo: []string{reservedLabel},
	},
	"nodemaintenances that were handed over, with other words": {
		object: handedOver("confined-words"), mayNo: []string{"spec: {reason: another, stage: Complete}"},
	},
	"nodemaintenances that were handed over for something else": {
		object: handedOver("confined-when"),
		mayNo: []string{
			"spec: {completeWhen: null}", "spec: {completeWhen: {osImage: mine}}",
			"spec: {completeWhen: {kernelVersion: mine}, stage: Complete}",
		},
	},
	"noderollouts": {
		object: rollout("confined", anyNode), may: []string{"metadata: {finalizers: [ebbtide.dev/rollout]}", "metadata: {finalizers: []}"},
		mayNo: []string{toNothing, held, reservedLabel, reservedAnnotation, "spec: {state: Paused}", "spec: {maxUnavailable: 9}", "spec: {nodes: [{name: a, skip: true}]}"},
	},
	"nodes": {
		object: confinedNode,
		may: []string{
			"spec: {unschedulable: true, taints: [{key: node.kubernetes.io/not-ready, effect: NoSchedule}, {key: ebbtide.dev/daemonset-drain, effect: NoSchedule}]}",
			"metadata: {labels: {ebbtide.dev/handed-over: 'true'}, annotations: {ebbtide.dev/cordon: any, ebbtide.dev/drain-targets: any, ebbtide.dev/handed-over-by: m, ebbtide.dev/reboot-promise: any}}",
			"metadata: {annotations: {karpenter.sh/do-not-disrupt: 'true', cluster-autoscaler.kubernetes.io/scale-down-disabled: 'true'}}",
		},
		mayNo: []string{
			toNothing, held, "metadata: {labels: {node-restriction.kubernetes.io/tier: secrets}}", reservedLabel, "metadata: {annotations: {example.com/a: b}}",
			"spec: {taints: [{key: a, effect: NoExecute}]}",
			"spec: {taints: [{key: ebbtide.dev/daemonset-drain, effect: NoExecute}]}",
			"spec: {providerID: kwok://other}", "spec: {podCIDR: 192.0.2.0/24, podCIDRs: [192.0.2.0/24]}",
		},
	},
	"nodes by their status": {
		object: strings.Replace(confinedNode, "confined", "confined-status", 1),
		may:    []string{"status: {conditions: [{type: DrainInProgress, status: 'True'}]}"},
		mayNo: []string{
			"status: {conditions: [{type: Ready, status: 'True'}]}",
			"status: {capacity: {cpu: 1}}", "status: {allocatable: {cpu: 2}}",
			"status: {addresses: [{type: Hostname, address: other}]}",
			"status: {daemonEndpoints: {kubeletEndpoint: {Port: 31337}}}", "status: {nodeInfo: {bootID: other}}",
			"status: {volumesAttached: [{name: v, devicePath: ''}]}", "status: {volumesInUse: [v]}",
			"status: {images: [{names: [evil]}]}", "status: {features: {supplementalGroupsPolicy: true}}",
			"status: {phase: Running}\nmetadata: {labels: {a: b}}",
		},
	},
	"machines": {
		object: machine("confined", bare), may: []string{"metadata: {finalizers: [ebbtide.dev/machine]}", "spec: {providerID: 'kwok://one'}"},
		mayNo: []string{toNothing, held, reservedLabel, "spec: {lifecycleHooks: {preDrain: [{name: Abc, owner: abc}]}}"},
	},
	"clusters": {
		object: workloadCluster("confined", "{}"), may: []string{"metadata: {finalizers: [ebbtide.dev/cluster]}"},
		mayNo: []string{toNothing, held, "spec: {kubeconfigSecretRef: {name: another}}"},
	},
}

const (
	givenBack   = "metadata: {annotations: {ebbtide.dev/given-back: any}}"
	confinedPod = `
apiVersion: v1
kind: Pod
metadata: {name: confined, namespace: default, annotations: {example.com/a: a}}
spec:
  schedulingGates: [{name: example.com/wait}, {name: ebbtide.dev/node-maintenance}]
  tolerations:
  - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}
  - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 300}
  initContainers: [{name: init, image: init}]
  containers: [{name: app, image: app}]`
	confinedBudget = `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: confined, namespace: default, annotations: {example.com/a: a}}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}`
	confinedNode = `
apiVersion: v1
kind: Node
metadata: {name: confined}`
)

// handedOver is a maintenance that may be completed when its node is back.
func handedOver(name string) string {
	return strings.Replace(maintenance(name, aNodeByName+"\nstage: Drain\ncompleteWhen: {newBoot: true}"),
		"metadata:", "metadata:\n  annotations: {ebbtide.dev/handed-over: any}", 1)
}

func TestManagersAccountChangesOnlyItsOwnFields(t *testing.T) {
	t.Parallel()
	admin, manager := takenOver(t)
	for what, s := range confinements {
		t.Run(what, func(t *testing.T) {
			s.play(t, admin, manager, "Ebbtide's manager changes of "+strings.Fields(what)[0]+" only ")
		})
	}
}

// A mutating webhook of another project may add labels and annotations to what the manager writes.
// What an object already had stays as it was.
func TestWebhooksOfOthersAddLabelsToWritesOfTheManager(t *testing.T) {
	t.Parallel()
	admin, manager := takenOver(t)
	for what, s := range confinements {
		if len(s.may) == 0 {
			continue
		}
		s.object = strings.Replace(s.object, "confined", "added-to", 1)
		s.may = []string{"metadata: {labels: {team: a, example.com/team: a}}", s.may[0]}
		if !strings.HasPrefix(what, "nodes") {
			s.may = append(s.may, "metadata: {annotations: {policies.example.com/applied: any}}")
		}
		s.mayNo = []string{
			reservedLabel, "metadata: {labels: {team: b}}", "metadata: {labels: {team: null}}",
			"metadata: {labels: {example.com/team: b}}", "metadata: {labels: {example.com/team: null}}",
		}
		t.Run(what, func(t *testing.T) {
			s.play(t, admin, manager, "Ebbtide's manager changes of "+strings.Fields(what)[0]+" only ")
		})
	}
}

// play wants what the account may not do refused in these words, and done by an administrator.
func (s confinement) play(t *testing.T, admin, account client.Client, refusal string) {
	t.Helper()
	o := create(t, admin, s.object)
	for _, document := range s.may {
		if err := patch(t, account, o, document); err != nil {
			t.Errorf("%s: error %v, want it allowed", document, err)
		}
	}
	for _, document := range s.mayNo {
		want := refusal
		if strings.HasPrefix(document, "status:") {
			want = strings.Replace(refusal, " only ", "/status only ", 1)
		}
		if err := patch(t, account, o, document); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", document, err, want)
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
func TestManagersAccountCompletesDeletedMaintenances(t *testing.T) {
	t.Parallel()
	admin, manager := takenOver(t)
	m := create(t, admin, maintenance("ended", anyNode+"\nstage: Drain"))
	if err := patch(t, admin, m, "metadata: {finalizers: [example.com/keep]}"); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(t.Context(), m.DeepCopy()); err != nil {
		t.Fatal(err)
	}
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
