package api

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// ofEbbtide is a right to our kinds.
func ofEbbtide(resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{resource}, Verbs: verbs}
}

// bypasses is the right to delete pods past their budgets.
var bypasses = ofEbbtide("nodemaintenances", v1alpha1.BypassBudgetsVerb)

// mayNotBypass returns an API server with our policies and no webhook, and a user
// who may delete nodes and write all that is ours, but not bypass budgets.
func mayNotBypass(t *testing.T) (server *cluster.Cluster, name string, user client.Client) {
	t.Helper()
	server = cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	installPolicies(t, server)
	write := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	name, user = server.User(t,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: write},
		ofEbbtide("nodemaintenances", write...), ofEbbtide("nodemaintenances/status", write...),
		ofEbbtide("drainrecords", write...), ofEbbtide("drainrecords/status", write...))
	return server, name, user
}

const (
	deleteInPlace = "inPlace: {expectedDowntimeSeconds: 600, onLockTimeout: Delete}"
	deadline      = `deadline: {time: "2036-03-01T22:00:00Z", onDeadline: Delete}`
	allNodes      = `nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: Exists}]}]}`
)

// deletion is a way to have pods deleted past their budgets.
type deletion struct {
	// field is what asks for it in a spec, and milder what an action is otherwise.
	field, spec, milder string
	// without takes it away again.
	without string
}

var (
	byLockTimeout = deletion{"spec.inPlace.onLockTimeout", deleteInPlace, "Evict", "spec: {inPlace: null}"}
	byDeadline    = deletion{"spec.deadline.onDeadline", deadline, "Wait", "spec: {deadline: null}"}
)

// at returns the spec of a maintenance in a stage that deletes pods.
func (d deletion) at(stage string) string { return anyNode + "\nstage: " + stage + "\n" + d.spec }

// mild returns the same without the deletion.
func (d deletion) mild() string { return strings.Replace(d.at("Drain"), "Delete", d.milder, 1) }

// needsVerb wants nobody to make such a maintenance who does not have the verb.
func (d deletion) needsVerb(t *testing.T, advice string) {
	t.Helper()
	server, name, user := mayNotBypass(t)
	for _, stage := range []string{"Idle", "Cordon", "Drain", "Complete"} {
		err := try(t, user, maintenance("bypass-new", d.at(stage)))
		wantNoBypass(t, err, d.field, name)
		if err != nil && !strings.Contains(err.Error(), advice) {
			t.Errorf("the refusal names no other way: %v", err)
		}
	}
	for _, action := range []string{d.milder, "Wait"} {
		wantRefusal(t, action, try(t, user, maintenance("bypass-not", strings.Replace(d.at("Drain"), "Delete", action, 1))))
	}
	_, allowed := server.User(t, ofEbbtide("nodemaintenances", "create"), bypasses)
	_, everything := server.User(t, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	for who, c := range map[string]client.Client{"a user with the verb": allowed, "a cluster-admin": everything, "system:masters": server.Client} {
		wantRefusal(t, who, try(t, c, maintenance("bypass-allowed", d.at("Drain"))))
	}
}

// widening is a change of a maintenance by a user without the verb.
type widening struct {
	before, change string
	refused        bool
}

// guards wants changes refused that have more pods deleted, and others accepted.
func (d deletion) guards(t *testing.T, more map[string]widening) {
	t.Helper()
	server, name, user := mayNotBypass(t)
	all := map[string]widening{
		"idle to drain":         {d.at("Idle"), "spec: {stage: Drain}", true},
		"cordon to drain":       {d.at("Cordon"), "spec: {stage: Drain}", true},
		"more nodes":            {d.at("Drain"), "spec: {" + allNodes + "}", true},
		"a deeper drain":        {d.at("Drain") + "\ndrainDepth: Default", "spec: {drainDepth: Static}", true},
		"drain beside a label":  {d.at("Idle"), "metadata: {labels: {a: b}}\nspec: {stage: Drain}", true},
		"mild to delete":        {d.mild(), "spec: {" + d.spec + "}", true},
		"nothing to delete":     {anyNode + "\nstage: Drain", "spec: {" + d.spec + "}", true},
		"a label":               {d.at("Drain"), "metadata: {labels: {a: b}}", false},
		"a finalizer":           {d.at("Drain"), "metadata: {finalizers: [example.com/kept]}", false},
		"a reason":              {d.at("Drain"), "spec: {reason: as agreed}", false},
		"the status":            {d.at("Drain"), "status: {nodeCount: 1, summary: none}", false},
		"complete":              {d.at("Drain"), "spec: {stage: Complete}", false},
		"complete, fewer nodes": {d.at("Drain"), "spec: {stage: Complete, " + allNodes + "}", false},
		"delete to mild":        {d.at("Drain"), "spec: {" + strings.Replace(d.spec, "Delete", d.milder, 1) + "}", false},
		"no more of it":         {d.at("Drain"), d.without, false},
		"mild, and more nodes":  {d.at("Drain"), "spec: {" + strings.Replace(d.spec, "Delete", d.milder, 1) + ", " + allNodes + "}", false},
	}
	maps.Copy(all, more)
	for title, test := range all {
		t.Run(title, func(t *testing.T) {
			o := create(t, server.Client, maintenance(slug(t), test.before))
			err := patch(t, user, o, test.change)
			if test.refused {
				wantNoBypass(t, err, d.field, name)
			} else {
				wantRefusal(t, test.change, err)
			}
			accepts(t, server.Client, o, "metadata: {finalizers: []}")
		})
	}
	wantRefusal(t, "deletion", user.Delete(t.Context(), create(t, server.Client, maintenance(slug(t), d.at("Drain"))), client.DryRunAll))
}

// recordThat is the record of a drain that does this about budgets it cannot lock.
func recordThat(action, name string) string {
	return strings.Replace(record(name, ""), "600}", "600, onLockTimeout: "+action+"}", 1)
}

// wantNoBypass wants a refusal by our policy that names the field and the user
// and says what would help.
func wantNoBypass(t *testing.T, err error, field, user string) {
	t.Helper()
	for _, words := range []string{
		field + " is Delete, which deletes pods past their disruption budgets, and user " + fmt.Sprintf("%q", user) +
			` does not have the verb "bypass-budgets" on nodemaintenances`,
		`rule {apiGroups: ["ebbtide.dev"], resources: ["nodemaintenances"], verbs: ["bypass-budgets"]}`,
	} {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), words) {
			t.Errorf("error %v, want a refusal that says %s", err, words)
		}
	}
}

