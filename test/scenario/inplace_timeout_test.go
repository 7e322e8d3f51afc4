package scenario

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// impatient is a maintenance that has given up to wait for a lock after this time.
func impatient(action v1alpha1.LockTimeoutAction, seconds int32) v1alpha1.InPlace {
	return v1alpha1.InPlace{ExpectedDowntimeSeconds: 120, LockTimeoutSeconds: seconds, OnLockTimeout: action}
}

// cannotLock begins a maintenance in place of a node with two pods. The owner has
// locked the budget of one, and nobody that of the other.
func (w *world) cannotLock(inPlace v1alpha1.InPlace) (node string) {
	w.t.Helper()
	node = w.nodes("one")[0]
	w.guarded(node, "free", "locked")
	w.setLock("locked", ownerLock(time.Now().Add(time.Hour)))
	w.maintainInPlace("upgrade", inPlace, node)
	return node
}

// After the time is up a pod is drained as if it did not stay, which its budget still
// has to allow. The other one stays.
func TestLockTimeoutEvicts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	w.guarded(node, "free", "closed")
	w.closeBudget("closed")
	w.maintainInPlace("upgrade", impatient(v1alpha1.LockTimeoutEvict, 2), node)

	w.awaitWarning("NodeMaintenance", w.name("upgrade"), "LockTimedOut", w.ns+"/closed ")
	w.awaitGivenUp(node, "closed", v1alpha1.LockTimeoutEvict)
	w.awaitEvacuation("closed")
	w.awaitPod("closed", "left alone while its budget allows nothing", available)
	w.openBudget("closed")

	w.awaitGone("closed")
	w.awaitDrained("upgrade")
	w.awaitPod("free", "left alone", available)
	w.awaitLock(w.holder("upgrade", node), "free")
	w.sayBack(node)
	w.setStage("upgrade", v1alpha1.StageComplete)
	w.awaitNothingLocked(node)
}

// The time is up, and the pod cannot leave because its owner has locked its budget. It
// is not asked to, and when the owner is ready it stays.
func TestLongALockThatIsFreeBeforeThePodsHaveLeftIsTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.cannotLock(impatient(v1alpha1.LockTimeoutEvict, 1))
	w.awaitWaits("upgrade", node, "is locked by dba until ")
	begin := time.Now()
	w.eventually("much more time than the maintenance has", func() (bool, any) { return time.Since(begin) > 5*time.Second, begin })
	w.awaitWaits("upgrade", node, "is locked by dba until ")
	w.setLock("locked", "")

	w.awaitDrained("upgrade")
	w.awaitLock(w.holder("upgrade", node), "free", "locked")
	w.awaitPods("both pods left alone", readyPods(2))
	w.awaitNoEvacuations()
	w.sayBack(node)
	w.setStage("upgrade", v1alpha1.StageComplete)
	w.awaitNothingLocked(node)
}

// The next node of a pool waits much longer than its lock timeout, because the one
// before reboots as it should. It gives up nothing.
func TestLongWaitingOnesTurnIsNoTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two", "three")
	w.replicated(myApp)
	w.maintainInPlace("first", minutes, nodes[0])
	w.awaitDrained("first")
	w.maintainInPlace("second", impatient(v1alpha1.LockTimeoutEvict, 1), nodes[1])
	w.awaitWaits("second", nodes[1], "is locked by "+w.holder("first", nodes[0])+" until ")
	begin := time.Now()
	w.eventually("much more time than the maintenance has", func() (bool, any) { return time.Since(begin) > 6*time.Second, begin })
	w.awaitWaits("second", nodes[1], "is locked by "+w.holder("first", nodes[0])+" until ")
	w.awaitNoEvacuations()

	w.sayBack(nodes[0])
	w.setStage("first", v1alpha1.StageComplete)

	w.awaitDrained("second")
	w.awaitPods("nobody has left", readyPods(replicas))
	w.sayBack(nodes[1])
	w.setStage("second", v1alpha1.StageComplete)
	w.awaitNothingLocked(nodes...)
}

// After the time is up the maintenance still waits, says for whom, and holds nobody
// up meanwhile.
func TestLongLockTimeoutWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begin := time.Now()
	node := w.cannotLock(impatient(v1alpha1.LockTimeoutWait, 1))

	w.awaitWaits("upgrade", node, "is locked by dba until ")
	w.awaitRecord(node, "False", v1alpha1.ReasonWaitingForBudget)
	w.eventually("much more time than the maintenance has", func() (bool, any) { return time.Since(begin) > 5*time.Second, begin })
	w.assertStaysLocked("dba", "locked")
	w.assertStaysLocked("", "free")
	w.awaitWaits("upgrade", node, "is locked by dba until ")
	w.setLock("locked", "")

	w.awaitDrained("upgrade")
	w.awaitLock(w.holder("upgrade", node), "free", "locked")
	w.awaitPods("both pods left alone", readyPods(2))
	w.sayBack(node)
	w.setStage("upgrade", v1alpha1.StageComplete)
	w.awaitNothingLocked(node)
}

