package webhook

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/test/fault"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// A StatefulSet creates its pods again under the same name, before the cache has
// seen the last one go.
func TestTheCacheOfPodsMayBeBehind(t *testing.T) {
	t.Parallel()
	first, terminating, second := sample.Pod("shop", "db-0"), sample.Pod("shop", "db-0"), sample.Pod("shop", "db-0")
	first.UID, terminating.UID, second.UID = "first", "first", "second"
	now := metav1.Now()
	terminating.DeletionTimestamp, terminating.Finalizers = &now, []string{"example.com/last"}
	for name, tc := range map[string]struct {
		cached client.Object
		only   evacuation.PodVersion
		want   types.UID
	}{
		"it shows a pod that may be evicted":     {first, evacuation.PodVersion{}, "first"},
		"it shows a pod that terminates":         {terminating, evacuation.PodVersion{}, "second"},
		"it shows another pod than is meant":     {first, evacuation.PodVersion{UID: "second"}, "second"},
		"it shows another version than is meant": {first, evacuation.PodVersion{UID: "first", ResourceVersion: "5"}, "second"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pods := registry{cached: fault.NewServer(t, tc.cached), live: fault.NewServer(t, second), surge: surge.Annotated}
			found, err := pods.find(t.Context(), podKey{types.NamespacedName{Namespace: "shop", Name: "db-0"}, tc.only})
			if err != nil || found.pod.UID != tc.want {
				t.Errorf("found %+v, %v; want pod %s", found.pod, err, tc.want)
			}
		})
	}
}
