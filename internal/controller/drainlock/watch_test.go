package drainlock

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/kube"
)

func changed[T client.Object](object T, change func(T)) T {
	copied := object.DeepCopyObject().(T)
	change(copied)
	return copied
}

type change[T client.Object] struct {
	old, now T
	want     []string
}

// brings checks what each of the events has reconciled, by name, in order.
func brings[T client.Object](t *testing.T, h handler.TypedFuncs[T, reconcile.Request], changes map[string]change[T]) {
	t.Helper()
	var none T
	for name, one := range changes {
		t.Run(name, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			switch {
			case any(one.old) == any(none):
				h.Create(t.Context(), event.TypedCreateEvent[T]{Object: one.now}, q)
			case any(one.now) == any(none):
				h.Delete(t.Context(), event.TypedDeleteEvent[T]{Object: one.old}, q)
			default:
				h.Update(t.Context(), event.TypedUpdateEvent[T]{ObjectOld: one.old, ObjectNew: one.now}, q)
			}
			var got []string
			for range q.Len() {
				request, _ := q.Get()
				got = append(got, request.Name)
			}
			slices.Sort(got)
			if diff := cmp.Diff(one.want, got); diff != "" {
				t.Errorf("brought (-want +got):\n%s", diff)
			}
		})
	}
}

// aCrowd is a world of records: one has its locks, two waits, three is complete
// and four needs something else.
func aCrowd(t *testing.T) *world {
	t.Helper()
	three := held(aRecord("three", "web"))
	three.Spec.Complete = true
	return newWorld(t, held(aRecord("one", "web")), aRecord("two", "web"), three, aRecord("four", "db"))
}

func TestWhichRecordsAChangedRecordBrings(t *testing.T) {
	t.Parallel()
	w := aCrowd(t)
	record := held(aRecord("one", "web"))
	brings(t, kube.OnChange(w.nodes().ofRecord), map[string]change[*v1alpha1.DrainRecord]{
		"new":        {now: record, want: []string{"one"}},
		"its status": {old: record, now: changed(record, func(r *v1alpha1.DrainRecord) { r.Status.Locks = nil }), want: []string{"one"}},
		"complete: it may have the mutex that others wait for": {
			old: record, now: changed(record, func(r *v1alpha1.DrainRecord) { r.Generation++ }), want: []string{"four", "one", "two"},
		},
		"given up: it may need the mutex no more": {
			old: record, now: changed(record, func(r *v1alpha1.DrainRecord) { r.Status.GivenUp = make([]v1alpha1.GivenUpBudget, 1) }),
			want: []string{"four", "one", "two"},
		},
		"gone": {old: record, want: []string{"four", "one", "two"}},
	})
}

func TestWhichRecordsABudgetBrings(t *testing.T) {
	t.Parallel()
	w := aCrowd(t)
	web := aBudget("web", 1)
	lock := budget.Holder("upgrade", "four")
	brings(t, kube.OnChange(w.nodes().ofBudget), map[string]change[*policyv1.PodDisruptionBudget]{
		"new":                     {now: web, want: []string{"one", "three", "two"}},
		"gone":                    {old: web, want: []string{"one", "three", "two"}},
		"nobody's":                {now: aBudget("cache", 1)},
		"another label":           {old: web, now: changed(web, func(b *policyv1.PodDisruptionBudget) { b.Labels = map[string]string{"a": "b"} })},
		"another status":          {old: web, now: aBudget("web", 0), want: []string{"one", "three", "two"}},
		"another spec":            {old: web, now: changed(web, func(b *policyv1.PodDisruptionBudget) { b.Generation++ }), want: []string{"one", "three", "two"}},
		"another one of its name": {old: web, now: changed(web, func(b *policyv1.PodDisruptionBudget) { b.UID = "other" }), want: []string{"one", "three", "two"}},
		"locked":                  {old: web, now: lockedBy(web, "team shop", time.Hour), want: []string{"one", "three", "two"}},
		"free again":              {old: lockedBy(web, "team shop", time.Hour), now: web, want: []string{"one", "three", "two"}},
		"locked for a node that does not need it": {
			old: web, now: lockedBy(web, lock, time.Hour), want: []string{"four", "one", "three", "two"},
		},
		"free again of such a lock": {
			old: lockedBy(web, lock, time.Hour), now: web, want: []string{"four", "one", "three", "two"},
		},
	})
}

