package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/test/cluster"
)

// record is a DrainRecord with these lines in its spec beside what it needs.
func record(name, spec string) string {
	return fmt.Sprintf(`
apiVersion: ebbtide.dev/v1alpha1
kind: DrainRecord
metadata: {name: %s}
spec:
  maintenanceRef: {name: reboot}
  inPlace: {expectedDowntimeSeconds: 600}
%s`, name, indent(spec, "  "))
}

const stayingPod = "{namespace: shop, name: db-0, uid: " + uid + "}"

func TestDrainRecordOfNoObjectIsRefused(t *testing.T) {
	t.Parallel()
	document := strings.Replace(record("bad", ""), "name: reboot", `name: "a/b"`, 1)
	refusal{"spec.maintenanceRef.name": "should match '^[a-z0-9]"}.expect(t, try(t, server(t), document))
}

// A record that is as full as it may be, with the longest names that there are, fits
// into the storage of the API server, and so does its status: no names that others
// choose keep a drain from writing down what it does.
func TestTheFullestDrainRecordIsStored(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true}).Client
	uids := func(n int) []types.UID { return slices.Repeat([]types.UID{uid}, n) }
	name := func(i int) string { return fmt.Sprintf("%s%04d", strings.Repeat("n", 249), i) }
	shop := strings.Repeat("s", 63)
	full := &v1alpha1.DrainRecord{ObjectMeta: metav1.ObjectMeta{Name: name(0)}, Spec: v1alpha1.DrainRecordSpec{
		MaintenanceRef: v1alpha1.MaintenanceReference{Name: name(0), UID: uid}, Reason: strings.Repeat("ü", 1024),
		InPlace: v1alpha1.InPlace{ExpectedDowntimeSeconds: 600},
	}}
	for i := range drainlock.MaxPods {
		full.Spec.Pods = append(full.Spec.Pods, v1alpha1.StayingPod{Namespace: shop, Name: name(i), UID: uid, BudgetUIDs: uids(drainlock.MaxBudgetsOfPod)})
	}
	for i := range drainlock.MaxBudgets {
		full.Spec.Budgets = append(full.Spec.Budgets, v1alpha1.BudgetReference{Namespace: shop, Name: name(i), UID: uid})
	}
	if err := c.Create(t.Context(), full); err != nil {
		t.Fatalf("the spec is refused: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.WithoutCancel(t.Context()), full); err != nil {
			t.Error(err)
		}
	})
	for _, b := range full.Spec.Budgets {
		full.Status.Locks = append(full.Status.Locks, v1alpha1.RecordedLock{BudgetReference: b, AcquiredTime: metav1.Now(), ConfirmedTime: new(metav1.Now())})
		given := v1alpha1.GivenUpBudget{
			BudgetReference: b, Action: v1alpha1.LockTimeoutDelete, GivenUpTime: metav1.Now(), Message: strings.Repeat("m", 1024),
		}
		// Each of the 512 pods is under 16 budgets.
		given.PodUIDs = uids(drainlock.MaxPods * drainlock.MaxBudgetsOfPod / drainlock.MaxBudgets)
		full.Status.GivenUp = append(full.Status.GivenUp, given)
	}
	full.Status.Boots = &v1alpha1.RecordedBoots{MaintenanceUID: uid, BootID: strings.Repeat("b", 128), BootTime: new(metav1.Now()), RebootCount: 10}
	for range drainlock.MaxPods {
		full.Status.Boots.Pods = append(full.Status.Boots.Pods, v1alpha1.RecordedPod{UID: uid, Containers: strings.Repeat("c", 64), Fresh: true})
	}
	if err := c.Status().Update(t.Context(), full); err != nil {
		t.Errorf("the status is refused: %v", err)
	}
}
