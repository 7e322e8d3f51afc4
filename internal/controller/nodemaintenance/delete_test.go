package nodemaintenance

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// untilMidnight is a drain that deletes what is left a minute before midnight.
func untilMidnight(t *testing.T, pods ...*corev1.Pod) *world {
	t.Helper()
	upgrade := aMaintenance("upgrade", "old")
	upgrade.Spec.Deadline = &v1alpha1.Deadline{
		Time: metav1.NewTime(noon.Add(12 * time.Hour)), OnDeadline: v1alpha1.DeadlineDelete, DeleteBeforeSeconds: 60,
	}
	w := newWorld(t, aNode("one"), upgrade)
	for _, pod := range pods {
		w.must(w.api.Create(t.Context(), pod))
	}
	return w
}

// left are the pods that are there and, of those that are terminating, their grace periods.
func (w *world) left() map[string]string {
	w.t.Helper()
	var pods corev1.PodList
	w.must(w.api.List(w.t.Context(), &pods))
	left := map[string]string{}
	for i := range pods.Items {
		left[pods.Items[i].Name] = ""
		if pods.Items[i].DeletionTimestamp != nil {
			left[pods.Items[i].Name] = "terminating"
		}
	}
	return left
}

// held pods are left when they are deleted.
func held(pod *corev1.Pod) *corev1.Pod {
	pod.Finalizers = []string{"example.com/held"}
	return pod
}

func important(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Priority = new(int32(5000))
	return pod
}

// passes runs passes until the clock has come to a time.
func (w *world) passes(r *reconciler, until time.Time) {
	w.t.Helper()
	w.reconcile(r)
	for range 1000 {
		next := w.nextDue(r)
		if next == 0 || w.clock.Now().Add(next).After(until) {
			break
		}
		w.clock.Step(next)
		w.reconcile(r)
	}
	if now := w.clock.Now(); now.Before(until) {
		w.clock.Step(until.Sub(now))
		w.reconcile(r)
	}
}

// A manager that dies behind any of its writes is continued by one that remembers nothing:
// what is to go at the deadline goes, and nothing else.
func TestAManagerThatDiesAtADeadlineIsContinued(t *testing.T) {
	t.Parallel()
	run := func(dies int) (*world, map[string]string) {
		kept := aPod("kept", "one")
		kept.Labels[v1alpha1.DrainLabel] = "skip"
		w := untilMidnight(t, aPod("a", "one"), aPod("b", "one"), important(aPod("c", "one")), kept, aPod("elsewhere", "two"))
		w.api.KillAfter(dies)
		r := w.manager()
		for minute := -2; minute <= 0; minute++ {
			for range 20 {
				w.passes(r, noon.Add(12*time.Hour+time.Duration(minute)*time.Minute+50*time.Second))
				if !w.api.Killed() {
					break
				}
				w.api.Revive()
				r = w.manager()
			}
		}
		return w, w.left()
	}
	undisturbed, got := run(-1)
	want := map[string]string{"kept": "", "elsewhere": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("left after the deadline (-want +got):\n%s", diff)
	}
	for dies, write := range undisturbed.api.Writes() {
		if _, got := run(dies + 1); !cmp.Equal(want, got) {
			t.Errorf("left after dying behind write %d, %q: %v", dies, write, got)
		}
	}
}

// The status says that pods are deleted before the first one is.
func TestADeadlineIsRecordedBeforeItDeletes(t *testing.T) {
	t.Parallel()
	w := untilMidnight(t, aPod("a", "one"))
	r := w.manager()
	w.passes(r, noon.Add(11*time.Hour))
	begin := len(w.api.Writes())
	w.api.Refuse = func(request string) error {
		if strings.HasPrefix(request, "update status of NodeMaintenance") {
			return errRefused
		}
		return nil
	}
	w.passes(r, noon.Add(12*time.Hour-30*time.Second))
	if diff := cmp.Diff(map[string]string{"a": ""}, w.left()); diff != "" {
		t.Errorf("deleted without a record (-want +got):\n%s", diff)
	}
	w.api.Refuse = nil
	w.passes(r, noon.Add(12*time.Hour+time.Minute))
	writes := w.api.Writes()[begin:]
	if at := slices.Index(writes, "delete Pod a"); at < 1 || writes[at-1] != "update status of NodeMaintenance upgrade" {
		t.Errorf("writes %q, want the status before the pod", writes)
	}
}

