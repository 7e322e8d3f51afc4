package kube_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"ebbtide.dev/ebbtide/internal/kube"
)

const ours, theirs = "ebbtide.dev/ours", "example.com/theirs"

// held stores a pod with finalizers.
func held(t *testing.T, finalizers ...string) (client.Client, *corev1.Pod) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "held", Finalizers: finalizers}}
	c := fake.NewClientBuilder().WithObjects(pod).Build()
	return c, stored(t, c, pod)
}

func stored(t *testing.T, c client.Client, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	var read corev1.Pod
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), &read); err != nil {
		t.Fatalf("get the pod: %v", err)
	}
	return &read
}

func TestFinalizersComeAndGoOneByOne(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		before []string
		change func(*testing.T, client.Client, *corev1.Pod) (*corev1.Pod, error)
		want   []string
	}{
		"ours is added behind theirs": {before: []string{theirs}, change: add, want: []string{theirs, ours}},
		"ours is there already":       {before: []string{ours}, change: add, want: []string{ours}},
		"ours goes and theirs stays":  {before: []string{ours, theirs}, change: remove, want: []string{theirs}},
		"ours is gone already":        {before: []string{theirs}, change: remove, want: []string{theirs}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, pod := held(t, test.before...)
			read := pod.DeepCopy()

			written, err := test.change(t, c, pod)
			if err != nil {
				t.Fatalf("change the finalizers: %v", err)
			}

			same(t, "finalizers", test.want, written.Finalizers)
			same(t, "stored object", written, stored(t, c, pod))
			same(t, "object that was read", read, pod)
			same(t, "written", !slices.Equal(test.before, test.want), written.ResourceVersion != read.ResourceVersion)
		})
	}
}

func TestFinalizersOfAnObjectThatHasChangedAreLeftAlone(t *testing.T) {
	t.Parallel()
	c, pod := held(t, ours)
	changed := pod.DeepCopy()
	changed.Labels = map[string]string{"changed": "by somebody"}
	if err := c.Update(t.Context(), changed); err != nil {
		t.Fatalf("update the pod: %v", err)
	}

	_, err := remove(t, c, pod)

	if !apierrors.IsConflict(err) {
		t.Errorf("remove = %v, want a conflict", err)
	}
}

func TestTheFinalizerOfAnObjectThatIsGone(t *testing.T) {
	t.Parallel()
	c, pod := held(t)
	if err := c.Delete(t.Context(), pod); err != nil {
		t.Fatalf("delete the pod: %v", err)
	}
	pod.Finalizers = []string{ours}

	if _, err := remove(t, c, pod); err != nil {
		t.Errorf("remove = %v, want no error: there is nothing to be removed", err)
	}
	pod.Finalizers = nil
	if _, err := add(t, c, pod); !apierrors.IsNotFound(err) {
		t.Errorf("add = %v, want not found", err)
	}
}

func same[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func add(t *testing.T, c client.Client, pod *corev1.Pod) (*corev1.Pod, error) {
	t.Helper()
	return kube.AddFinalizer(t.Context(), c, pod, ours)
}

func remove(t *testing.T, c client.Client, pod *corev1.Pod) (*corev1.Pod, error) {
	t.Helper()
	return kube.RemoveFinalizer(t.Context(), c, pod, ours)
}
