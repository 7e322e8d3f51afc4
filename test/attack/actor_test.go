package attack

import "sigs.k8s.io/controller-runtime/pkg/client"

// Objects that attempts are about. Names in capitals are those of the stage.
const (
	nodeA        = "{apiVersion: v1, kind: Node, metadata: {name: NODE-A}}"
	nodeB        = "{apiVersion: v1, kind: Node, metadata: {name: NODE-B}}"
	pod          = "{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: OTHERS}}"
	ownPod       = "{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: TEAM}}"
	budget       = "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, namespace: OTHERS}}"
	ownBudget    = "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, namespace: TEAM}}"
	secrets      = "{apiVersion: v1, kind: Secret, metadata: {name: password, namespace: OPERATIONS}}"
	certificate  = "{apiVersion: v1, kind: Secret, metadata: {name: ebbtide-webhook-tls, namespace: OPERATIONS}}"
	maintenance  = "{apiVersion: ebbtide.dev/v1alpha1, kind: NodeMaintenance, metadata: {name: MAINTENANCE}}"
	machine      = "{apiVersion: ebbtide.dev/v1alpha1, kind: Machine, metadata: {name: one, namespace: TEAM}}"
	ofMachines   = "{apiVersion: ebbtide.dev/v1alpha1, kind: Cluster, metadata: {name: east, namespace: TEAM}}"
	validating   = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: ebbtide}}"
	mutating     = "{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: ebbtide}}"
	foreignAgent = "{apiVersion: ebbtide.dev/v1alpha1, kind: NodeAgent, metadata: {name: NODE-B}}"
	account      = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: OPERATIONS}}"
	token        = "{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {audiences: [any]}}"
	toNothing    = "metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: gone, uid: any}]}"
	eviction     = "{apiVersion: policy/v1, kind: Eviction, metadata: {name: web, namespace: TEAM}}"
)

// drains is a NodeMaintenance of the nodes that this selects, with more in its spec.
func drains(term, more string) string {
	return `
apiVersion: ebbtide.dev/v1alpha1
kind: NodeMaintenance
metadata: {name: MAINTENANCE-more}
spec:
  stage: Drain
  nodeSelector: {nodeSelectorTerms: [` + term + `]}
` + more
}

const (
	byNameA = "{matchFields: [{key: metadata.name, operator: In, values: [NODE-A]}]}"
	byNameB = "{matchFields: [{key: metadata.name, operator: In, values: [NODE-B]}]}"
	notB    = "{matchFields: [{key: metadata.name, operator: NotIn, values: [NODE-B]}]}"
	byLabel = "{matchExpressions: [{key: kubernetes.io/hostname, operator: Exists}]}"
)

var ofOwner = []attempt{
	{"evicts a pod under a lock", asks("eviction", ownPod, eviction), "evictions.ebbtide.dev"},
	{"writes the lock of a drain", patches(ownBudget, `metadata: {annotations: {ebbtide.dev/lock: '{"holder":"nodemaintenance/any"}'}}`), "ebbtide-drain-locks"},
	{"evacuates a pod of others", creates(evacuationOf("OTHERS")), rbac},
	{"reads a Secret of the manager's namespace", gets(secrets), rbac},
	{"takes a token of the manager's namespace", asks("token", account, token), rbac},
	{"drains a node", creates(drains(byNameB, "")), rbac},
	{"connects a cluster in which they may delete no node", creates(`
apiVersion: ebbtide.dev/v1alpha1
kind: Cluster
metadata: {name: west, namespace: TEAM}
spec: {}`), "clusters.ebbtide.dev"},
	{"forges the Node of a Machine", reports(machine, "status: {nodeRef: {name: NODE-B, uid: any}}"), "ebbtide-machine-status"},
}

var ofDrainer = []attempt{
	{"drains another node", creates(drains(byNameB, "")), "nodemaintenances.ebbtide.dev"},
	{"drains all nodes of a label", creates(drains(byLabel, "")), "nodemaintenances.ebbtide.dev"},
	{"drains all nodes but one", creates(drains(notB, "")), "nodemaintenances.ebbtide.dev"},
	{"begins the maintenance of others", patches(maintenance, "spec: {stage: Drain}"), "nodemaintenances.ebbtide.dev"},
	{"deepens the maintenance of others", patches(maintenance, "spec: {drainDepth: Static}"), "nodemaintenances.ebbtide.dev"},
	{"ends the maintenance of others", deletes(maintenance), "nodemaintenances.ebbtide.dev"},
	{"deletes past budgets in place", creates(drains(byNameA, "  inPlace: {expectedDowntimeSeconds: 600, onLockTimeout: Delete}")), "ebbtide-bypass-budgets"},
	{"deletes past budgets at a deadline", creates(drains(byNameA, `  deadline: {time: "2046-01-01T00:00:00Z", onDeadline: Delete}`)), "ebbtide-bypass-budgets"},
	{"says that a node was handed over", patches(maintenance, "metadata: {annotations: {ebbtide.dev/handed-over: any}}"), "ebbtide-handed-over"},
	{"writes to a node", patches(nodeA, "metadata: {annotations: {ebbtide.dev/cordon: '{}'}}"), rbac},
}

