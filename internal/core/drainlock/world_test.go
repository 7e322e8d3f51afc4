package drainlock_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
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
	"ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/test/golden"
)

type change func(*drainlock.Snapshot)

// story is one decision about node-1, on which db-0 and web-0 stay, each under a budget of its
// name that allows one disruption. It waits for its locks since began.
type story struct {
	seen []change
	// want is the reason of condition Locked, the step, the recorded locks (! if confirmed, - if
	// given up), the events, and when time alone changes the decision.
	want string
}

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

func run(t *testing.T, stories map[string]story) {
	t.Helper()
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.check(t)
		})
	}
}

func (s story) check(t *testing.T) {
	t.Helper()
	seen := snapshot(s.seen...)
	before := seen.Record.DeepCopy()
	d := drainlock.Decide(seen)
	after := seen.Record.Status
	if d.Status != nil {
		after = *d.Status
	}
	if got := outcome(t, d, after); got != s.want {
		t.Errorf("decision = %s\nwant %s", got, s.want)
	}
	if diff := cmp.Diff(before, seen.Record); diff != "" {
		t.Errorf("the observed record has changed:\n%s", diff)
	}
	seen.Record = seen.Record.DeepCopy()
	seen.Record.Status = after
	if again := drainlock.Decide(seen); again.Status != nil || does(again.Step) != does(d.Step) {
		t.Errorf("it is not at rest: %s %v", does(again.Step), cmp.Diff(after, again.Status))
	}
}

// outcome describes a decision as story.want does.
func outcome(t *testing.T, d drainlock.Decision, after v1alpha1.DrainRecordStatus) string {
	t.Helper()
	parts := []string{said(t, meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionLocked))}
	for _, part := range []string{does(d.Step), locks(after), strings.Join(told(t, slices.Concat(d.Events, d.Step.Events)), " ")} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if d.RequeueAfter != 0 {
		parts = append(parts, "again in "+d.RequeueAfter.String())
	}
	return strings.Join(parts, "; ")
}

func does(step drainlock.Step) string {
	words := []string{string(step.Kind)}
	if step.Mutex != nil && step.Kind == drainlock.TakeMutex {
		words = append(words, *step.Mutex.Spec.HolderIdentity)
	}
	if step.Budget != nil {
		words = append(words, step.Budget.Name)
	}
	if step.Pod != nil {
		words = append(words, step.Pod.Name)
	}
	return strings.Join(words, " ")
}

func said(t *testing.T, c *metav1.Condition) string {
	t.Helper()
	golden.Message(t, c.Reason, c.Message)
	if (c.Status == metav1.ConditionTrue) != (c.Reason == v1alpha1.ReasonHeld) {
		t.Errorf("condition Locked is %s with reason %s", c.Status, c.Reason)
	}
	return c.Reason
}

// told lists events without those on the node, which repeat others.
func told(t *testing.T, events []event.Event) []string {
	t.Helper()
	var words []string
	for _, e := range events {
		if e.Regarding.Kind != "Node" {
			golden.Message(t, e.Reason, e.Message)
			words = append(words, e.Regarding.Kind+":"+e.Reason)
		}
	}
	return words
}

func locks(status v1alpha1.DrainRecordStatus) string {
	var words []string
	for _, lock := range status.Locks {
		word := lock.Name
		if lock.ConfirmedTime != nil {
			word += "!"
		}
		words = append(words, word)
	}
	for _, given := range status.GivenUp {
		word := fmt.Sprintf("-%s %s", given.Name, given.Action)
		if given.Locked {
			word += " locked"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func at(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }

func stamped(seconds float64) metav1.Time { return metav1.NewTime(at(seconds)) }

func named(name string) v1alpha1.BudgetReference {
	return v1alpha1.BudgetReference{Namespace: "shop", Name: name, UID: types.UID(name)}
}

func snapshot(changes ...change) drainlock.Snapshot {
	since := stamped(0)
	s := drainlock.Snapshot{
		Now: began,
		Record: &v1alpha1.DrainRecord{
			ObjectMeta: metav1.ObjectMeta{Name: "node-1", Generation: 1},
			Spec: v1alpha1.DrainRecordSpec{
				MaintenanceRef: v1alpha1.MaintenanceReference{Name: "kernel", UID: "kernel-uid"},
				InPlace:        v1alpha1.InPlace{ExpectedDowntimeSeconds: 600, LockTimeoutSeconds: 300, OnLockTimeout: v1alpha1.LockTimeoutEvict},
				Budgets:        []v1alpha1.BudgetReference{named("db"), named("web")},
			},
			Status: v1alpha1.DrainRecordStatus{ObservedGeneration: 1, WaitStartTime: &since, TimeoutStartTime: &since},
		},
		Budgets: []*policyv1.PodDisruptionBudget{newBudget("db"), newBudget("web")},
	}
	for _, name := range []string{"db", "web"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name + "-0", UID: types.UID(name + "-0"), Labels: map[string]string{"app": name, v1alpha1.OnUpgradeLabel: v1alpha1.OnUpgradeStay}}}
		setReady(pod, true)
		s.Pods = append(s.Pods, pod)
		s.Record.Spec.Pods = append(s.Record.Spec.Pods, v1alpha1.StayingPod{Namespace: "shop", Name: pod.Name, UID: pod.UID, BudgetUIDs: []types.UID{types.UID(name)}})
	}
	for _, c := range changes {
		c(&s)
	}
	return s
}

// newBudget allows one of three pods to be down.
func newBudget(name string) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: stamped(-3600)},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}},
	}
	b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: 3, CurrentHealthy: 3, DesiredHealthy: 2, DisruptionsAllowed: 1}
	return b
}

