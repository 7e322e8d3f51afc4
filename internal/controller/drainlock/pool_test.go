package drainlock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/internal/kube"
)

func waitsSince(record *v1alpha1.DrainRecord, since time.Time) *v1alpha1.DrainRecord {
	record.Status.WaitStartTime = &metav1.Time{Time: since}
	return record
}

func TestRefusedRecordHoldsUpNoOtherNode(t *testing.T) {
	t.Parallel()
	p := newPlay(t, -1, waitsSince(aRecord("one", "db"), noon.Add(-time.Minute)), aRecord("two", "db"))
	p.api.Refuse = func(request string) error {
		if request == "update status of DrainRecord one" {
			return errors.New("no")
		}
		return nil
	}
	for range 10 {
		p.step()
		p.clock.Step(time.Second)
	}
	if !p.held("two") {
		t.Errorf("the other one waits:\n%s", strings.Join(p.state(), "\n"))
	}
}

// TestTheQueueIsCountedRarely: thousands may wait for one budget that changes every
// second. Whoever was counted before something happened is counted again, once.
func TestTheQueueIsCountedRarely(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waitsSince(aRecord("one", "db"), noon.Add(-time.Minute)), waitsSince(aRecord("two", "db"), noon), aNode("one"), aNode("two"),
		lockedBy(aBudget("db", 1), "team shop", time.Hour), aPod("db", "one"), aPod("db", "two"))
	n, counts := w.nodes(), 0
	n.client = interceptor.NewClient(w.api.Manager, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, records := list.(*v1alpha1.DrainRecordList); records {
				counts++
			}
			return c.List(ctx, list, options...)
		},
	})
	look := func() (again time.Duration) {
		result, err := n.Reconcile(t.Context(), requestOf("two"))
		w.must(err)
		return result.RequeueAfter
	}
	for range 5 {
		look()
		w.clock.Step(time.Second)
	}
	if counts != 1 {
		t.Errorf("the queue is counted %d times in 5 s, want once", counts)
	}
	record, _ := read(w, aRecord("one"))
	w.must(w.api.Delete(t.Context(), record))
	again := look()
	if again != 5*time.Second {
		t.Errorf("it is counted again in %s, want 5s", again)
	}
	w.clock.Step(again)
	if again = look(); counts != 2 || again < time.Minute {
		t.Errorf("the queue is counted %d times, and again in %s, want 2 and not at all", counts, again)
	}
	if record, _ := read(w, aRecord("two")); record.Status.NodesAheadCount != 0 {
		t.Errorf("%d nodes are ahead, want none", record.Status.NodesAheadCount)
	}
}

// TestABootIsReadFromTheAPIServerBeforeThePods: a cache may show the boot of a node and
// its pods as they were before.
func TestABootIsReadFromTheAPIServerBeforeThePods(t *testing.T) {
	t.Parallel()
	record := held(aRecord("one", "web"))
	record.Status.Boots = &v1alpha1.RecordedBoots{MaintenanceUID: "upgrade", BootID: "earlier", Pods: []v1alpha1.RecordedPod{{UID: aPod("web", "one").UID}}}
	w := newWorld(t, record, bearing(aBudget("web", 1), lockOf("one")), aNode("one"), aPod("web", "one"))
	n := w.nodes()
	var reads []string
	n.live = interceptor.NewClient(w.api.Manager, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			reads = append(reads, "get "+key.Name)
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, pods := list.(*corev1.PodList); pods {
				reads = append(reads, "list pods")
			}
			return c.List(ctx, list, options...)
		},
	})
	seen, err := n.observe(t.Context(), "one")
	w.must(err)
	if got := strings.Join(reads, ", "); got != "get one, get web, list pods" || !seen.Live {
		t.Errorf("read live: %s", got)
	}
	if status := core.Decide(*seen).Status; status == nil || status.Boots.RebootCount != 1 || slices.ContainsFunc(status.Boots.Pods, func(p v1alpha1.RecordedPod) bool { return p.Fresh }) {
		t.Errorf("the boot is recorded as %+v", status)
	}
}