// The right to delete nodes is the right to drain them, and still not past the budgets.
func TestDeletionPastBudgetsNeedsItsVerb(t *testing.T) {
	t.Parallel()
	byLockTimeout.needsVerb(t, "choose Evict or Wait")
}

// What an administrator has asked for means no more by the change of another user.
func TestDeletionPastBudgetsIsNotWidened(t *testing.T) {
	t.Parallel()
	byLockTimeout.guards(t, map[string]widening{
		"a longer downtime":   {byLockTimeout.at("Drain"), "spec: {inPlace: {expectedDowntimeSeconds: 3600}}", true},
		"an earlier deletion": {byLockTimeout.at("Drain"), "spec: {inPlace: {lockTimeoutSeconds: 1}}", true},
	})
}

// The right to drain is no right to have pods deleted past their budgets at a deadline, be it a
// new one or that of another user.
func TestDeadlineThatDeletesNeedsItsVerb(t *testing.T) {
	t.Parallel()
	byDeadline.needsVerb(t, "choose Wait, or ask an administrator")
	server, _, user := mayNotBypass(t)
	wantRefusal(t, "a deadline without an action", try(t, user, maintenance("deadline-default", strings.Replace(byDeadline.at("Drain"), ", onDeadline: Delete", "", 1))))
	wantRefusal(t, "system:masters", try(t, server.Client, maintenance("deadline-masters", byDeadline.at("Drain"))))
	byDeadline.guards(t, map[string]widening{
		"an earlier time":              {byDeadline.at("Drain"), `spec: {deadline: {time: "2026-03-01T22:00:00Z"}}`, true},
		"a later time":                 {byDeadline.at("Drain"), `spec: {deadline: {time: "2046-03-01T22:00:00Z"}}`, true},
		"sooner before":                {byDeadline.at("Drain"), "spec: {deadline: {deleteBeforeSeconds: 86400}}", true},
		"no more in place":             {byDeadline.at("Drain") + "\ninPlace: {expectedDowntimeSeconds: 60}", "spec: {inPlace: null}", true},
		"mild, and another time":       {byDeadline.mild(), `spec: {deadline: {time: "2026-03-01T22:00:00Z"}}`, false},
		"the status of one that waits": {byDeadline.mild(), "status: {summary: none, deadline: {onDeadline: Delete}}", false},
	})
}