func (c change) and(others ...change) []change { return append([]change{c}, others...) }

func after(seconds float64) change {
	return func(s *drainlock.Snapshot) { s.Now = at(seconds) }
}

// budgetIs changes a budget.
func budgetIs(name string, with func(*policyv1.PodDisruptionBudget)) change {
	return func(s *drainlock.Snapshot) {
		for _, b := range s.Budgets {
			if b.Name == name {
				with(b)
			}
		}
	}
}

func podIs(name string, with func(*corev1.Pod)) change {
	return func(s *drainlock.Snapshot) {
		for _, pod := range s.Pods {
			if pod.Name == name {
				with(pod)
			}
		}
	}
}

func unready(name string) change {
	return podIs(name, func(pod *corev1.Pod) { setReady(pod, false) })
}

func recordIs(with func(*v1alpha1.DrainRecord)) change {
	return func(s *drainlock.Snapshot) { with(s.Record) }
}

// exhausted allows nothing, because another pod is not ready.
func exhausted(name string) change {
	return budgetIs(name, func(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy, b.Status.DisruptionsAllowed = 2, 0 })
}

func lockedBy(holder, name string, from, to float64) change {
	return budgetIs(name, func(b *policyv1.PodDisruptionBudget) {
		lock := budget.Lock{Holder: holder, AcquiredAt: stamped(from), ExpiresAt: stamped(to)}
		b.Annotations = map[string]string{v1alpha1.LockAnnotation: lock.Write()}
	})
}

func annotated(name, text string) change {
	return budgetIs(name, func(b *policyv1.PodDisruptionBudget) {
		changed := stamped(0)
		b.Annotations = map[string]string{v1alpha1.LockAnnotation: text}
		b.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &changed}}
	})
}

const ours = "nodemaintenance/kernel/node-1"

func taken(name string, second float64) change { return lockedBy(ours, name, second, second+1200) }

// noted records a lock that was taken at a second.
func noted(name string, second float64) change {
	return recordIs(func(r *v1alpha1.DrainRecord) {
		r.Status.Locks = append(r.Status.Locks, v1alpha1.RecordedLock{BudgetReference: named(name), AcquiredTime: stamped(second)})
	})
}

// sure confirms every recorded lock at a second.
func sure(second float64) change {
	return recordIs(func(r *v1alpha1.DrainRecord) {
		for i := range r.Status.Locks {
			confirmed := stamped(second)
			r.Status.Locks[i].ConfirmedTime = &confirmed
		}
		r.Status.WaitStartTime, r.Status.TimeoutStartTime = nil, nil
	})
}

func both(s *drainlock.Snapshot) {
	for _, c := range []change{taken("db", 0), taken("web", 0), noted("db", 0), noted("web", 0)} {
		c(s)
	}
}

func held(s *drainlock.Snapshot) { both(s); sure(2)(s) }

func live(s *drainlock.Snapshot) { s.Live = true }

// complete ends the maintenance of a node that has rebooted, and whose pods have.
func complete(s *drainlock.Snapshot) {
	s.Record.Spec.Complete = true
	rebooted(1)(s)
}

// rebooted has the node boot so many times since the locks were confirmed, and its pods
// be started since.
func rebooted(count int32) change {
	return recordIs(func(r *v1alpha1.DrainRecord) {
		since := stamped(0)
		r.Status.Boots = &v1alpha1.RecordedBoots{MaintenanceUID: r.Spec.MaintenanceRef.UID, BootID: "boot-2", BootTime: &since, RebootCount: count}
		for _, pod := range r.Spec.Pods {
			r.Status.Boots.Pods = append(r.Status.Boots.Pods, v1alpha1.RecordedPod{UID: pod.UID, Fresh: count > 0})
		}
	})
}

func onTimeout(action v1alpha1.LockTimeoutAction) change {
	return recordIs(func(r *v1alpha1.DrainRecord) { r.Spec.InPlace.OnLockTimeout = action })
}

func mutexOf(identity string, second float64) change {
	return func(s *drainlock.Snapshot) {
		renewed := metav1.NewMicroTime(at(second))
		s.Mutex = &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DrainLockMutex, ResourceVersion: "7"},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &identity, RenewTime: &renewed},
		}
		if strings.HasSuffix(identity, "/node-1") {
			s.MutexRecord = s.Record
		}
	}
}

func busyNode(s *drainlock.Snapshot) {
	s.MutexRecord = &v1alpha1.DrainRecord{ObjectMeta: metav1.ObjectMeta{Name: "node-2"}, Spec: v1alpha1.DrainRecordSpec{Budgets: []v1alpha1.BudgetReference{named("db")}}}
}

func apartNode(s *drainlock.Snapshot) {
	busyNode(s)
	s.MutexRecord.Spec.Budgets = []v1alpha1.BudgetReference{named("mail")}
}

func unannotated(b *policyv1.PodDisruptionBudget) { b.Annotations = nil }

func promises(step drainlock.Step) change {
	return func(s *drainlock.Snapshot) {
		s.Node = s.Node.DeepCopy()
		if s.Watched = step.Promise != ""; s.Watched {
			s.Node.Annotations = map[string]string{v1alpha1.RebootPromiseAnnotation: step.Promise}
		} else {
			delete(s.Node.Annotations, v1alpha1.RebootPromiseAnnotation)
		}
	}
}
