package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/test/cluster"
)

// locked is a PodDisruptionBudget with this lock.
func locked(name, lock string) string {
	return fmt.Sprintf(`
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: %s
  namespace: default
  annotations: {%s: %q}
spec: {minAvailable: 1, selector: {matchLabels: {app: db}}}`, name, v1alpha1.LockAnnotation, lock)
}

// unreadable is the warning of a lock that nobody can read.
func unreadable(name, fault string) []string {
	return []string{"annotation ebbtide.dev/lock cannot be read: " + fault + ". Nobody knows whose lock it is, so it holds for 10 minutes after each " +
		`change of the PodDisruptionBudget; "kubectl ebbtide unlock pdb/` + name + ` -n default --force" removes it, and "kubectl ebbtide lock pdb/` +
		name + ` -n default" writes one that can be read`}
}

const (
	noTime      = `its expiresAt is not a time such as "2027-01-31T15:04:05Z"`
	noOtherTime = `its acquiredAt or renewedAt is not a time such as "2027-01-31T15:04:05Z"`
)

// ahead is a time from now as it is written.
func ahead(in time.Duration) string { return time.Now().Add(in).UTC().Format(time.RFC3339) }

// written is a lock as we write it.
func written(begun, ends time.Duration) string {
	renewed := metav1.NewTime(time.Now().Add(begun))
	return budget.Lock{
		Holder: "team/db", Reason: `new {"kernel"}`,
		AcquiredAt: metav1.NewTime(time.Now().Add(begun - time.Hour)), RenewedAt: &renewed, ExpiresAt: metav1.NewTime(time.Now().Add(ends)),
	}.Write()
}

// Locks and the fault of which their writer is told.
var writtenLocks = map[string]struct{ lock, fault string }{
	"as-we-write-it":      {written(0, time.Hour), ""},
	"4-hours":             {written(0, 4*time.Hour), ""},
	"only-what-is-needed": {`{"holder":"jane","expiresAt":"` + ahead(time.Hour) + `"}`, ""},
	"by-hand":             {"\n { \"expiresAt\" :\n\"" + ahead(time.Hour) + "\", \"holder\": \" jane\" } \n", ""},
	"in-capitals":         {`{"HOLDER":"jane","ExpiresAt":"` + ahead(time.Hour) + `"}`, ""},
	"another-zone":        {`{"holder":"jane","expiresAt":"` + time.Now().Add(time.Hour).In(time.FixedZone("", 5*3600+1800)).Format(time.RFC3339Nano) + `"}`, ""},
	"no-renewal":          {`{"holder":"jane","renewedAt":null,"acquiredAt": null,"expiresAt":"` + ahead(time.Hour) + `"}`, ""},
	"empty":               {``, "it is not a JSON object"},
	"a-word":              {`locked`, "it is not a JSON object"},
	"true":                {`true`, "it is not a JSON object"},
	"a-list":              {`[{"holder":"jane","expiresAt":"` + ahead(time.Hour) + `"}]`, "it is not a JSON object"},
	"cut-off":             {`{"holder":"jane","expiresAt":"` + ahead(time.Hour) + `"`, "it is not a JSON object"},
	"yaml":                {"holder: jane\nexpiresAt: " + ahead(time.Hour), "it is not a JSON object"},
	"an-empty-object":     {`{}`, "it names no holder"},
	"no-holder":           {`{"expiresAt":"` + ahead(time.Hour) + `"}`, "it names no holder"},
	"a-blank-holder":      {`{"holder":" ","expiresAt":"` + ahead(time.Hour) + `"}`, "it names no holder"},
	"a-number":            {`{"holder":7,"expiresAt":"` + ahead(time.Hour) + `"}`, "it names no holder"},
	"no-end":              {`{"holder":"jane"}`, noTime},
	"an-end-of-null":      {`{"holder":"jane","expiresAt":null}`, noTime},
	"a-date":              {`{"holder":"jane","expiresAt":"2099-01-01"}`, noTime},
	"seconds":             {`{"holder":"jane","expiresAt":4070908800}`, noTime},
	"a-time-without-zone": {`{"holder":"jane","expiresAt":"2099-01-01T00:00:00"}`, noTime},
	"begun-at-noon":       {`{"holder":"jane","acquiredAt":"noon","expiresAt":"` + ahead(time.Hour) + `"}`, noOtherTime},
	"renewed-at-noon":     {`{"holder":"jane","acquiredAt":"` + ahead(0) + `","renewedAt":"noon","expiresAt":"` + ahead(time.Hour) + `"}`, noOtherTime},
}