// The records that the manager believes are not a way around the policy.
func TestARecordThatDeletesNeedsTheVerb(t *testing.T) {
	t.Parallel()
	server, name, user := mayNotBypass(t)
	wantNoBypass(t, try(t, user, recordThat("Delete", "by-hand")), "spec.inPlace.onLockTimeout", name)
	wantRefusal(t, "a record that evicts", try(t, user, recordThat("Evict", "by-hand")))

	mild := create(t, server.Client, recordThat("Evict", "bypass-mild"))
	wild := create(t, server.Client, recordThat("Delete", "bypass-wild"))
	givenUp := func(action string) string {
		return `status: {givenUp: [{namespace: shop, name: db, action: ` + action + `, givenUpTime: "2026-01-01T00:00:00Z", message: none, pods: [` + stayingPod + `]}]}`
	}
	wantNoBypass(t, patch(t, user, mild, "spec: {inPlace: {onLockTimeout: Delete}}"), "spec.inPlace.onLockTimeout", name)
	wantNoBypass(t, patch(t, user, mild, givenUp("Delete")), "status.givenUp[].action", name)
	wantNoBypass(t, patch(t, user, wild, "spec: {pods: ["+stayingPod+"]}"), "spec.inPlace.onLockTimeout", name)
	wantNoBypass(t, patch(t, user, wild, `status: {waitStartTime: "2020-01-01T00:00:00Z"}`), "spec.inPlace.onLockTimeout", name)
	for change, o := range map[string]client.Object{
		givenUp("Evict"):                         mild,
		"metadata: {labels: {a: b}}":             wild,
		"metadata: {annotations: {a: b}}":        wild,
		"spec: {inPlace: {onLockTimeout: Wait}}": wild,
	} {
		wantRefusal(t, change, patch(t, user, object(t, recordThat("Wait", o.GetName())), change))
	}
}

// The manager completes what it holds, and keeps its own records, without the verb.
func TestTheManagerNeedsNoVerb(t *testing.T) {
	t.Parallel()
	server, _, _ := mayNotBypass(t)
	manager := theManager(t, server, ofEbbtide("nodemaintenances", "get"), rest.NoWarnings{})
	m := create(t, server.Client, maintenance("by-the-manager", byLockTimeout.at("Drain")))
	accepts(t, manager, m, "metadata: {finalizers: ["+v1alpha1.MaintenanceCompletionFinalizer+"]}", "metadata: {finalizers: []}")
	accepts(t, manager, create(t, manager, recordThat("Delete", "by-the-manager")),
		"spec: {pods: ["+stayingPod+"]}",
		`status: {givenUp: [{namespace: shop, name: db, action: Delete, givenUpTime: "2026-01-01T00:00:00Z", message: none}]}`,
		"spec: {complete: true}")
}

// Whoever has taken over the manager's account gives no maintenance a deadline.
func TestTheManagerChangesNoDeadline(t *testing.T) {
	t.Parallel()
	server, _, _ := mayNotBypass(t)
	manager := theManager(t, server, ofEbbtide("nodemaintenances", "get"), nil)
	m := create(t, server.Client, maintenance("late-by-the-manager", byDeadline.at("Drain")+"\nreason: none"))
	for _, change := range []string{
		`spec: {deadline: {time: "2026-03-01T22:00:00Z"}}`, "spec: {deadline: {onDeadline: Wait}}", "spec: {deadline: null}",
	} {
		wantRefusal(t, change+" by the manager", patch(t, manager, m, change), onlyEnds, hasNoVerb)
	}
	accepts(t, manager, m, "metadata: {finalizers: ["+v1alpha1.MaintenanceCompletionFinalizer+"]}")
	accepts(t, server.Client, m, "metadata: {finalizers: []}")
}

// theManager returns the client of the manager's user, with this right beside
// those that any user of such records has, and who hears what it is warned of.
func theManager(t *testing.T, server *cluster.Cluster, right rbacv1.PolicyRule, heard rest.WarningHandler) client.Client {
	t.Helper()
	name, _ := server.User(t, right, ofEbbtide("nodemaintenances", "patch"),
		ofEbbtide("drainrecords", "create", "patch", "delete"), ofEbbtide("drainrecords/status", "patch"))
	binding := &rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}}
	binding.Name = name + "-manager"
	binding.Subjects = []rbacv1.Subject{{
		Kind: rbacv1.ServiceAccountKind, Namespace: cluster.Account.Namespace, Name: cluster.Account.Name,
	}}
	keep(t, server.Client, binding)
	manager := as(t, server, rest.ImpersonationConfig{UserName: cluster.Account.User()}, heard)
	patience.Eventually(t, "the rights of the manager", func(context.Context) (string, bool) {
		err := try(t, manager, record("probe", ""))
		return fmt.Sprint(err), err == nil
	})
	return manager
}
