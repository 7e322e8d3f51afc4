package drainlock_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
)

func TestKeepRemovesEndedAndStrayLocks(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		lock          change
		of            string
		remove, stray bool
		tells         []string
		again         time.Duration
	}{
		"no lock":            {lock: annotation("db", "")},
		"its owner's":        {lock: lockedBy("alice", "db", 0, 90), again: 90 * time.Second},
		"its owner's, ended": {lock: lockedBy("alice", "db", -90, 0), remove: true, tells: []string{"PodDisruptionBudget:LockEnded"}},
		"for years ends after the longest time": {
			lock: lockedBy("alice", "db", 0, 1e8), again: 4 * time.Hour,
		},
		"a node's with its record":        {lock: taken("db", 0), of: "node-1"},
		"a node's with its record, ended": {lock: taken("db", -2000), of: "node-1"},
		"a node's with another one's record": {
			lock: lockedBy("nodemaintenance/disk/node-2", "db", 0, 90), of: "node-1", remove: true, stray: true,
			tells: []string{"PodDisruptionBudget:StrayLockRemoved"},
		},
		"a node's without a record": {
			lock: lockedBy(ours, "db", 0, 90), remove: true, stray: true,
			tells: []string{"PodDisruptionBudget:StrayLockRemoved"},
		},
		"a node's without a record, ended": {
			lock: lockedBy(ours, "db", -90, 0), remove: true,
			tells: []string{"PodDisruptionBudget:LockEnded"},
		},
		"almost a node's is its owner's": {lock: lockedBy("nodemaintenance/kernel", "db", 0, 90), again: 90 * time.Second},
		"one that nobody can read": {
			lock: annotated("db", "mine!"), again: 10 * time.Minute,
			tells: []string{"PodDisruptionBudget:LockUnreadable"},
		},
		"one that nobody could read for 10 minutes": {
			lock: annotation("db", "mine!"), remove: true,
			tells: []string{"PodDisruptionBudget:LockEnded"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := drainlock.Keep(snapshot(test.lock).Budgets[0], test.of, began, 0)
			if k.Remove != test.remove || k.Stray != test.stray || k.RequeueAfter != test.again {
				t.Errorf("remove %t, stray %t, again %s; want %t, %t, %s", k.Remove, k.Stray, k.RequeueAfter, test.remove, test.stray, test.again)
			}
			if diff := cmp.Diff(test.tells, told(t, k.Events)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecordConcernsBudgetsThatItLocks(t *testing.T) {
	t.Parallel()
	needed := func(*drainlock.Snapshot) {}
	tests := map[string]struct {
		seen change
		want bool
	}{
		"needed":                      {needed, true},
		"not needed":                  {nothing, false},
		"recorded":                    {func(s *drainlock.Snapshot) { nothing(s); noted("db", 0)(s) }, true},
		"locked by the node":          {func(s *drainlock.Snapshot) { nothing(s); taken("db", 0)(s) }, true},
		"once locked by the node":     {func(s *drainlock.Snapshot) { nothing(s); taken("db", -1e6)(s) }, true},
		"locked by another":           {func(s *drainlock.Snapshot) { nothing(s); lockedBy("nodemaintenance/kernel/node-2", "db", 0, 60)(s) }, false},
		"locked by nobody knows whom": {func(s *drainlock.Snapshot) { nothing(s); annotated("db", "{")(s) }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := snapshot(test.seen)
			if got := drainlock.Concerns(s.Record, s.Budgets[0]); got != test.want {
				t.Errorf("Concerns = %t", got)
			}
		})
	}
}

func TestRecordNeedsLiveReadBeforeConfirmation(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		seen []change
		want bool
	}{
		"nothing taken": {seen: after(10).and()},
		"just taken":    {seen: change(both).and(after(1.9))},
		"settled":       {seen: change(both).and(after(2)), want: true},
		"confirmed":     {seen: change(held).and(after(10))},
		"not needed":    {seen: change(both).and(after(10), nothing)},
		"over":          {seen: change(both).and(after(10), complete)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := snapshot(test.seen...)
			if got := drainlock.NeedsLive(s.Record, s.Now); got != test.want {
				t.Errorf("NeedsLive = %t", got)
			}
		})
	}
}

func TestNeedsOfStayingPods(t *testing.T) {
	t.Parallel()
	all := newBudget("all")
	all.Spec.Selector = &metav1.LabelSelector{}
	s := snapshot()
	db, web := s.Pods[0], s.Pods[1]
	confirmed := snapshot(held).Record
	given := snapshot(recordIs(func(r *v1alpha1.DrainRecord) {
		r.Status.GivenUp = []v1alpha1.GivenUpBudget{{BudgetReference: named("db")}}
	})).Record
	two := append([]*policyv1.PodDisruptionBudget{all}, s.Budgets...)
	tests := map[string]struct {
		need drainlock.Need
		pods []string
		want []string
	}{
		"nobody stays":                       {need: drainlock.Need{Budgets: s.Budgets}},
		"no budgets":                         {need: drainlock.Need{Staying: []*corev1.Pod{db}}, pods: []string{"db-0"}},
		"in order, each once":                {need: drainlock.Need{Staying: []*corev1.Pod{web, db}, Budgets: two}, pods: []string{"db-0 all db", "web-0 all web"}, want: []string{"all", "db", "web"}},
		"what was given up is not needed":    {need: drainlock.Need{Staying: []*corev1.Pod{web, db}, Budgets: s.Budgets, Record: given}, pods: []string{"db-0 db", "web-0 web"}, want: []string{"web"}},
		"nothing is taken before pods leave": {need: drainlock.Need{Staying: []*corev1.Pod{web}, Leaving: []*corev1.Pod{db}, Budgets: s.Budgets, Record: given}, pods: []string{"web-0 web"}},
		"what was confirmed stays, except for those that leave": {
			need: drainlock.Need{Staying: []*corev1.Pod{web}, Leaving: []*corev1.Pod{db}, Budgets: two, Record: confirmed}, pods: []string{"web-0 all web"}, want: []string{"web"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.need.Maintenance = &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "kernel", UID: "kernel-uid"}}
			test.need.Maintenance.Spec.Reason, test.need.Maintenance.Spec.InPlace = "new kernel", &v1alpha1.InPlace{ExpectedDowntimeSeconds: 60}
			got := drainlock.Needs(test.need)
			if got.Complete || got.MaintenanceRef.Name != "kernel" || got.MaintenanceRef.UID != "kernel-uid" || got.Reason != "new kernel" || got.InPlace.ExpectedDowntimeSeconds != 60 {
				t.Errorf("the maintenance is not that: %v", got)
			}
			pods, budgets := listed(got)
			if diff := cmp.Diff([][]string{test.pods, test.want}, [][]string{pods, budgets}); diff != "" {
				t.Errorf("pods and budgets (-want +got):\n%s", diff)
			}
		})
	}
}

