package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/test/cluster"
)

const (
	marks       = "labels: {ebbtide.dev/rollout: kernel}, annotations: {ebbtide.dev/rollout-attempt: any}"
	onlyEbbtide = "mark a NodeMaintenance as the attempt of a NodeRollout, and only Ebbtide writes them"
	givesBack   = `deadline: {time: "2036-03-01T22:00:00Z", onDeadline: GiveBack}`
	keepsRecord = "finalizer ebbtide.dev/rollout keeps a NodeMaintenance as a record of its NodeRollout"
)

// attempt is the NodeMaintenance of a rollout.
func attempt(name, spec string) string {
	return strings.Replace(maintenance(name, aNodeByName+"\n"+spec), "metadata:", `metadata:
  labels: {ebbtide.dev/rollout: kernel}
  annotations: {ebbtide.dev/rollout-attempt: any}
  finalizers: [ebbtide.dev/rollout]`, 1)
}

// attempted has the manager create an attempt, and an administrator remove it after the test.
func attempted(t *testing.T, admin, manager client.Client, document string) *unstructured.Unstructured {
	t.Helper()
	o := object(t, document)
	if err := manager.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = admin.Patch(ctx, o.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
		_ = admin.Delete(ctx, o)
	})
	return o
}

// wantOutcome wants a refusal in these words; empty is none.
func wantOutcome(t *testing.T, what string, err error, refusal string) {
	t.Helper()
	if refusal == "" {
		wantRefusal(t, what, err)
		return
	}
	wantRefusal(t, what, err, refusal)
}

// A user who may write NodeMaintenances, and even their status, has no rollout count a node as done or
// failed, and does not have its records forgotten.
func TestOnlyTheManagerMarksMaintenancesOfRollouts(t *testing.T) {
	t.Parallel()
	server := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	installPolicies(t, server)
	write := []string{"get", "create", "update", "patch", "delete"}
	_, user := server.User(t, ofEbbtide("nodemaintenances", write...), ofEbbtide("nodemaintenances/status", write...))
	manager := server.Mighty(t, cluster.Account.User())

	forged := attempt("kernel-node-7-forged", "stage: Drain")
	for who, c := range map[string]client.Client{"a user": user, "an administrator": server.Client} {
		wantRefusal(t, who+" creates one", try(t, c, forged), onlyEbbtide)
	}
	wantRefusal(t, "only the finalizer", try(t, user, strings.Replace(maintenance("kept", aNodeByName), "metadata:", "metadata:\n  finalizers: [ebbtide.dev/rollout]", 1)), keepsRecord)

	plain := create(t, server.Client, maintenance("not-of-a-rollout", aNodeByName))
	for _, change := range []string{"labels: {ebbtide.dev/rollout: kernel}", "annotations: {ebbtide.dev/rollout-attempt: any}", marks} {
		wantRefusal(t, change, patch(t, user, plain, "metadata: {"+change+"}"), onlyEbbtide)
	}
	wantRefusal(t, "the finalizer later", patch(t, user, plain, "metadata: {finalizers: [ebbtide.dev/rollout]}"), keepsRecord)

	o := attempted(t, server.Client, manager, attempt("kernel-node-7-1", "stage: Drain"))
	for change, want := range map[string]string{
		"labels: {ebbtide.dev/rollout: another}":              onlyEbbtide,
		"labels: {ebbtide.dev/rollout: null}":                 onlyEbbtide,
		"annotations: {ebbtide.dev/rollout-attempt: another}": onlyEbbtide,
		"annotations: null":                                   onlyEbbtide,
		"finalizers: []":                                      keepsRecord,
		"finalizers: [ebbtide.dev/rollout, example.com/keep]": "",
		"labels: {team: a}":                                   "",
	} {
		wantOutcome(t, change, patch(t, user, o, "metadata: {"+change+"}"), want)
	}
	wantRefusal(t, "the status", patch(t, user, o, "status: {nodeCount: 1}\nmetadata: {labels: {ebbtide.dev/rollout: another}}"))
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil || o.GetLabels()["ebbtide.dev/rollout"] != "kernel" {
		t.Errorf("the status has taken a label along: %v, %v", o.GetLabels(), err)
	}
	wantRefusal(t, "its end", patch(t, user, o, "spec: {stage: Complete}"))
	_, deleter := server.User(t, ofEbbtide("nodemaintenances", write...), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"delete"}})
	wantRefusal(t, "a user who may delete every node", patch(t, deleter, o, "metadata: {finalizers: [example.com/keep]}"))
}

