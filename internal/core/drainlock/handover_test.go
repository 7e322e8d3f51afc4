package drainlock_test

import (
	"testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
)

func TestInvalidPromisesDoNotCount(t *testing.T) {
	t.Parallel()
	for name, seen := range map[string][]change{
		"nothing is to be locked":                         {recordIs(func(r *v1alpha1.DrainRecord) { r.Spec.Budgets = nil })},
		"not all locks are confirmed":                     {held, recordIs(func(r *v1alpha1.DrainRecord) { r.Status.Locks[1].ConfirmedTime = nil })},
		"the locks are taken":                             {both},
		"the maintenance is over, and nothing was locked": {over},
	} {
		s := snapshot(append(seen, boots("boot-1"))...)
		if d := drainlock.Decide(s); d.Status != nil && d.Status.Boots != nil {
			t.Errorf("%s: %+v", name, d.Status.Boots)
		}
	}
}

var disk = recordIs(func(r *v1alpha1.DrainRecord) {
	r.Spec.MaintenanceRef = v1alpha1.MaintenanceReference{Name: "disk", UID: "disk-uid"}
})

func TestWhoseRebootItIs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		shows []change
		want  string
	}{
		"of the later one, if all is well":           {nil, "disk-uid"},
		"of the earlier one, if the node is away":    {[]change{lost}, "kernel-uid"},
		"of the earlier one, if a pod is away":       {[]change{unready("db-0")}, "kernel-uid"},
		"of the earlier one, if it has just booted":  {[]change{boots("boot-2")}, "kernel-uid"},
		"of the earlier one, if it lacks a new lock": {[]change{newlyNeeded}, "kernel-uid"},
	} {
		l := newLife(t)
		for _, c := range append(test.shows, disk, after(10)) {
			c(&l.s)
		}
		for range 5 {
			d := drainlock.Decide(l.s)
			if l.s.Record = l.s.Record.DeepCopy(); d.Status != nil {
				l.s.Record.Status = *d.Status
			}
			l.does(d.Step)
		}
		boots := l.s.Record.Status.Boots
		if string(boots.MaintenanceUID) != test.want || boots.ReturnedTime != nil {
			t.Errorf("%s: it is %+v", name, boots)
		}
	}
}

func newlyNeeded(s *drainlock.Snapshot) {
	b := newBudget("api")
	b.Status.DisruptionsAllowed = 0
	s.Budgets = append(s.Budgets, b)
	s.Record = s.Record.DeepCopy()
	s.Record.Spec.Budgets = append([]v1alpha1.BudgetReference{named("api")}, s.Record.Spec.Budgets...)
	s.Record.Spec.Pods[0].BudgetUIDs = append(s.Record.Spec.Pods[0].BudgetUIDs, "api")
}

// TestRetakenLocksArePromisedAgain, though not all pods are ready.
func TestRetakenLocksArePromisedAgain(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.keeps(9, allHeld, boots("boot-2"))
	l.frees(10, "web db", returned, runs("db-0", "b"), runs("web-0", "b"))
	l.keeps(20, settling, disk, unready("db-0"), taken("db", 17), taken("web", 17), noted("db", 17), noted("web", 17))
	l.keeps(22, allHeld)
	if got := l.s.Record.Status.Boots; got.MaintenanceUID != "disk-uid" || got.RebootCount != 0 || got.ReturnedTime != nil {
		t.Errorf("its reboots are %+v", got)
	}
}