// After the time is up a pod is deleted whatever its budget says, and that is told.
func TestLongLockTimeoutDeletes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.cannotLock(impatient(v1alpha1.LockTimeoutDelete, 2))

	w.awaitGone("locked")
	w.awaitWarning("Pod", "locked", "PodDeletedPastBudget", w.ns+"/locked")
	w.awaitWarning("NodeMaintenance", w.name("upgrade"), "PodDeletedPastBudget", w.ns+"/locked")
	w.awaitLock("dba", "locked")
	w.awaitDrained("upgrade")
	w.awaitPod("free", "left alone", available)
	w.setLock("locked", "")
	w.sayBack(node)
	w.setStage("upgrade", v1alpha1.StageComplete)
	w.awaitNothingLocked(node)
}

// The time is up, and somebody forbids that the pod is deleted past its budget. The lock
// of that is gone before: the pod stays after all, and is not deleted when it may be.
func TestLongALockThatIsFreeBeforeAPodIsDeletedIsTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	w.guarded(node, "free", "locked")
	w.setLock("locked", ownerLock(time.Now().Add(time.Hour)))
	allow := w.protect("locked")
	w.maintainInPlace("upgrade", impatient(v1alpha1.LockTimeoutDelete, 1), node)
	w.awaitGivenUp(node, "locked", v1alpha1.LockTimeoutDelete)
	w.awaitEvacuation("locked")
	w.awaitPod("locked", "left alone", available)

	w.setLock("locked", "")

	w.awaitEvent("upgrade", v1alpha1.EventPodsStayAfterAll)
	w.awaitDrained("upgrade")
	w.awaitLock(w.holder("upgrade", node), "free", "locked")
	w.awaitNoEvacuations()
	allow()
	w.sayBack(node)
	w.setStage("upgrade", v1alpha1.StageComplete)
	w.awaitNothingLocked(node)
	w.awaitPods("both pods left alone", readyPods(2))
}

// protect has the API server let nobody evict or delete a pod until it is allowed to go.
func (w *world) protect(name string) (allow func()) {
	w.t.Helper()
	objects := w.cluster.Apply(w.t, "", fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s-protect}
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [DELETE], resourceNames: [%[2]s]}
    - {apiGroups: [""], apiVersions: [v1], resources: [pods/eviction], operations: [CREATE], resourceNames: [%[2]s]}
  validations: [{expression: "false", message: this pod is protected}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s-protect}
spec: {policyName: %[1]s-protect, validationActions: [Deny]}
`, w.ns, name))
	refusals := func() int {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
		err := errors.Join(w.client.Delete(w.ctx, pod, client.DryRunAll), w.evict(pod, metav1.DryRunAll))
		return strings.Count(fmt.Sprint(err), "this pod is protected")
	}
	w.eventually("pod "+name+" protected", func() (bool, any) { return refusals() == 2, nil })
	allow = sync.OnceFunc(func() {
		w.t.Helper()
		for _, object := range objects {
			w.must("unprotect", w.client.Delete(w.ctx, object))
		}
		w.eventually("pod "+name+" not protected", func() (bool, any) { return refusals() == 0, nil })
	})
	w.t.Cleanup(allow)
	return allow
}

// awaitGivenUp waits until the record of a node says that a budget is given up.
func (w *world) awaitGivenUp(node, budget string, action v1alpha1.LockTimeoutAction) {
	w.t.Helper()
	await(w, "budget "+budget+" given up", &v1alpha1.DrainRecord{}, node, func(r *v1alpha1.DrainRecord) bool {
		return len(r.Status.GivenUp) == 1 && r.Status.GivenUp[0].Name == budget && r.Status.GivenUp[0].Action == action
	})
}

// Who may drain nodes may not delete pods past their budgets, unless somebody has
// given that right.
func TestOnlyWhoMayDeletesPastBudgets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	drains := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"delete"}},
		{APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{"nodemaintenances"}, Verbs: []string{"create", "delete"}},
	}
	bypasses := rbacv1.PolicyRule{
		APIGroups: drains[1].APIGroups, Resources: drains[1].Resources, Verbs: []string{v1alpha1.BypassBudgetsVerb},
	}
	asks := func(user client.Client) error {
		planned := w.planned("upgrade", v1alpha1.StageIdle, named([]string{node}), nil)
		planned.Spec.InPlace = new(impatient(v1alpha1.LockTimeoutDelete, 1))
		return w.admitted(func() error { return user.Create(w.ctx, planned, client.DryRunAll) })
	}

	name, user := w.cluster.User(t, drains...)
	words := fmt.Sprintf("user %q does not have the verb %q on nodemaintenances", name, v1alpha1.BypassBudgetsVerb)
	if err := asks(user); !apierrors.IsForbidden(err) || !contains(err.Error(), words) {
		t.Errorf("onLockTimeout Delete: %v, want it to be forbidden with the words %s", err, words)
	}

	_, user = w.cluster.User(t, append(drains, bypasses)...)
	if err := asks(user); err != nil {
		t.Errorf("onLockTimeout Delete by somebody who may: %v", err)
	}
}