// The hook of an uninstall removes what marks them, and adds nothing.
func TestTheHookReleasesMaintenancesOfRollouts(t *testing.T) {
	t.Parallel()
	admin, manager := takenOver(t)
	_, hook := takenOver(t, "system:serviceaccount:"+cluster.Account.Namespace+":ebbtide-uninstall")
	o := attempted(t, admin, manager, attempt("kernel-node-7-hook", "stage: Drain"))
	wantRefusal(t, "another rollout", patch(t, hook, o, "metadata: {labels: {ebbtide.dev/rollout: another}}"),
		onlyEbbtide, "accounts of Ebbtide make no NodeMaintenance of others one of a NodeRollout")
	wantRefusal(t, "all of it", patch(t, hook, o,
		"metadata: {finalizers: [], labels: {ebbtide.dev/rollout: null}, annotations: {ebbtide.dev/rollout-attempt: null}}"))
}

// The manager drains one node at a time for a rollout, and deletes nothing before the node is given back.
func TestTheManagersAccountMakesMaintenancesOfRollouts(t *testing.T) {
	t.Parallel()
	admin, manager := takenOver(t)
	const notOurs = "Ebbtide's manager creates and deletes NodeMaintenances of nodes that shut down and of NodeRollouts, and no others"
	good := attempt("kernel-node-7", "stage: Drain\ninPlace: {expectedDowntimeSeconds: 60}")
	for document, refusal := range map[string]string{
		good: "",
		attempt("kernel-node-7", "stage: Drain\ncompleteWhen: {newBoot: true}"):           "",
		attempt("kernel-node-7", "stage: Drain\n"+deleteInPlace):                          "",
		attempt("kernel-node-7", "stage: Drain\n"+givesBack):                              "",
		attempt("kernel-node-7", "stage: Idle"):                                           notOurs,
		attempt("another-node-7", "stage: Drain"):                                         notOurs,
		attempt("kernel-node-7", "stage: Drain\n"+deadline):                               notOurs,
		strings.Replace(good, "operator: In", "operator: NotIn", 1):                       notOurs,
		strings.Replace(good, "rollout-attempt", "another", 1):                            notOurs,
		strings.Replace(good, "[ebbtide.dev/rollout]", "[]", 1):                           notOurs,
		strings.Replace(attempt("kernel-1", "stage: Drain"), aNodeByName, anyNode, 1):     notOurs,
		strings.Replace(attempt("kernel-1", "stage: Drain"), "{ebbtide.dev/", "{a.b/", 1): notOurs,
	} {
		wantOutcome(t, document, try(t, manager, document), refusal)
	}

	o := attempted(t, admin, manager, attempt("kernel-node-7-change", "stage: Drain"))
	wantRefusal(t, "its deletion", manager.Delete(t.Context(), o.DeepCopy()), notOurs)
	for change, allowed := range map[string]bool{
		"spec: {completeWhen: {kernelVersion: any}}":                      true,
		"metadata: {annotations: {ebbtide.dev/rollout-attempt: another}}": true,
		"metadata: {annotations: {ebbtide.dev/reboot: 'true'}}":           true,
		"metadata: {finalizers: []}":                                      true,
		"metadata: {finalizers: [], labels: null, annotations: null}":     true,
		"spec: {" + givesBack + "}":                                       true,
		"spec: {stage: Complete}":                                         true,
		"metadata: {labels: {ebbtide.dev/rollout: another}}":              false,
		"spec: {drainDepth: Default}":                                     false,
		"spec: {inPlace: {expectedDowntimeSeconds: 60}}":                  false,
		"spec: {" + deadline + "}":                                        false,
		"spec: {reason: another}":                                         false,
		"spec: {nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}": false,
	} {
		if err := patch(t, client.NewDryRunClient(manager), o, change); apierrors.IsForbidden(err) == allowed || allowed && err != nil {
			t.Errorf("%s: error %v, want it allowed: %v", change, err, allowed)
		}
	}
	accepts(t, manager, o, "spec: {stage: Complete}")
	wantRefusal(t, "the deletion of a complete one", manager.Delete(t.Context(), o.DeepCopy()))
}

// Its account makes no NodeMaintenance of a user the attempt of a rollout, which it may complete.
func TestTheManagersAccountTakesNoMaintenanceIntoARollout(t *testing.T) {
	t.Parallel()
	admin, manager := takenOver(t)
	o := create(t, admin, maintenance("kernel-of-a-user", aNodeByName+"\nstage: Drain"))
	wantRefusal(t, "the marks", patch(t, manager, o, "metadata: {"+marks+"}"), "accounts of Ebbtide make no NodeMaintenance of others one of a NodeRollout")
	wantRefusal(t, "a reboot", patch(t, manager, o, "metadata: {annotations: {ebbtide.dev/reboot: 'true'}}"), "and have no node rebooted for it")
	wantRefusal(t, "the end", patch(t, manager, o, "spec: {stage: Complete}"), "Ebbtide's manager changes of nodemaintenances only ")
}

