package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// Who has the token of the hook of an uninstall, while it runs, removes what Ebbtide has left
// and does nothing else with the rights that take it.
func TestTheAccountOfTheHookRemovesAndNothingElse(t *testing.T) {
	t.Parallel()
	admin, hook := takenOver(t, "system:serviceaccount:"+cluster.Account.Namespace+":ebbtide-uninstall")
	for what, s := range confinements {
		// What managers write it only takes away.
		s.may = nil
		switch what {
		case "nodemaintenances that were handed over":
			s.may = []string{"metadata: {annotations: {ebbtide.dev/handed-over: null}}", "spec: {stage: Complete}"}
		case "nodemaintenances that were not handed over":
			s = confinement{object: s.object, may: s.mayNo, mayNo: []string{"spec: {reason: another}"}}
		case "nodemaintenances":
			s.mayNo = s.mayNo[1:]
		case "nodes by their status":
			s.may = []string{"status: {conditions: [{type: Odd, status: 'True', reason: EbbtideNodeMaintenance}]}", "status: {conditions: []}"}
		case "pods":
			s.may = []string{"metadata: {labels: {pod-template-hash: abc}}", "spec: {schedulingGates: [{name: example.com/wait}]}"}
		}
		if strings.Contains(what, "deadline") {
			// It completes every one.
			s.mayNo = slices.DeleteFunc(slices.Clone(s.mayNo), func(change string) bool { return strings.Contains(change, "stage: Complete") })
		}
		s.object = strings.Replace(s.object, "confined", "confined-to-remove", 1)
		t.Run(what, func(t *testing.T) {
			s.play(t, admin, hook, "the hook of an uninstall of Ebbtide changes of "+strings.Fields(what)[0]+" only ")
		})
	}
	const nothingElse = "the hook of an uninstall of Ebbtide deletes no nodes and no pods, and makes no NodeMaintenances"
	for _, document := range []string{confinedNode, confinedPod} {
		o := create(t, admin, strings.Replace(document, "name: confined", "name: not-deleted", 1))
		wantRefusal(t, "deletes a "+o.GetKind(), hook.Delete(t.Context(), o), nothingElse)
	}
	drain := maintenance("made-by-the-hook", anyNode+"\nstage: Drain")
	wantRefusal(t, "drains", hook.Create(t.Context(), object(t, drain)), nothingElse)
	wantRefusal(t, "asks whether it could", client.NewDryRunClient(hook).Create(t.Context(), object(t, drain)))
}

// Who has the manager's token puts no words into the mouths of others, and does not delete all
// Evacuations of a namespace by one request.
func TestTheManagersAccountWritesEventsInItsOwnName(t *testing.T) {
	t.Parallel()
	admin, manager := takenOver(t)
	event := func(name, controller string) string {
		return fmt.Sprintf(`
apiVersion: events.k8s.io/v1
kind: Event
metadata: {namespace: default, name: %s}
eventTime: "2026-03-01T12:00:00.000000Z"
regarding: {kind: Node, name: any}
type: Normal
reason: NodeCordoned
action: Cordon
reportingController: %s
reportingInstance: one`, name, controller)
	}
	const again, ownName = "series: {count: 2, lastObservedTime: '2026-03-01T12:00:00.000000Z'}", "Ebbtide's manager writes events of the reportingController ebbtide, and no others"
	ours, theirs := create(t, manager, event("of-the-manager", "ebbtide")), create(t, admin, event("of-the-kubelet", "kubelet"))
	wantRefusal(t, "its own event again", patch(t, manager, ours, again))
	wantRefusal(t, "the event of another", patch(t, manager, theirs, again), ownName)
	wantRefusal(t, "an event of another", try(t, manager, event("forged", "kubelet")), ownName)

	evacuation := `
apiVersion: ebbtide.dev/v1alpha1
kind: Evacuation
metadata: {namespace: default, name: of-a-team-web, labels: {team: a}}
spec: {podRef: {name: web, uid: of-a-team}}`
	o := create(t, admin, evacuation)
	all := func() error {
		return manager.DeleteAllOf(t.Context(), &v1alpha1.Evacuation{}, client.InNamespace("default"), client.MatchingLabels{"team": "a"})
	}
	wantRefusal(t, "all at once", all(), "Ebbtide's manager deletes Evacuations together that bear the label ebbtide.dev/complete, and others one by one")
	if err := patch(t, admin, o, "metadata: {labels: {ebbtide.dev/complete: 'true'}}"); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, "all that are over", all())
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
	wantRefusal(t, "one", manager.Delete(t.Context(), create(t, admin, evacuation)))
}