var ofReporter = []attempt{
	{"says that a node is drained", reports(nodeA, "metadata: {labels: {ebbtide.dev/handed-over: 'true'}}"), "ebbtide-nodes"},
	{"says that a node may be away", reports(nodeA, "metadata: {annotations: {ebbtide.dev/reboot-promise: any}}"), "ebbtide-nodes"},
	{"says by whom it was", reports(nodeA, "metadata: {annotations: {ebbtide.dev/handed-over-by: any}}"), "ebbtide-nodes"},
	{"lifts a person's cordon", reports(nodeA, `metadata: {annotations: {ebbtide.dev/cordon: '{"wasUnschedulable":false,"holders":[]}'}}`), "ebbtide-nodes"},
	{"keeps pods away from a node", reports(nodeA, "metadata: {annotations: {ebbtide.dev/drain-targets: any}}"), "ebbtide-nodes"},
	{"says whose Machine a node is", reports(nodeA, "metadata: {annotations: {cluster.x-k8s.io/machine: mine}}"), "ebbtide-nodes"},
	{"writes to the node itself", patches(nodeA, "spec: {unschedulable: true}"), rbac},
	{"drains the node", creates(drains(byNameA, "")), rbac},
}

var ofAgent = []attempt{
	{"reports on another node", reports(nodeB, "status: {conditions: [{type: GracefulNodeShutdownInProgress, status: 'True'}]}"), "ebbtide-agent"},
	{"says that another node requires a reboot", reports(nodeB, "status: {conditions: [{type: RebootRequired, status: 'True'}]}"), "ebbtide-agent"},
	{"says that its node is ready", reports(nodeA, "status: {conditions: [{type: Ready, status: 'True'}]}"), "ebbtide-agent"},
	{"labels its node", reports(nodeA, "metadata: {labels: {pool: mine}}"), "ebbtide-agent"},
	{"cordons its node", patches(nodeA, "spec: {unschedulable: true}"), rbac},
	{"is the agent of another node", creates(foreignAgent), "ebbtide-agent"},
	{"stays with a finalizer", creates("{apiVersion: ebbtide.dev/v1alpha1, kind: NodeAgent, metadata: {name: NODE-A, finalizers: [example.com/stay]}}"), "ebbtide-agent"},
	{"tells events of another node", creates(eventOf("Node", "NODE-B", "ebbtide-agent")), "ebbtide-agent"},
	{"tells events of a maintenance", creates(eventOf("NodeMaintenance", "MAINTENANCE", "ebbtide-agent")), "ebbtide-agent"},
	{"tells events in the name of the kubelet", creates(eventOf("Node", "NODE-A", "kubelet")), "ebbtide-agent"},
	{"deletes a pod", deletes(pod), rbac},
	{"deletes all pods of others", deletesAll(pod), rbac},
	{"drains a node", creates(drains(byNameA, "")), rbac},
	{"takes a token of the manager's namespace", asks("token", account, token), rbac},
	{"reads a Secret of the manager's namespace", gets(secrets), rbac},
}

