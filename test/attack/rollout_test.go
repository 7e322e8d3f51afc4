package attack

const rolloutB = "{apiVersion: ebbtide.dev/v1alpha1, kind: NodeRollout, metadata: {name: MAINTENANCE}}"

const budgetOfOthers = "{apiVersion: ebbtide.dev/v1alpha1, kind: NodeBudget, metadata: {name: MAINTENANCE}}"

// limits is a NodeBudget over the nodes that this selects.
func limits(term string) string {
	return `
apiVersion: ebbtide.dev/v1alpha1
kind: NodeBudget
metadata: {name: MAINTENANCE-budget}
spec:
  nodeSelector: {nodeSelectorTerms: [` + term + `]}
`
}

// rolls is a NodeRollout over the nodes that this selects, with more in its spec.
func rolls(term, more string) string {
	return `
apiVersion: ebbtide.dev/v1alpha1
kind: NodeRollout
metadata: {name: MAINTENANCE-more}
spec:
  nodeSelector: {nodeSelectorTerms: [` + term + `]}
` + more
}

// attemptOf is the NodeMaintenance of a rollout over the nodes that this selects.
func attemptOf(term, more string) string {
	return `
apiVersion: ebbtide.dev/v1alpha1
kind: NodeMaintenance
metadata:
  name: MAINTENANCE-attempt
  labels: {ebbtide.dev/rollout: MAINTENANCE}
  annotations: {ebbtide.dev/rollout-attempt: any}
  finalizers: [ebbtide.dev/rollout]
spec:
  stage: Drain
  nodeSelector: {nodeSelectorTerms: [` + term + `]}
` + more
}

const (
	deletesInPlace = "  maintenance: {inPlace: {expectedDowntimeSeconds: 600, onLockTimeout: Delete}}"
	approvesItself = "  canary: {nodeCount: 1, approved: true}"
	jobOfDefault   = "{apiVersion: batch/v1, kind: Job, metadata: {namespace: default, name: patch}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}"
	allDone        = "status: {nodeCount: 1, doneCount: 1, workingCount: 0, waitingCount: 0, failedCount: 0, skippedCount: 0}"
)

// ofRoller are attempts of a user who may write NodeRollouts and NodeMaintenances, with the status of
// the latter, and delete one node.
var ofRoller = []attempt{
	{"rolls out over another node", creates(rolls(byNameB, "")), "noderollouts.ebbtide.dev"},
	{"rolls out over all nodes of a label", creates(rolls(byLabel, "")), "noderollouts.ebbtide.dev"},
	{"rolls out over all nodes but one", creates(rolls(notB, "")), "noderollouts.ebbtide.dev"},
	{"widens the rollout of others", patches(rolloutB, "spec: {nodeSelector: {nodeSelectorTerms: ["+byLabel+"]}}"), "noderollouts.ebbtide.dev"},
	{"continues the rollout of others", patches(rolloutB, "spec: {state: Running}"), "noderollouts.ebbtide.dev"},
	{"aborts the rollout of others", patches(rolloutB, "spec: {state: Aborted}"), "noderollouts.ebbtide.dev"},
	{"has a node of it tried again", patches(rolloutB, "spec: {nodes: [{name: NODE-B, forgivenAttemptCount: 1}]}"), "noderollouts.ebbtide.dev"},
	{"deletes the rollout of others", deletes(rolloutB), "noderollouts.ebbtide.dev"},
	{"deletes past budgets by a rollout", creates(rolls(byNameA, deletesInPlace)), "ebbtide-bypass-budgets-rollout"},
	{"approves its own canary", creates(rolls(byNameA, approvesItself)), "ebbtide-rollout-approval"},
	{"runs a Job where it may not create any", creates(rolls(byNameA, "  job: {namespace: default, cronJob: patch}")), "noderollouts.ebbtide.dev"},
	{"says that nodes are done", reports(rolloutB, allDone), rbac},
	{"holds the nodes of others by a budget", creates(limits(byLabel)), rbac},
	{"widens the budget of others", patches(budgetOfOthers, "spec: {maxUnavailable: 100%}"), rbac},
	{"takes a node off the budget of others", reports(budgetOfOthers, "status: {nodeCount: 0, unavailableCount: 0, working: []}"), rbac},
	{"forges an attempt of the rollout of others", creates(attemptOf(byNameA, "")), "ebbtide-rollouts"},
	{"makes a NodeMaintenance one of a rollout", patches(maintenance, "metadata: {labels: {ebbtide.dev/rollout: MAINTENANCE}}"), "ebbtide-rollouts"},
	{"marks the NodeMaintenance of others as that of a Machine", patches(maintenance, "metadata: {labels: {ebbtide.dev/bridge: cluster-api}, annotations: {ebbtide.dev/bridge-machine: default/any}}"), "ebbtide-rollouts"},
	{"marks the NodeMaintenance of others as that of a shutdown", patches(maintenance, "metadata: {labels: {ebbtide.dev/created-by: node-agent}}"), "ebbtide-rollouts"},
	{"keeps a NodeMaintenance as a record", patches(maintenance, "metadata: {finalizers: [ebbtide.dev/rollout]}"), "ebbtide-rollouts"},
}

// ofManagerAndRollouts are attempts with the manager's token.
var ofManagerAndRollouts = []attempt{
	{"creates a rollout", creates(rolls(byNameB, "")), rbac},
	{"runs a Job where the chart gives no right to", creates(jobOfDefault), rbac},
	{"continues the rollout of others", patches(rolloutB, "spec: {state: Running}"), "ebbtide-accounts"},
	{"widens the rollout of others", patches(rolloutB, "spec: {nodeSelector: {nodeSelectorTerms: ["+byLabel+"]}}"), "ebbtide-accounts"},
	{"creates a budget", creates(limits(byLabel)), rbac},
	{"widens the budget of others", patches(budgetOfOthers, "spec: {maxUnavailable: 100%}"), rbac},
	{"deletes the budget of others", deletes(budgetOfOthers), rbac},
	{"drains nodes by labels for a rollout", creates(attemptOf(byLabel, "")), "ebbtide-manager-shutdowns"},
	{"drains past budgets for a rollout", creates(attemptOf(byNameB, `  deadline: {time: "2046-01-01T00:00:00Z", onDeadline: Delete}`)), "ebbtide-manager-shutdowns or ebbtide-bypass-budgets"},
	{"takes the maintenance of others into a rollout", patches(maintenance, "metadata: {labels: {ebbtide.dev/rollout: MAINTENANCE}, annotations: {ebbtide.dev/rollout-attempt: any}}"), "ebbtide-accounts"},
	{"has the node of others rebooted", patches(maintenance, "metadata: {annotations: {ebbtide.dev/reboot: 'true'}}"), "ebbtide-accounts"},
}