// Where bridges are switched on the manager may patch the Machines of others: an owner that does
// not exist would have the machine itself deleted. It runs alone, as kinds are served meanwhile.
func TestTheManagersAccountChangesOnlyItsHooksOfMachinesOfOthers(t *testing.T) {
	server := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	installPolicies(t, server)
	serveMachines(t, server, "cluster.x-k8s.io/v1beta2", "machine.openshift.io/v1beta1")
	for version, s := range map[string]confinement{
		"cluster.x-k8s.io/v1beta2": {
			may: []string{
				"metadata: {annotations: {pre-drain.delete.hook.machine.cluster.x-k8s.io/ebbtide: ebbtide.dev}}",
				"metadata: {annotations: {pre-drain.delete.hook.machine.cluster.x-k8s.io/ebbtide: null, machine.cluster.x-k8s.io/exclude-node-draining: drained by Ebbtide}}",
			},
			mayNo: []string{
				toNothing, held, "metadata: {labels: {cluster.x-k8s.io/a: b}}", "metadata: {annotations: {pre-drain.delete.hook.machine.cluster.x-k8s.io/backup: null}}",
				"spec: {providerID: mine}", "{status: {nodeRef: {name: mine}}}",
			},
		},
		"machine.openshift.io/v1beta1": {
			may: []string{
				"spec: {lifecycleHooks: {preDrain: [{name: etcd, owner: etcd}, {name: ebbtide, owner: ebbtide.dev}]}}",
				"spec: {lifecycleHooks: {preDrain: [{name: etcd, owner: etcd}]}}",
			},
			mayNo: []string{
				toNothing, held, "metadata: {annotations: {machine.openshift.io/a: b}}", "spec: {lifecycleHooks: {preDrain: []}}",
				"spec: {lifecycleHooks: {preTerminate: [{name: etcd, owner: etcd}]}}", "spec: {providerID: mine}",
			},
		},
	} {
		s.object = fmt.Sprintf(`
apiVersion: %s
kind: Machine
metadata: {namespace: default, name: of-others, annotations: {pre-drain.delete.hook.machine.cluster.x-k8s.io/backup: db-team}}
spec: {lifecycleHooks: {preDrain: [{name: etcd, owner: etcd}]}}`, version)
		group, _, _ := strings.Cut(version, "/")
		t.Run(group, func(t *testing.T) {
			s.play(t, server.Client, server.Mighty(t, cluster.Account.User()), "Ebbtide's manager changes of machines."+group+" only ")
		})
	}
}

// Who may write labels and annotations has the API server compare as many as an object may
// have. Nobody keeps nodes from being cordoned, or budgets from being locked, by what they bear.
func TestTheManagersAccountWritesWhateverElseAnObjectBears(t *testing.T) {
	t.Parallel()
	admin, manager := takenOver(t)
	for _, what := range []string{"nodes", "pods", "poddisruptionbudgets"} {
		for _, n := range []int{4990, 20000} {
			s := confinements[what]
			o := create(t, admin, strings.Replace(s.object, "name: confined", fmt.Sprintf("name: crowded-%d", n), 1))
			if err := patch(t, admin, o, "metadata: {annotations: {"+keys(n)+"}, labels: {"+keys(n)+"}}"); err != nil {
				t.Fatal(err)
			}
			for _, document := range s.may {
				wantRefusal(t, fmt.Sprintf("%s of %s with %d labels", document, what, n), patch(t, manager, o, document))
			}
			wantRefusal(t, fmt.Sprintf("an owner of %s with %d labels", what, n), patch(t, manager, o, toNothing), "metadata.ownerReferences")
		}
	}
	node := create(t, admin, strings.Replace(confinedNode, "confined", "not-crowded", 1))
	for _, n := range []int{1001, 5001, 20000} {
		if err := patch(t, manager, node, "metadata: {labels: {"+keys(n)+"}}"); !apierrors.IsForbidden(err) {
			t.Errorf("the manager crowds a node itself with %d labels: %v", n, err)
		}
	}
}

// keys are so many short ones, with empty values.
func keys(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("a%s: ''", strconv.FormatInt(int64(i), 36))
	}
	return strings.Join(all, ", ")
}
