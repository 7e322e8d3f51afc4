package evacuation_test

import (
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/test/difference"
)

// budgetOf selects every pod of the namespace and is locked for so much longer.
func budgetOf(namespace, name string, left time.Duration) *policyv1.PodDisruptionBudget {
	lock := budget.Lock{Holder: "dba@example.com", Reason: "defragmentation", AcquiredAt: *at(-time.Minute), ExpiresAt: *at(left)}
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Annotations: map[string]string{v1alpha1.LockAnnotation: lock.Write()},
		},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
	}
}

func free(b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	b.Annotations = nil
	return b
}

func narrow(b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}
	return b
}

// ofDrain is locked by the drain of a node.
func ofDrain(node string) *policyv1.PodDisruptionBudget {
	b := budgetOf("shop", "web", time.Hour)
	lock := budget.Lock{Holder: budget.Holder("reboot", node), AcquiredAt: *at(-time.Minute), ExpiresAt: *at(time.Hour)}
	b.Annotations = map[string]string{v1alpha1.LockAnnotation: lock.Write()}
	return b
}

func drainedOut(node string) string {
	return "PodDisruptionBudget shop/web is locked by nodemaintenance/reboot/" + node + " until 2026-03-01T09:00:00Z; try again when it is free"
}

const lockedOut = "PodDisruptionBudget shop/web is locked by dba@example.com until 2026-03-01T09:00:00Z: defragmentation; try again when it is free"

func TestACallUnderALockedBudgetWaits(t *testing.T) {
	t.Parallel()
	locked, open := budgetOf("shop", "web", time.Hour), free(budgetOf("shop", "all", 0))
	waits := evacuation.Verdict{Message: lockedOut}
	admitted := evacuation.Verdict{Admitted: true}
	for name, tc := range map[string]struct {
		call    evacuation.Call
		budgets []*policyv1.PodDisruptionBudget
		want    evacuation.Verdict
	}{
		"nobody would move the pod":          {evacuation.Call{Snapshot: of(barePod(), noEvacuation)}, []*policyv1.PodDisruptionBudget{locked}, waits},
		"evacuators are not asked":           {evacuation.Call{Snapshot: of(webPod(), noEvacuation)}, []*policyv1.PodDisruptionBudget{open, locked}, waits},
		"the request of others stays theirs": {evacuation.Call{Snapshot: of(webPod(), active("mover.example.com", at(0)), finalizers(ours))}, []*policyv1.PodDisruptionBudget{locked}, waits},
		"the caller's own request goes on": {
			evacuation.Call{Snapshot: of(webPod(), active("mover.example.com", at(0)), called(-time.Minute))},
			[]*policyv1.PodDisruptionBudget{locked},
			evacuation.Verdict{Message: lockedOut, Attempt: nowText},
		},
		"no pod":               {evacuation.Call{Snapshot: of(barePod(), noPod)}, []*policyv1.PodDisruptionBudget{locked}, admitted},
		"it terminates":        {evacuation.Call{Snapshot: of(barePod(), terminating, noEvacuation)}, []*policyv1.PodDisruptionBudget{locked}, admitted},
		"it has finished":      {evacuation.Call{Snapshot: of(barePod(), finished, noEvacuation)}, []*policyv1.PodDisruptionBudget{locked}, admitted},
		"another pod is meant": {evacuation.Call{Snapshot: of(barePod(), noEvacuation), Only: evacuation.PodVersion{UID: "another"}}, []*policyv1.PodDisruptionBudget{locked}, admitted},
		"another version is meant": {
			evacuation.Call{Snapshot: of(barePod(), noEvacuation), Only: evacuation.PodVersion{ResourceVersion: "another"}}, []*policyv1.PodDisruptionBudget{locked}, admitted,
		},
		"the lock is over":                                {evacuation.Call{Snapshot: of(barePod(), noEvacuation)}, []*policyv1.PodDisruptionBudget{budgetOf("shop", "web", 0)}, admitted},
		"no lock may hold so long":                        {evacuation.Call{Snapshot: of(barePod(), noEvacuation), LongestLock: time.Minute}, []*policyv1.PodDisruptionBudget{locked}, admitted},
		"the budget is of others":                         {evacuation.Call{Snapshot: of(barePod(), noEvacuation)}, []*policyv1.PodDisruptionBudget{narrow(budgetOf("shop", "web", time.Hour))}, admitted},
		"the node has locked it, and comes back":          {evacuation.Call{Snapshot: of(barePod(), noEvacuation)}, []*policyv1.PodDisruptionBudget{ofDrain("node-one")}, evacuation.Verdict{Message: drainedOut("node-one")}},
		"the node has locked it, and goes for good":       {evacuation.Call{Snapshot: of(barePod(), noEvacuation), NodeGoes: true}, []*policyv1.PodDisruptionBudget{ofDrain("node-one")}, admitted},
		"the node goes, and another one has locked it":    {evacuation.Call{Snapshot: of(barePod(), noEvacuation), NodeGoes: true}, []*policyv1.PodDisruptionBudget{ofDrain("node-two")}, evacuation.Verdict{Message: drainedOut("node-two")}},
		"the node goes, and the owner has locked it, too": {evacuation.Call{Snapshot: of(barePod(), noEvacuation), NodeGoes: true}, []*policyv1.PodDisruptionBudget{ofDrain("node-one"), locked}, waits},
		"the budget is of elsewhere":                      {evacuation.Call{Snapshot: of(barePod(), noEvacuation)}, []*policyv1.PodDisruptionBudget{budgetOf("elsewhere", "web", time.Hour)}, admitted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.call.Budgets = tc.budgets
			difference.None(t, "verdict", tc.want, evacuation.Admit(tc.call))
		})
	}
}