func TestWhichRecordsAPodBrings(t *testing.T) {
	t.Parallel()
	w := aCrowd(t)
	pod := aPod("web", "one")
	unready := changed(pod, func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse })
	pending := changed(unready, func(p *corev1.Pod) { p.Spec.NodeName = "" })
	elsewhere := aPod("web", "five")
	brings(t, kube.OnChange(w.nodes().ofPod), map[string]change[*corev1.Pod]{
		"new":                         {now: pod, want: []string{"one"}},
		"gone":                        {old: pod, want: []string{"one"}},
		"ready":                       {old: unready, now: pod, want: []string{"one"}},
		"not ready any more":          {old: pod, now: unready, want: []string{"one"}},
		"bound":                       {old: pending, now: unready, want: []string{"one"}},
		"terminating":                 {old: pod, now: changed(pod, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }), want: []string{"one"}},
		"done":                        {old: unready, now: changed(unready, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), want: []string{"one"}},
		"replaced":                    {old: pod, now: changed(pod, func(p *corev1.Pod) { p.UID = "other" }), want: []string{"one"}},
		"another label":               {old: pod, now: changed(pod, func(p *corev1.Pod) { p.Labels = nil })},
		"new, on no node":             {now: pending},
		"on a node without a record":  {now: elsewhere},
		"gone, on one without record": {old: elsewhere},
	})
}

func TestWhichRecordsTheMutexBrings(t *testing.T) {
	t.Parallel()
	w := aCrowd(t)
	taken := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.DrainLockMutex},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("upgrade/one")},
	}
	free := changed(taken, func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = new("") })
	brings(t, kube.OnChange(w.nodes().ofMutex), map[string]change[*coordinationv1.Lease]{
		"new":           {now: taken, want: []string{"four", "two"}},
		"given":         {old: taken, now: free, want: []string{"four", "two"}},
		"gone":          {old: taken, want: []string{"four", "two"}},
		"another label": {old: taken, now: changed(taken, func(l *coordinationv1.Lease) { l.Labels = map[string]string{"a": "b"} })},
	})
}

func TestWhichBudgetsTheKeeperLooksAt(t *testing.T) {
	t.Parallel()
	web, ours := aBudget("web", 1), budget.Holder("upgrade", "one")
	w := newWorld(t, lockedBy(web, ours, time.Hour), lockedBy(aBudget("db", 1), "team shop", time.Hour),
		lockedBy(aBudget("cache", 1), budget.Holder("upgrade", "two"), time.Hour), aBudget("mail", 1))
	locked := lockedBy(web, ours, time.Hour)
	t.Run("budgets", func(t *testing.T) {
		brings(t, kube.OnChange(w.keeper().ofBudget), map[string]change[*policyv1.PodDisruptionBudget]{
			"new, without a lock": {now: web},
			"new, with a lock":    {now: locked, want: []string{"web"}},
			"locked":              {old: web, now: locked, want: []string{"web"}},
			"an empty annotation": {old: web, now: bearing(web, ""), want: []string{"web"}},
			"renewed":             {old: locked, now: lockedBy(web, ours, 2*time.Hour), want: []string{"web"}},
			"free":                {old: locked, now: web, want: []string{"web"}},
			"gone":                {old: locked, want: []string{"web"}},
			"another status":      {old: locked, now: lockedBy(aBudget("web", 0), ours, time.Hour)},
		})
	})
	t.Run("records", func(t *testing.T) {
		record := aRecord("one", "web")
		brings(t, kube.OnChange(w.keeper().ofRecord), map[string]change[*v1alpha1.DrainRecord]{
			"new":        {now: record},
			"its status": {old: record, now: held(aRecord("one", "web"))},
			"gone":       {old: record, want: []string{"web"}},
			"another":    {old: aRecord("two"), want: []string{"cache"}},
			"none left":  {old: aRecord("five")},
		})
	})
}