func TestDeletionPastBudgetsByARolloutNeedsItsVerb(t *testing.T) {
	t.Parallel()
	server, _, _ := mayNotBypass(t)
	write := []string{"get", "create", "update", "patch"}
	name, user := server.User(t, ofEbbtide("noderollouts", write...))
	_, allowed := server.User(t, ofEbbtide("noderollouts", write...), bypasses)
	deletes := anyNode + "\nmaintenance:\n  " + deleteInPlace
	const field = "spec.maintenance.inPlace.onLockTimeout"
	wantNoBypass(t, try(t, user, rollout("bypass", deletes)), field, name)
	wantRefusal(t, "a user with the verb", try(t, allowed, rollout("bypass", deletes)))
	wantRefusal(t, "another action", try(t, user, rollout("bypass", strings.Replace(deletes, "Delete", "Wait", 1))))
	for n, step := range []struct {
		before, change string
		refused        bool
	}{
		{deletes, "spec: {" + allNodes + "}", true},
		{deletes, "spec: {controlPlane: Last}", true},
		{deletes, "spec: {target: {newBoot: true}}", true},
		{deletes, "spec: {nodes: [{name: a, forgivenAttemptCount: 1}]}", true},
		{deletes, "spec: {maintenance: {drainDepth: Default}}", true},
		{deletes + "\nstate: Paused", "spec: {state: Running}", true},
		{anyNode, "spec: {maintenance: {" + deleteInPlace + "}}", true},
		{deletes, "spec: {state: Paused}", false},
		{deletes, "spec: {state: Aborted, " + allNodes + "}", false},
		{deletes, "spec: {maxUnavailable: 5}", false},
		{deletes, "spec: {maintenance: {inPlace: null}}", false},
		{deletes, "metadata: {labels: {a: b}}", false},
	} {
		t.Run(step.change, func(t *testing.T) {
			o := create(t, server.Client, rollout(fmt.Sprintf("bypass-%d", n), step.before))
			err := patch(t, user, o, step.change)
			if step.refused {
				wantNoBypass(t, err, field, name)
			} else {
				wantRefusal(t, step.change, err)
			}
		})
	}
}

func TestApprovalOfARolloutNeedsItsVerb(t *testing.T) {
	t.Parallel()
	server := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	installPolicies(t, server)
	write := []string{"get", "create", "update", "patch"}
	name, user := server.User(t, ofEbbtide("noderollouts", write...))
	_, approver := server.User(t, ofEbbtide("noderollouts", append(write, "approve")...))
	refusal := fmt.Sprintf(`user %q does not have the verb "approve" on noderollouts`, name)
	canary := func(rest string) string { return anyNode + "\ncanary: {nodeCount: 2" + rest + "}" }
	waits := canary(", approved: false")
	wantRefusal(t, "approved from the start", try(t, user, rollout("approved", canary(", approved: true"))), refusal)
	wantRefusal(t, "waits", try(t, user, rollout("waits", waits)))
	for n, step := range []struct {
		before, change string
		refused        bool
	}{
		{waits, "spec: {canary: {approved: true}}", true},
		{waits, "spec: {canary: {approved: null}}", true},
		{waits, "spec: {canary: null}", true},
		{waits, "spec: {canary: {nodeCount: 200}}", true},
		{canary(""), "spec: {canary: {approved: true}}", true},
		{waits, "spec: {canary: {nodeCount: 1, soakSeconds: 60}}", false},
		{waits, "spec: {state: Aborted, canary: null}", false},
		{waits, "spec: {maxUnavailable: 2}", false},
		{canary(", approved: true"), "spec: {canary: {approved: false}}", false},
		{canary(", approved: true"), "spec: {canary: {nodeCount: 200}}", false},
		{canary(""), "spec: {canary: {approved: false}}", false},
		{anyNode, "spec: {canary: {nodeCount: 2}}", false},
	} {
		t.Run(step.change, func(t *testing.T) {
			o := create(t, server.Client, rollout(fmt.Sprintf("approval-%d", n), step.before))
			if err := patch(t, user, o, step.change); step.refused {
				wantRefusal(t, step.change, err, refusal)
				wantRefusal(t, step.change+" by a user with the verb", patch(t, approver, o, step.change))
			} else {
				wantRefusal(t, step.change, err)
			}
		})
	}
}