func listed(spec v1alpha1.DrainRecordSpec) (pods, budgets []string) {
	for _, pod := range spec.Pods {
		pods = append(pods, strings.Join(append([]string{pod.Name}, texts(pod.BudgetUIDs)...), " "))
	}
	for _, b := range spec.Budgets {
		budgets = append(budgets, b.Name)
	}
	return pods, budgets
}

func texts(uids []types.UID) []string {
	var all []string
	for _, uid := range uids {
		all = append(all, string(uid))
	}
	return all
}

// Somebody makes a budget anew whenever it was given up. The record does not grow for
// ever: the oldest ones are forgotten.
func TestGivenUpBudgetsAreBounded(t *testing.T) {
	t.Parallel()
	s := snapshot(exhausted("db"), after(300), recordIs(func(r *v1alpha1.DrainRecord) {
		for i := range drainlock.MaxBudgets {
			r.Status.GivenUp = append(r.Status.GivenUp, v1alpha1.GivenUpBudget{
				BudgetReference: v1alpha1.BudgetReference{Namespace: "shop", Name: "db", UID: types.UID(strconv.Itoa(i))},
			})
		}
	}))
	given := drainlock.Decide(s).Status.GivenUp
	if len(given) != drainlock.MaxBudgets || given[0].UID != "1" || given[len(given)-1].BudgetReference != named("db") {
		t.Errorf("%d are given up, from %v to %v", len(given), given[0].BudgetReference, given[len(given)-1].BudgetReference)
	}
}
