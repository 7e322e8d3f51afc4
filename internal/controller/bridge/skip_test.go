package bridge

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodedrain"
	"ebbtide.dev/ebbtide/internal/workload"
)

// Cluster API waits for the volumes of all pods but those that it skips itself. So pods with
// volumes that a rule of ours skips get the label that it knows, and no others do.
func TestPodsWithVolumesThatARuleSkipsAreLabelled(t *testing.T) {
	t.Parallel()
	stays := func(name string, volumes ...corev1.Volume) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{Volumes: volumes}}
	}
	claim := corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}
	withVolume, without, gone := stays("with-volume", claim), stays("without"), stays("gone", claim)
	c := fake.NewClientBuilder().WithObjects(withVolume, without).Build()
	drain := &drainOf{
		connection: &workload.Connection{Client: c},
		decision:   nodedrain.Decision{SkippedByRule: []*corev1.Pod{withVolume, without, gone}},
	}
	if err := markSkipped(t.Context(), drain); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"with-volume": "skip", "without": ""} {
		pod := &corev1.Pod{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, pod); err != nil || pod.Labels[v1alpha1.DrainLabel] != want {
			t.Errorf("pod %s has the labels %v, want %q (%v)", name, pod.Labels, want, err)
		}
	}
}