// Whoever writes a lock that nobody can read is told at once, and never of one
// that can be read.
func TestAnUnreadableLockIsWarnedOf(t *testing.T) {
	t.Parallel()
	c, heard := warned(t)
	for name, test := range writtenLocks {
		t.Run(name, func(t *testing.T) {
			name := "lock-" + name
			var want []string
			if test.fault != "" {
				want = unreadable(name, test.fault)
			}
			create(t, c, locked(name, test.lock))
			heard.heard(t, "its creation", want...)
			pdb := &policyv1.PodDisruptionBudget{}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, pdb); err != nil {
				t.Fatal(err)
			}
			if hold, inForce := budget.LockOf(pdb, time.Now(), 0); !inForce || (hold.Unreadable != nil) != (test.fault != "") {
				t.Errorf("in force: %v, %+v; warned of %q", inForce, hold, test.fault)
			}
		})
	}
}

// A lock that does not hold for as long as it says is told, too.
func TestALockOfTheWrongLengthIsWarnedOf(t *testing.T) {
	t.Parallel()
	c, heard := warned(t)
	const never = "annotation ebbtide.dev/lock holds nobody up: the lock ended at "
	const long = "a lock ends 4 hours after it was acquired or renewed, unless the manager runs with another --longest-lock"
	for name, test := range map[string]struct{ lock, want string }{
		"last-year":       {`{"holder":"jane","expiresAt":"2025-01-01T00:00:00Z"}`, never + "2025-01-01T00:00:00Z"},
		"a-minute-ago":    {written(-time.Hour, -time.Minute), never},
		"5-hours":         {written(0, 5*time.Hour), long},
		"years-ahead":     {`{"holder":"jane","expiresAt":"2099-01-01T00:00:00Z"}`, "does not hold until 2099-01-01T00:00:00Z, its expiresAt: " + long},
		"centuries-ahead": {`{"holder":"jane","expiresAt":"9999-12-31T23:59:59Z"}`, long},
	} {
		t.Run(name, func(t *testing.T) {
			if err := try(t, c, locked("length-"+name, test.lock)); err != nil {
				t.Errorf("refused: %v", err)
			}
			if got := heard.take(); len(got) != 1 || !strings.Contains(got[0], test.want) {
				t.Errorf("warnings %q, want one that says %q", got, test.want)
			}
		})
	}
}

// The names of drains are for drains. What the manager does not take for a drain's
// lock is its writer's own, who is told that the name is misleading.
func TestALockInTheNameOfADrainIsWarnedOf(t *testing.T) {
	t.Parallel()
	c, heard := warned(t)
	for name, lock := range map[string]string{
		"blank":    strings.Replace(drainLock("reboot"), "{", "{ ", 1),
		"reversed": `{"expiresAt":"` + ahead(time.Hour) + `","holder":"nodemaintenance/reboot/node-1"}`,
		"capitals": strings.Replace(drainLock("reboot"), "holder", "Holder", 1),
	} {
		o := create(t, c, locked("drain-lock-"+name, lock))
		want := []string{"the holder in annotation ebbtide.dev/lock begins with nodemaintenance/, which is for drains, " +
			"and this is the lock of nobody's drain; choose another name"}
		heard.heard(t, "its creation", want...)
		pdb := &policyv1.PodDisruptionBudget{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), pdb); err != nil {
			t.Fatal(err)
		}
		if _, _, drain := holdOf(pdb).Drain(); drain {
			t.Errorf("%s: the manager takes this for a drain's: %s", name, lock)
		}
	}
}

