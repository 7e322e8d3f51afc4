package api

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/test/cluster"
)

// forged has the manager believe that a maintenance, which is over, has cordoned the node.
const forged = `ebbtide.dev/cordon: '{"wasUnschedulable":false,"holders":[]}'`

// onNodes is a user with the right to write nodes, or their status, on an API server with our
// policies, and the manager.
func onNodes(t *testing.T, resource string) (admin, user, manager client.Client) {
	t.Helper()
	server := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	installPolicies(t, server)
	_, user = server.User(t, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"create", "get", "update", "patch"}})
	return server.Client, user, server.Mighty(t, cluster.Account.User())
}

// Kubernetes lets who may write the status of nodes write their annotations and labels with
// it, as agents of all kinds do. The manager would uncordon a node that a person has cordoned.
func TestNodeStatusRightsDoNotChangeDecisions(t *testing.T) {
	t.Parallel()
	admin, attacker, manager := onNodes(t, "nodes/status")
	const noted, regarded = " of a node is what Ebbtide has noted about it", " of a node is changed on the node itself, and not through its status"
	patchStatus := func(by client.Client, node, metadata string) error {
		o := object(t, "{apiVersion: v1, kind: Node, metadata: {name: "+node+"}}")
		return patch(t, by, o, "status: {phase: Running}\nmetadata: "+metadata)
	}
	create(t, admin, "{apiVersion: v1, kind: Node, metadata: {name: cordoned-by-a-person}, spec: {unschedulable: true}}")
	for _, theirs := range []string{"{labels: {a: b}}", "{annotations: {a: b}}", "{annotations: {karpenter.sh/do-not-disrupt: 'true'}}"} {
		wantRefusal(t, theirs, patchStatus(attacker, "cordoned-by-a-person", theirs))
	}
	held := create(t, manager, `
apiVersion: v1
kind: Node
metadata:
  name: held-by-a-maintenance
  labels: {ebbtide.dev/handed-over: "true"}
  annotations: {ebbtide.dev/cordon: any, ebbtide.dev/drain-targets: any, ebbtide.dev/handed-over-by: any, ebbtide.dev/reboot-promise: any, karpenter.sh/do-not-disrupt: "true"}`)
	for node, attacks := range map[string]map[string]string{
		"cordoned-by-a-person": {
			"{annotations: {" + forged + "}}": noted,
			`{annotations: {ebbtide.dev/drain-targets: '[{"podPriority":0,"podType":"Static"}]'}}`: noted,
			"{labels: {ebbtide.dev/handed-over: 'true'}}":                                          noted,
			"{annotations: {ebbtide.dev/handed-over-by: m}}":                                       noted,
			"{annotations: {ebbtide.dev/reboot-promise: m}}":                                       noted,
			"{annotations: {cluster.x-k8s.io/machine: mine}}":                                      regarded,
			"{annotations: {cluster.x-k8s.io/cluster-name: mine}}":                                 regarded,
			"{annotations: {cluster.x-k8s.io/cluster-namespace: mine}}":                            regarded,
			"{annotations: {machine.openshift.io/machine: mine/one}}":                              regarded,
		},
		"held-by-a-maintenance": {
			"{annotations: {ebbtide.dev/cordon: null}}":                                  noted,
			"{annotations: {" + forged + "}}":                                            noted,
			"{annotations: {ebbtide.dev/drain-targets: null}}":                           noted,
			"{annotations: {ebbtide.dev/handed-over-by: null}}":                          noted,
			"{annotations: {ebbtide.dev/reboot-promise: null}}":                          noted,
			"{labels: {ebbtide.dev/handed-over: null}}":                                  noted,
			"{annotations: {karpenter.sh/do-not-disrupt: null}}":                         regarded,
			"{annotations: {cluster-autoscaler.kubernetes.io/scale-down-disabled: 'f'}}": regarded,
		},
	} {
		for attack, want := range attacks {
			wantRefusal(t, attack+" of "+node, patchStatus(attacker, node, attack), want)
			wantRefusal(t, attack+" by an administrator", patchStatus(admin, node, attack), want)
		}
	}
	// Kubelets go on to report, whatever their nodes bear.
	wantRefusal(t, "a condition", patch(t, attacker, held, "status: {conditions: [{type: Ready, status: 'True'}]}"))
}

// Who may change nodes has no more say about what we have noted than to remove it.
func TestNodeRightsDoNotForgeALedger(t *testing.T) {
	t.Parallel()
	admin, user, manager := onNodes(t, "nodes")
	const noted = " of a node is what Ebbtide has noted about it, and Ebbtide alone writes that: ask for a NodeMaintenance; " +
		"who may change nodes may remove it, but not through their status"
	node := create(t, admin, "{apiVersion: v1, kind: Node, metadata: {name: forged-ledger}, spec: {unschedulable: true}}")
	keys := []string{"annotations: {ebbtide.dev/cordon", "annotations: {ebbtide.dev/drain-targets", "annotations: {ebbtide.dev/handed-over-by", "annotations: {ebbtide.dev/reboot-promise", "labels: {ebbtide.dev/handed-over"}
	for _, key := range keys {
		wantRefusal(t, key, patch(t, user, node, "metadata: {"+key+": any}}"), noted)
		wantRefusal(t, key+" on a new node", try(t, user, "{apiVersion: v1, kind: Node, metadata: {name: forged-anew, "+key+": any}}}"), noted)
	}
	for _, key := range keys {
		wantRefusal(t, key+" by the manager", patch(t, manager, node, "metadata: {"+key+": any}}"))
		wantRefusal(t, "another "+key, patch(t, user, node, "metadata: {"+key+": other}}"), noted)
	}
	for _, mine := range []string{
		"spec: {unschedulable: false}", "metadata: {labels: {a: b}}", "metadata: {annotations: {karpenter.sh/do-not-disrupt: 'true'}}",
		"metadata: {annotations: {cluster.x-k8s.io/machine: mine}}",
	} {
		wantRefusal(t, mine, patch(t, user, node, mine))
	}
	for _, key := range keys {
		wantRefusal(t, key+" is removed", patch(t, user, node, "metadata: {"+key+": null}}"))
	}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
		t.Fatal(err)
	}
	if left := fmt.Sprint(node.GetAnnotations(), node.GetLabels()); strings.Contains(left, "ebbtide.dev") {
		t.Errorf("the node bears %s", left)
	}
}
