package evacuation

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// crowd are pods that somebody wants to go, and a stage with all of them.
func crowd(t *testing.T, size int) (*stage, []*corev1.Pod) {
	t.Helper()
	var pods []*corev1.Pod
	var objects []client.Object
	for i := range size {
		pods = append(pods, webPod(i))
		objects = append(objects, pods[i], asked(pods[i]))
	}
	return newStage(t, objects...), pods
}

// left are the pods whose evacuations are still there.
func (s *stage) left(pods []*corev1.Pod) (names []string) {
	for _, pod := range pods {
		if s.evacuation(pod) != nil {
			names = append(names, pod.Name)
		}
	}
	return names
}

func TestCompleteEvacuationsAreDeletedTogether(t *testing.T) {
	t.Parallel()
	s, pods := crowd(t, 50)
	s.calm()
	if left := s.left(pods); len(left) != len(pods) {
		t.Fatalf("the evacuations of %v are left, want all until they have been gathered", left)
	}
	s.pass(sweepDelay)
	if left := s.left(pods); len(left) > 0 {
		t.Errorf("the evacuations of %v are left", left)
	}
	if writes := len(s.api.Writes()); writes != 2*len(pods)+1 {
		t.Errorf("%d writes for %d pods, want an eviction and a patch for each, and one deletion", writes, len(pods))
	}
}

func TestAHeldEvacuationOutlivesTheOthers(t *testing.T) {
	t.Parallel()
	s, pods := crowd(t, 3)
	s.update(pods[1], func(e *v1alpha1.Evacuation) { e.Finalizers = append(e.Finalizers, "example.com/audit") })
	s.calm()
	s.pass(sweepDelay)
	if e := s.evacuation(pods[1]); len(s.left(pods)) != 1 || e == nil || e.DeletionTimestamp == nil || !slices.Equal(e.Finalizers, []string{"example.com/audit"}) {
		t.Errorf("left are %v, want the held one, deleted and held by nobody else", s.left(pods))
	}
	writes := len(s.api.Writes())
	s.pass(time.Hour)
	if more := s.api.Writes()[writes:]; len(more) > 0 {
		t.Errorf("writes while somebody else holds it: %v", more)
	}
	free := s.evacuation(pods[1])
	free.Finalizers = nil
	s.must(s.api.Update(t.Context(), free))
	if left := s.left(pods); len(left) > 0 {
		t.Errorf("the evacuations of %v are left when nobody holds them", left)
	}
}

// Whoever marks an evacuation that is not complete gains nothing, and holds up nobody.
func TestForeignMarkDeletesNothing(t *testing.T) {
	t.Parallel()
	s, pods := crowd(t, 4)
	s.answers[pods[0].Name] = answered(403, denial)
	s.update(pods[0], func(e *v1alpha1.Evacuation) { metav1.SetMetaDataLabel(&e.ObjectMeta, v1alpha1.CompleteLabel, "true") })
	s.calm()
	s.pass(sweepDelay)
	if left := s.left(pods); !slices.Equal(left, []string{pods[0].Name}) || s.evacuation(pods[0]).DeletionTimestamp != nil {
		t.Errorf("the evacuations of %v are left, want the one that is not complete, untouched", left)
	}
}

func TestMarkedEvacuationsAreFoundAgainAfterARestart(t *testing.T) {
	t.Parallel()
	s, pods := crowd(t, 5)
	s.calm()
	s.restart()
	s.calm()
	s.pass(sweepDelay)
	if left := s.left(pods); len(left) > 0 {
		t.Errorf("the evacuations of %v are left", left)
	}
	deletions := 0
	for _, write := range s.api.Writes() {
		if strings.HasPrefix(write, "delete all of") {
			deletions++
		}
	}
	if deletions != 1 {
		t.Errorf("%d deletions, want one: %v", deletions, s.api.Writes())
	}
}

func TestWithoutTheRightToDeleteManyEachIsDeleted(t *testing.T) {
	t.Parallel()
	s, pods := crowd(t, 3)
	s.api.Refuse = func(request string) error {
		if strings.HasPrefix(request, "delete all of") {
			return apierrors.NewForbidden(v1alpha1.SchemeGroupVersion.WithResource("evacuations").GroupResource(), "", errors.New("deletecollection"))
		}
		return nil
	}
	s.calm()
	s.pass(sweepDelay)
	if left := s.left(pods); len(left) > 0 {
		t.Errorf("the evacuations of %v are left", left)
	}
}

// Where many pods leave at once their evacuations are cleaned up when most of them have
// left, and in the end no later than those of a few.
func TestACrowdIsCleanedUpLater(t *testing.T) {
	t.Parallel()
	var k knownPods
	after := func() time.Duration { return cleanAfter(k.count.Load()) }
	_, pods := crowd(t, 5000)
	for i, want := range map[int]time.Duration{0: 2 * time.Second, 40: 3 * time.Second, 600: 17 * time.Second, 5000: 20 * time.Second} {
		for _, pod := range pods[:i] {
			k.note(client.ObjectKeyFromObject(pod))
			k.note(client.ObjectKeyFromObject(pod)) // It is looked at again.
		}
		if got := after(); got != want {
			t.Errorf("of %d that are under way one is cleaned up after %s, want %s", i, got, want)
		}
		for _, pod := range pods[:i] {
			k.forget(client.ObjectKeyFromObject(pod))
			k.forget(client.ObjectKeyFromObject(pod))
		}
	}
}