// Somebody has put the deadline off, and the cache of the manager does not know it yet.
func TestADeadlineThatWasPutOffDeletesNothing(t *testing.T) {
	t.Parallel()
	w := untilMidnight(t, aPod("a", "one"))
	r := w.manager()
	later := aMaintenance("upgrade", "old")
	later.Generation = 2
	r.live = liveReader{Reader: w.api, maintenance: later}
	w.passes(r, noon.Add(12*time.Hour))
	if diff := cmp.Diff(map[string]string{"a": ""}, w.left()); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
	r.live = liveReader{Reader: w.api, refused: errRefused}
	w.passes(r, noon.Add(12*time.Hour+30*time.Second))
	if diff := cmp.Diff(map[string]string{"a": ""}, w.left()); diff != "" {
		t.Errorf("deleted though it cannot be read (-want +got):\n%s", diff)
	}
	if !slices.ContainsFunc(w.api.Events(), func(e string) bool { return strings.HasPrefix(e, "PastDeadline on NodeMaintenance/upgrade: ") }) {
		t.Errorf("events %q, want PastDeadline", w.api.Events())
	}
	r.live = w.api
	w.passes(r, noon.Add(12*time.Hour+2*time.Minute))
	if left := w.left(); len(left) > 0 {
		t.Errorf("left when it was not put off after all: %v", left)
	}
}

// liveReader shows a NodeMaintenance as it is.
type liveReader struct {
	client.Reader
	maintenance *v1alpha1.NodeMaintenance
	refused     error
}

func (l liveReader) Get(ctx context.Context, key types.NamespacedName, object client.Object, options ...client.GetOption) error {
	if l.refused != nil {
		return l.refused
	}
	if m, ok := object.(*v1alpha1.NodeMaintenance); ok {
		l.maintenance.DeepCopyInto(m)
		return nil
	}
	return l.Reader.Get(ctx, key, object, options...)
}

// While the clock is skewed nothing is deleted, and it goes on by itself.
func TestDeadlineWhileTheClockIsSkewedDeletesNothing(t *testing.T) {
	t.Parallel()
	w := untilMidnight(t, aPod("a", "one"))
	r := w.manager()
	skewed := true
	r.skewed = func() bool { return skewed }
	w.passes(r, noon.Add(12*time.Hour))
	if diff := cmp.Diff(map[string]string{"a": ""}, w.left()); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
	skewed = false
	r.held(t.Context())
	w.must(runDue(t.Context(), r, w.clock))
	if left := w.left(); len(left) > 0 {
		t.Errorf("left when the clock is trusted: %v", left)
	}
}

// One pod that nobody lets us delete is a blocker and holds up no other; one that has come
// again under the name is another.
func TestARefusedDeletionHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	w := untilMidnight(t, aPod("a", "one"), important(aPod("b", "one")))
	w.api.Refuse = refuseWrites("delete Pod a")
	r := w.manager()
	w.passes(r, noon.Add(12*time.Hour+30*time.Second))
	if diff := cmp.Diff(map[string]string{"a": ""}, w.left()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	found := false
	for _, b := range w.maintenance("upgrade").Status.NodeStatuses[0].Blockers {
		found = found || b.Type == v1alpha1.BlockerDeletionRefused && strings.Contains(b.Message, errRefused.Error())
	}
	if !found {
		t.Errorf("blockers are %+v, want the refusal", w.maintenance("upgrade").Status.NodeStatuses[0].Blockers)
	}
	w.api.Refuse = nil
	w.passes(r, noon.Add(12*time.Hour+3*time.Minute))
	if left := w.left(); len(left) > 0 {
		t.Errorf("left when nobody refuses it: %v", left)
	}
}

func TestDeletionsAreReportedOnce(t *testing.T) {
	t.Parallel()
	w := untilMidnight(t, held(aPod("a", "one")), aPod("b", "one"))
	w.passes(w.manager(), noon.Add(12*time.Hour+time.Minute))
	var objects []string
	for _, e := range w.api.Events() {
		if object, found := strings.CutPrefix(e, v1alpha1.EventPastDeadline+" on "); found && !strings.HasPrefix(object, "NodeMaintenance/") {
			object, _, _ = strings.Cut(object, ":")
			objects = append(objects, object)
		}
	}
	slices.Sort(objects)
	if diff := cmp.Diff([]string{"Node/one", "Pod/a", "Pod/b"}, objects); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// Whoever may change a pod does so between any look at it and its deletion.
func TestAPodThatChangesAllTheTimeIsDeleted(t *testing.T) {
	t.Parallel()
	w := untilMidnight(t, aPod("a", "one"))
	changes := 0
	w.api.Refuse = func(request string) error {
		if request != "delete Pod a" {
			return nil
		}
		changes++
		var pod corev1.Pod
		w.get(&pod, "shop", "a")
		pod.Annotations = map[string]string{"changed": strings.Repeat("x", changes)}
		return w.api.Update(t.Context(), &pod)
	}
	w.passes(w.manager(), noon.Add(12*time.Hour))
	if left := w.left(); len(left) > 0 || changes != 1 {
		t.Errorf("left %v after %d tries", left, changes)
	}
}
