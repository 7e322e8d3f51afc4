package drainlock

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
)

// A write that fails keeps nothing else from being done: not the locks of other
// nodes, which need the mutex, nor the other pods and budgets of this one.
func TestWhatCannotBeWrittenHoldsUpNothingElse(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	const words = `admission webhook "guard.example.com" denied the request`
	ours := budget.Lock{
		Holder: budget.Holder("upgrade", "one"), AcquiredAt: metav1.NewTime(now), ExpiresAt: metav1.NewTime(now.Add(20 * time.Minute)),
	}.Write()
	apps := []string{"db", "web"}
	snapshot := func(locked ...string) Snapshot {
		r := &v1alpha1.DrainRecord{ObjectMeta: metav1.ObjectMeta{Name: "one", Generation: 1}}
		r.Spec.MaintenanceRef.Name, r.Spec.InPlace.ExpectedDowntimeSeconds = "upgrade", 600
		r.Status.WaitingSince = &metav1.Time{Time: now}
		s := Snapshot{Now: now, Record: r, Refused: map[types.UID]string{"web": words, "web-0": words}}
		for _, app := range apps {
			this := v1alpha1.BudgetReference{Namespace: "shop", Name: app}
			r.Spec.Budgets = append(r.Spec.Budgets, this)
			r.Spec.Pods = append(r.Spec.Pods, v1alpha1.StayingPod{Namespace: "shop", Name: app + "-0", UID: types.UID(app + "-0"), Budgets: []string{app}})
			s.Pods = append(s.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: app + "-0", UID: types.UID(app + "-0")}})
			b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: app, UID: types.UID(app), Generation: 1}}
			b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: 1, CurrentHealthy: 3, DesiredHealthy: 2, ExpectedPods: 3}
			s.Budgets = append(s.Budgets, b)
		}
		for i, app := range locked {
			s.Budgets[i].Annotations = map[string]string{v1alpha1.LockAnnotation: ours}
			r.Status.Locks = append(r.Status.Locks, v1alpha1.RecordedLock{
				BudgetReference: v1alpha1.BudgetReference{Namespace: "shop", Name: app}, AcquiredTime: metav1.NewTime(now),
			})
		}
		return s
	}
	mutex := func(s Snapshot) Snapshot {
		at := metav1.NewMicroTime(now)
		s.Mutex, s.MutexRecord = &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: new("upgrade/one"), RenewTime: &at}}, s.Record
		return s
	}
	after := func(s Snapshot, change func(*v1alpha1.DrainRecord)) Snapshot { change(s.Record); return s }
	const waiting = "PodDisruptionBudget shop/web cannot be locked, because it cannot be written: " + words + "."
	for name, test := range map[string]struct {
		seen Snapshot
		// want is the step and what it is done to; message is that of the condition.
		want, message string
	}{
		"the mutex is not taken for it":      {seen: snapshot(), message: waiting},
		"the other lock is given back":       {seen: mutex(snapshot("db")), want: "RemoveLock db", message: waiting},
		"the mutex is given":                 {seen: mutex(snapshot()), want: "GiveMutex", message: waiting},
		"a lock that was had is no obstacle": {seen: snapshot("db", "web"), message: "Locked: shop/db, shop/web. Evictions that began before are waited for."},
		"the other lock is given free": {
			seen: after(snapshot("db", "web"), func(r *v1alpha1.DrainRecord) { r.Spec.Complete, r.Spec.Pods = true, nil }),
			want: "RemoveLock db", message: "The maintenance is over, and the locks are given free.",
		},
		"the other pod is deleted": {
			seen: after(snapshot(), func(r *v1alpha1.DrainRecord) {
				r.Spec.InPlace.OnLockTimeout = v1alpha1.LockTimeoutDelete
				r.Status.GivenUp = []v1alpha1.GivenUpBudget{{Action: v1alpha1.LockTimeoutDelete, Pods: []v1alpha1.StayingPod{{UID: "web-0"}, {UID: "db-0"}}}}
			}),
			want: "DeletePod db-0", message: waiting,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			decision := Decide(test.seen)
			got := string(decision.Step.Kind)
			switch {
			case decision.Step.Budget != nil:
				got += " " + decision.Step.Budget.Name
			case decision.Step.Pod != nil:
				got += " " + decision.Step.Pod.Name
			}
			message := ""
			if decision.Status != nil {
				message = meta.FindStatusCondition(decision.Status.Conditions, v1alpha1.ConditionLocked).Message
			}
			if diff := cmp.Diff([]string{test.want, test.message}, []string{got, message}); diff != "" {
				t.Errorf("step and message (-want +got):\n%s", diff)
			}
		})
	}
}