// The owner of a budget makes up the lock of a drain, so that a node has to look
// after it. It is refused in every way of writing that the manager would believe.
func TestOnlyTheManagerWritesTheLockOfADrain(t *testing.T) {
	t.Parallel()
	server := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	installPolicies(t, server)
	reporting := onBudgets("update", "patch")
	reporting.Resources = []string{"poddisruptionbudgets/status"}
	_, owner := server.User(t, onBudgets("create", "get", "update", "patch"), reporting)
	const want = "annotation ebbtide.dev/lock is that of a drain, which Ebbtide alone writes: remove the annotation, " +
		"or lock the PodDisruptionBudget in your own name with kubectl ebbtide lock"
	refused := func(what string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", what, err, want)
		}
	}
	lock := drainLock("reboot")
	unlocked := object(t, locked("forged", lock))
	unlocked.SetAnnotations(nil)
	if err := server.Client.Create(t.Context(), unlocked); err != nil {
		t.Fatal(err)
	}
	refused("create", try(t, owner, locked("forged-at-once", lock)))
	refused("patch", patch(t, owner, unlocked, fmt.Sprintf("metadata: {annotations: {ebbtide.dev/lock: %q}}", lock)))
	refused("of two holders the first", patch(t, owner, unlocked,
		fmt.Sprintf("metadata: {annotations: {ebbtide.dev/lock: %q}}", strings.Replace(lock, "}", `,"holder":"jane"}`, 1))))
	refused("through its status", patch(t, owner, unlocked, fmt.Sprintf("status: {expectedPods: 1}\nmetadata: {annotations: {ebbtide.dev/lock: %q}}", lock)))
	refused("an administrator", patch(t, server.Client, unlocked, fmt.Sprintf("metadata: {annotations: {ebbtide.dev/lock: %q}}", lock)))

	heard := &warnings{}
	manager := theManager(t, server, onBudgets("patch"), heard)
	heard.take()
	if err := patch(t, manager, unlocked, fmt.Sprintf("metadata: {annotations: {ebbtide.dev/lock: %q}}", lock)); err != nil {
		t.Fatalf("the manager's own lock: %v", err)
	}
	if got := heard.take(); got != nil {
		t.Errorf("the manager is warned of its own lock: %q", got)
	}
	refused("prolong", patch(t, owner, unlocked, fmt.Sprintf("metadata: {annotations: {ebbtide.dev/lock: %q}}", drainLock("other"))))
	for _, mine := range []string{"metadata: {labels: {a: b}}", "spec: {minAvailable: 2}", "metadata: {annotations: {ebbtide.dev/lock: null}}"} {
		if err := patch(t, owner, unlocked, mine); err != nil {
			t.Errorf("%s of a budget that a drain has locked: %v", mine, err)
		}
	}
}

// drainLock is the lock of node-1 as the manager writes it.
func drainLock(maintenance string) string {
	return strings.Replace(written(0, time.Hour), "team/db", budget.Holder(maintenance, "node-1"), 1)
}

func holdOf(b *policyv1.PodDisruptionBudget) budget.Hold {
	hold, _ := budget.LockOf(b, time.Now(), 0)
	return hold
}

// onBudgets is a right to PodDisruptionBudgets.
func onBudgets(verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{policyv1.GroupName}, Resources: []string{"poddisruptionbudgets"}, Verbs: verbs}
}

// Only who writes the lock is told, and no other change of the budget.
func TestOtherChangesOfALockedBudgetAreNotWarnedOf(t *testing.T) {
	t.Parallel()
	c, heard := warned(t)
	o := create(t, c, locked("changed-lock", "garbage"))
	heard.take()
	unread := unreadable("changed-lock", "it is not a JSON object")
	heard.play(t, o,
		step{c, "metadata: {labels: {a: b}}", nil},
		step{c, "spec: {minAvailable: 2}", nil},
		step{c, "status: {disruptionsAllowed: 1}", nil},
		step{c, "metadata: {annotations: {ebbtide.dev/lock: other garbage}}", unread},
		step{c, "metadata: {annotations: {ebbtide.dev/lock: null}}", nil},
		step{c, "metadata: {annotations: {ebbtide.dev/lock: again}}", unread})
}
