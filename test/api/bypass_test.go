package api

import (
	"context"
	"fmt"
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
	// The API server reads policies from a cache of its own.
	for _, document := range []string{maintenance("first", deletes("Idle")), recordThat("Delete", "first")} {
		patience.Eventually(t, "the policies to be obeyed", func(context.Context) (string, bool) {
			err := try(t, user, document)
			return fmt.Sprint(err), apierrors.IsForbidden(err)
		})
	}
	return server, name, user
}

const deleteInPlace = "inPlace: {expectedDowntimeSeconds: 600, onLockTimeout: Delete}"

// deletes is the spec of a maintenance that deletes pods past their budgets.
func deletes(stage string) string { return anyNode + "\nstage: " + stage + "\n" + deleteInPlace }

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

// Whoever may delete nodes may drain them, and still not past the budgets.
func TestDeletionPastBudgetsNeedsItsVerb(t *testing.T) {
	t.Parallel()
	server, name, user := mayNotBypass(t)
	for _, stage := range []string{"Idle", "Cordon", "Drain", "Complete"} {
		err := try(t, user, maintenance("bypass-new", deletes(stage)))
		wantNoBypass(t, err, "spec.inPlace.onLockTimeout", name)
		if err != nil && !strings.Contains(err.Error(), "choose Evict or Wait") {
			t.Errorf("the refusal names no other way: %v", err)
		}
	}
	for _, action := range []string{"Evict", "Wait"} {
		if err := try(t, user, maintenance("bypass-not", strings.Replace(deletes("Drain"), "Delete", action, 1))); err != nil {
			t.Errorf("%s is refused: %v", action, err)
		}
	}
	_, allowed := server.User(t, ofEbbtide("nodemaintenances", "create"), bypasses)
	_, everything := server.User(t, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	for who, c := range map[string]client.Client{"a user with the verb": allowed, "a cluster-admin": everything, "system:masters": server.Client} {
		if err := try(t, c, maintenance("bypass-allowed", deletes("Drain"))); err != nil {
			t.Errorf("%s is refused: %v", who, err)
		}
	}
}

// What an administrator asked for is not made to mean more by somebody else.
func TestNobodyElseWidensADeletion(t *testing.T) {
	t.Parallel()
	server, name, user := mayNotBypass(t)
	const allNodes = `nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: Exists}]}]}`
	for title, test := range map[string]struct {
		before, change string
		refused        bool
	}{
		"idle to drain":         {deletes("Idle"), "spec: {stage: Drain}", true},
		"cordon to drain":       {deletes("Cordon"), "spec: {stage: Drain}", true},
		"more nodes":            {deletes("Drain"), "spec: {" + allNodes + "}", true},
		"a deeper drain":        {deletes("Drain") + "\ndrainDepth: Default", "spec: {drainDepth: Static}", true},
		"a longer downtime":     {deletes("Drain"), "spec: {inPlace: {expectedDowntimeSeconds: 3600}}", true},
		"an earlier deletion":   {deletes("Drain"), "spec: {inPlace: {lockTimeoutSeconds: 1}}", true},
		"evict to delete":       {strings.Replace(deletes("Drain"), "Delete", "Evict", 1), "spec: {inPlace: {onLockTimeout: Delete}}", true},
		"in place and delete":   {anyNode + "\nstage: Drain", "spec: {" + deleteInPlace + "}", true},
		"drain beside a label":  {deletes("Idle"), "metadata: {labels: {a: b}}\nspec: {stage: Drain}", true},
		"a label":               {deletes("Drain"), "metadata: {labels: {a: b}}", false},
		"a finalizer":           {deletes("Drain"), "metadata: {finalizers: [example.com/kept]}", false},
		"a reason":              {deletes("Drain"), "spec: {reason: as agreed}", false},
		"the status":            {deletes("Drain"), "status: {nodes: 1}", false},
		"complete":              {deletes("Drain"), "spec: {stage: Complete}", false},
		"complete, fewer nodes": {deletes("Drain"), "spec: {stage: Complete, " + allNodes + "}", false},
		"delete to evict":       {deletes("Drain"), "spec: {inPlace: {onLockTimeout: Evict}}", false},
		"no more in place":      {deletes("Drain"), "spec: {inPlace: null}", false},
		"evict, and more nodes": {deletes("Drain"), "spec: {inPlace: {onLockTimeout: Evict}, " + allNodes + "}", false},
	} {
		t.Run(title, func(t *testing.T) {
			slug := "widen-" + strings.Trim(notInName.ReplaceAllString(title, "-"), "-")
			o := create(t, server.Client, maintenance(slug, test.before))
			err := patch(t, user, o, test.change)
			if test.refused {
				wantNoBypass(t, err, "spec.inPlace.onLockTimeout", name)
			} else if err != nil {
				t.Errorf("refused: %v", err)
			}
			if err := patch(t, server.Client, o, "metadata: {finalizers: []}"); err != nil {
				t.Error(err)
			}
		})
	}
	o := create(t, server.Client, maintenance("widen-deleted", deletes("Drain")))
	if err := user.Delete(t.Context(), o, client.DryRunAll); err != nil {
		t.Errorf("deletion is refused: %v", err)
	}
}

// The records that the manager believes are not a way around the policy.
func TestARecordThatDeletesNeedsTheVerb(t *testing.T) {
	t.Parallel()
	server, name, user := mayNotBypass(t)
	wantNoBypass(t, try(t, user, recordThat("Delete", "by-hand")), "spec.inPlace.onLockTimeout", name)
	if err := try(t, user, recordThat("Evict", "by-hand")); err != nil {
		t.Errorf("a record that evicts is refused: %v", err)
	}

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
		if err := patch(t, user, object(t, recordThat("Wait", o.GetName())), change); err != nil {
			t.Errorf("%s of %s is refused: %v", change, o.GetName(), err)
		}
	}
}

// The manager completes what it holds, and keeps its own records, without the verb.
func TestTheManagerNeedsNoVerb(t *testing.T) {
	t.Parallel()
	server, _, _ := mayNotBypass(t)
	manager := theManager(t, server, ofEbbtide("nodemaintenances", "get"), rest.NoWarnings{})
	m := create(t, server.Client, maintenance("by-the-manager", deletes("Drain")))
	for _, change := range []string{
		"metadata: {finalizers: [" + v1alpha1.MaintenanceCompletionFinalizer + "]}",
		"metadata: {finalizers: []}",
	} {
		if err := patch(t, manager, m, change); err != nil {
			t.Errorf("%s is refused: %v", change, err)
		}
	}
	r := create(t, manager, recordThat("Delete", "by-the-manager"))
	for _, change := range []string{
		"spec: {pods: [" + stayingPod + "]}",
		`status: {givenUp: [{namespace: shop, name: db, action: Delete, givenUpTime: "2026-01-01T00:00:00Z", message: none}]}`,
		"spec: {complete: true}",
	} {
		if err := patch(t, manager, r, change); err != nil {
			t.Errorf("%s is refused: %v", change, err)
		}
	}
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
	if err := server.Client.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Client.Delete(context.WithoutCancel(t.Context()), binding); err != nil {
			t.Error(err)
		}
	})
	config := rest.CopyConfig(server.Config)
	config.WarningHandler = heard
	config.Impersonate.UserName = cluster.Account.User()
	manager, err := client.New(config, client.Options{Scheme: server.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	patience.Eventually(t, "the rights of the manager", func(context.Context) (string, bool) {
		err := try(t, manager, record("probe", ""))
		return fmt.Sprint(err), err == nil
	})
	return manager
}