// TestAbandonedLocksAreSeen: it may be taken back.
func TestAbandonedLocksAreSeen(t *testing.T) {
	t.Parallel()
	record := aRecord("one", "web")
	record.Status.GivenUp = []v1alpha1.GivenUpBudget{{BudgetReference: record.Spec.Budgets[0], Locked: true}}
	record.Spec.Budgets = nil
	w := newWorld(t, record, aBudget("web", 1), aBudget("other", 1))
	seen, err := w.nodes().observe(t.Context(), "one")
	w.must(err)
	if len(seen.Budgets) != 1 || seen.Budgets[0].Name != "web" {
		t.Errorf("these budgets are seen: %v", seen.Budgets)
	}
}

func lockOf(node string) string {
	return lockedBy(aBudget("web", 1), "nodemaintenance/upgrade/"+node, 10*time.Minute).Annotations[v1alpha1.LockAnnotation]
}

func TestWhichRecordsANodeBrings(t *testing.T) {
	t.Parallel()
	w := aCrowd(t)
	node := aNode("one")
	brings(t, kube.OnChange(w.nodes().ofNode), map[string]change[*corev1.Node]{
		"new":           {now: node, want: []string{"one"}},
		"gone":          {old: node, want: []string{"one"}},
		"booted":        {old: node, now: changed(node, func(n *corev1.Node) { n.Status.NodeInfo.BootID = "next" }), want: []string{"one"}},
		"not ready":     {old: node, now: changed(node, func(n *corev1.Node) { n.Status.Conditions = nil }), want: []string{"one"}},
		"another label": {old: node, now: changed(node, func(n *corev1.Node) { n.Labels = map[string]string{"a": "b"} })},
		"no record":     {now: aNode("nine")},
	})
}

func TestRefusedLockNamesItsHolders(t *testing.T) {
	t.Parallel()
	w := aCrowd(t)
	says := func(reason string) *v1alpha1.DrainRecord {
		record := aRecord("five", "web")
		record.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionLocked, Reason: reason}}
		return record
	}
	brings(t, kube.OnChange(w.nodes().ofRecord), map[string]change[*v1alpha1.DrainRecord]{
		"it waits from now on": {old: says(v1alpha1.ReasonLocking), now: says(v1alpha1.ReasonWaitingForBudget), want: []string{"five", "two"}},
		"it cannot write":      {old: says(v1alpha1.ReasonLocking), now: says(v1alpha1.ReasonBudgetRefused), want: []string{"five", "two"}},
		"it waits as it did":   {old: says(v1alpha1.ReasonWaitingForBudget), now: says(v1alpha1.ReasonBudgetRefused), want: []string{"five"}},
		"it goes":              {old: says(v1alpha1.ReasonWaitingForBudget), now: says(v1alpha1.ReasonLocking), want: []string{"five"}},
	})
}

// TestQueueIsNotified: a node that waits knows for whom.
func TestQueueIsNotified(t *testing.T) {
	t.Parallel()
	first, second := waitsSince(aRecord("one", "db"), noon.Add(-2*time.Minute)), waitsSince(aRecord("two", "db", "web"), noon.Add(-time.Minute))
	third := waitsSince(aRecord("three", "web"), noon)
	w := newWorld(t, first, second, third, aNode("one"), aNode("two"), aNode("three"), aBudget("db", 1), aBudget("web", 1),
		aPod("db", "one"), aPod("db", "two"), aPod("web", "two"), aPod("web", "three"))
	n := w.nodes()
	// When node one has its lock node two cannot go any more, and node three can.
	for _, node := range []string{"two", "three"} {
		for range 2 {
			w.clock.Step(messageInterval)
			_, err := n.Reconcile(t.Context(), requestOf(node))
			w.must(err)
		}
		record, _ := read(w, aRecord(node))
		locked := meta.FindStatusCondition(record.Status.Conditions, v1alpha1.ConditionLocked)
		if locked == nil || locked.Reason != v1alpha1.ReasonWaitingForBudget || record.Status.YieldStartTime == nil || record.Status.NodesAheadCount != 1 {
			t.Errorf("node %s has condition %+v and status %+v", node, locked, record.Status)
		}
	}
}
