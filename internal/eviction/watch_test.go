package eviction

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// A pod leaves when it begins to be deleted, when it ends and when it is gone, and each of these
// is told once.
func TestAPodLeaves(t *testing.T) {
	t.Parallel()
	stage := func(uid types.UID, deleted bool, phase corev1.PodPhase) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db-0", UID: uid}, Status: corev1.PodStatus{Phase: phase}}
		if deleted {
			pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		return pod
	}
	runs, goes := stage("first", false, corev1.PodRunning), stage("first", true, corev1.PodRunning)
	done, over := stage("first", false, corev1.PodSucceeded), stage("first", true, corev1.PodFailed)
	for name, test := range map[string]struct {
		old, now *corev1.Pod
		want     []types.UID
	}{
		"it runs":                               {stage("first", false, corev1.PodPending), runs, nil},
		"it is being deleted":                   {runs, goes, []types.UID{"first"}},
		"it is still being deleted":             {goes, goes, nil},
		"it has ended":                          {runs, done, []types.UID{"first"}},
		"it has ended for good":                 {done, done, nil},
		"it has ended while it is deleted":      {goes, over, []types.UID{"first"}},
		"another one has its name":              {runs, stage("second", false, corev1.PodPending), []types.UID{"first"}},
		"another one has its name, and goes":    {goes, stage("second", true, corev1.PodRunning), []types.UID{"first", "second"}},
		"another one has its name, and is over": {done, stage("second", false, corev1.PodFailed), []types.UID{"first", "second"}},
	} {
		var left []types.UID
		pods := LeavingPods(func(_ context.Context, pod *corev1.Pod, _ Requests) { left = append(left, pod.UID) })
		pods.Create(t.Context(), event.TypedCreateEvent[*corev1.Pod]{Object: test.old}, nil)
		pods.Update(t.Context(), event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: test.old, ObjectNew: test.now}, nil)
		if !slices.Equal(left, test.want) {
			t.Errorf("%s: %q leave, want %q", name, left, test.want)
		}
		left = nil
		if pods.Delete(t.Context(), event.TypedDeleteEvent[*corev1.Pod]{Object: test.now}, nil); !slices.Equal(left, []types.UID{test.now.UID}) {
			t.Errorf("%s, and is gone: %q leave, want %s", name, left, test.now.UID)
		}
	}
}