var ofManager = []attempt{
	{"creates a pod", creates("{apiVersion: v1, kind: Pod, metadata: {name: mine, namespace: OTHERS}, spec: {containers: [{name: a, image: a}]}}"), rbac},
	{"runs another image in a pod", patches(pod, "spec: {containers: [{name: web, image: mine}]}"), "ebbtide-accounts"},
	{"loosens a budget", patches(budget, "spec: {maxUnavailable: 100%}"), "ebbtide-accounts"},
	{"annotates a budget with a key of Kubernetes", patches(budget, "metadata: {annotations: {example.kubernetes.io/any: any}}"), "ebbtide-accounts"},
	{"drains a node", creates(drains(byNameB, "")), "ebbtide-manager-shutdowns"},
	{"begins the maintenance of others", patches(maintenance, "spec: {stage: Drain}"), "ebbtide-accounts"},
	{"ends the maintenance of others", deletes(maintenance), "ebbtide-manager-shutdowns"},
	{"taints a node", patches(nodeB, "spec: {taints: [{key: any, effect: NoExecute}]}"), "ebbtide-accounts"},
	{"gives a node another instance", patches(nodeB, "spec: {providerID: 'kwok://other'}"), "ebbtide-accounts"},
	{"says that a node is ready", reports(nodeB, "status: {conditions: [{type: Ready, status: 'True'}]}"), "ebbtide-accounts"},
	{"gives a node more room", reports(nodeB, "status: {allocatable: {cpu: '1000'}}"), "ebbtide-accounts"},
	{"has a node deleted by an owner that does not exist", patches(nodeB, toNothing), "ebbtide-accounts"},
	{"gives a node a label by which pods with secrets find it", patches(nodeB, "metadata: {labels: {node-restriction.kubernetes.io/any: any}}"), "ebbtide-accounts"},
	{"holds a node by a finalizer", patches(nodeB, "metadata: {finalizers: [example.com/stay]}"), "ebbtide-accounts"},
	{"has a node listen elsewhere", reports(nodeB, "status: {daemonEndpoints: {kubeletEndpoint: {Port: 1}}}"), "ebbtide-accounts"},
	{"says that a node has booted", reports(nodeB, "status: {nodeInfo: {bootID: any}}"), "ebbtide-accounts"},
	{"tells events in the name of others", creates(eventOf("Node", "NODE-B", "kubelet")), "ebbtide-manager-events"},
	{"takes a token of its namespace", asks("token", account, token), rbac},
	{"gives itself rights", creates(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: mine}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: any, namespace: OPERATIONS}]`), rbac},
	{"removes the policies about itself", deletes("{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: ebbtide-accounts}}"), rbac},
	{"lists the Secrets of others", lists("{apiVersion: v1, kind: Secret, metadata: {namespace: OTHERS}}"), rbac},
	{"lists the Secrets of its namespace", lists(secrets), rbac},
	{"reads another Secret there", gets(secrets), rbac},
	{"replaces its certificate", patches(certificate, "data: {tls.crt: YQ==}"), rbac},
	{"has its webhooks asked about everything", patches(mutating, "webhooks: [{name: all.ebbtide.dev, rules: [{apiGroups: ['*'], resources: ['*']}]}]"), rbac},
	{"has its webhooks trust another certificate", patches(validating, "webhooks: [{name: nodemaintenances.ebbtide.dev, clientConfig: {caBundle: YQ==}}]"), rbac},
	{"creates a webhook", creates("{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: mine}}"), rbac},
}

var ofFleet = []attempt{
	{"has a Machine drain another Node", reports(machine, "status: {nodeRef: {name: NODE-B, uid: any}}"), "ebbtide-machine-status"},
	{"says that a drain is over", reports(machine, `status: {deletion: {waitForNodeVolumeDetachStartTime: "2026-01-01T00:00:00Z"}}`), "ebbtide-machine-status"},
	{"says that a cluster's Nodes are gone", reports(ofMachines, `status: {conditions: [{type: Deleting, status: "True", reason: Any, message: any, lastTransitionTime: "2026-01-01T00:00:00Z"}]}`), "ebbtide-cluster-status"},
	{"deletes a Machine in the foreground", deletes(machine, client.PropagationPolicy("Foreground")), "ebbtide-machine-deletion"},
	{"has it deleted in the foreground", patches(machine, "metadata: {finalizers: [foregroundDeletion]}"), "ebbtide-machine-deletion"},
	{"connects a cluster in which they may delete no node", creates("{apiVersion: ebbtide.dev/v1alpha1, kind: Cluster, metadata: {name: west, namespace: TEAM}, spec: {}}"), "clusters.ebbtide.dev"},
}

var ofRequester = []attempt{
	{"has a pod evicted that they may not delete", creates(`
apiVersion: lifecycle.k8s.io/v1alpha1
kind: EvictionRequest
metadata: {name: any, namespace: OTHERS}
spec: {requester: example.com/any, intent: Eviction, target: {pod: {name: web, uid: 8f7cb2d0-5b3f-4c0e-9a55-0d1c2b3a4f5e}}}`), "evictionrequests.ebbtide.dev"},
	{"evacuates a pod that they may not delete", creates(evacuationOf("OTHERS")), "evacuations.ebbtide.dev"},
	{"evicts it", asks("eviction", pod, "{apiVersion: policy/v1, kind: Eviction, metadata: {name: web, namespace: OTHERS}}"), rbac},
	{"drains its node", creates(drains(byNameB, "")), rbac},
}

// evacuationOf is one of the pod web in a namespace.
func evacuationOf(namespace string) string {
	return `
apiVersion: ebbtide.dev/v1alpha1
kind: Evacuation
metadata: {name: 8f7cb2d0-5b3f-4c0e-9a55-0d1c2b3a4f5e-web, namespace: ` + namespace + `}
spec: {podRef: {name: web, uid: 8f7cb2d0-5b3f-4c0e-9a55-0d1c2b3a4f5e}}`
}

// eventOf is an event about an object, by a controller.
func eventOf(kind, name, controller string) string {
	return `
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: any, namespace: default}
eventTime: "2026-03-01T12:00:00.000000Z"
regarding: {kind: ` + kind + `, name: ` + name + `}
type: Normal
reason: Any
action: Any
reportingController: ` + controller + `
reportingInstance: one`
}
