package step

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// A pod stays on a node that comes back, on a real API server: its defaults, its
// validation and its generations are those that records are written under.
func TestANodeThatComesBackOnARealAPIServer(t *testing.T) {
	t.Parallel()
	s := maintain(t, nil)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.prefix + "-node", Labels: map[string]string{"pool": s.prefix}}}
	s.must("create the node", s.api.Create(s.ctx(), node))
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: s.prefix},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": s.prefix}}},
	}
	s.must("create the budget", s.api.Create(s.ctx(), budget))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: s.prefix + "-pod", Labels: map[string]string{
			"app": s.prefix, v1alpha1.OnUpgradeLabel: "stay",
		}},
		Spec: corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{{Name: "db", Image: "db"}}},
	}
	s.must("create the pod", s.api.Create(s.ctx(), pod))
	upgrade := drainOf(s.prefix)
	upgrade.Spec.InPlace = &v1alpha1.InPlace{ExpectedDowntimeSeconds: 60}
	s.must("create the maintenance", s.api.Create(s.ctx(), upgrade))

	record := &v1alpha1.DrainRecord{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}
	s.until("the record to be written", func() (string, bool) {
		err := s.api.Get(s.ctx(), client.ObjectKeyFromObject(record), record)
		return fmt.Sprint(err), err == nil
	})
	want := []v1alpha1.BudgetReference{{Namespace: "default", Name: s.prefix, UID: budget.UID}}
	if !slices.Equal(record.Spec.Budgets, want) || len(record.Spec.Pods) != 1 || record.Spec.Pods[0].UID != pod.UID {
		t.Errorf("the record says %+v, want the pod and its budget", record.Spec)
	}
	s.until("the lock to be waited for", func() (string, bool) {
		s.read(upgrade)
		return upgrade.Status.Summary, upgrade.Status.Summary == "0/1 nodes drained, 1 blocked, 1 budget not locked" ||
			upgrade.Status.Summary == "0/1 nodes drained, 1 budget not locked"
	})

	s.must("take the lock", retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		s.read(record)
		record.Status.ObservedGeneration = record.Generation
		record.Status.Boots = &v1alpha1.RecordedBoots{MaintenanceUID: record.Spec.MaintenanceRef.UID}
		record.Status.Locks = []v1alpha1.RecordedLock{{BudgetReference: want[0], AcquiredTime: metav1.Now(), ConfirmedTime: new(metav1.Now())}}
		return s.api.Status().Update(s.ctx(), record)
	}))
	s.until("the maintenance to be drained", func() (string, bool) {
		s.read(upgrade)
		return upgrade.Status.Summary, meta.IsStatusConditionTrue(upgrade.Status.Conditions, v1alpha1.ConditionDrained)
	})
	s.read(record)
	if record.Generation != record.Status.ObservedGeneration {
		t.Errorf("the record has generation %d after the lock was taken at %d: what is written is not what is stored",
			record.Generation, record.Status.ObservedGeneration)
	}
	s.change("complete the maintenance", upgrade, func() { upgrade.Spec.Stage = v1alpha1.StageComplete })
	s.until("the record to be complete and the maintenance to end", func() (string, bool) {
		s.read(record)
		s.read(upgrade)
		return fmt.Sprintf("complete %t, finalizers %v", record.Spec.Complete, upgrade.Finalizers),
			record.Spec.Complete && len(upgrade.Finalizers) == 0
	})
	s.must("end the record", s.api.Delete(s.ctx(), record))
}
