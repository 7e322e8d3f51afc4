package preflight_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

// responders has a pod name its own.
func responders(pod *corev1.Pod) {
	pod.Spec.EvictionResponders = []corev1.EvictionResponder{{Name: "example.com/leader", Priority: new(int32(20000))}}
}

// A pod with responders leaves in a forecast whether or not it is known that anybody answers
// EvictionRequests, and also if another maintenance has asked it by one.
func TestRespondersAreAskedFirst(t *testing.T) {
	for _, known := range map[string]evictionrequest.Availability{
		"nobody has looked": {}, "they are answered": {Served: true, Able: true, Acting: true},
		"it is not known yet": {Unknown: "The API server has not said yet whether it serves EvictionRequests."},
	} {
		for _, asked := range []bool{false, true} {
			w := newWorld("one", "two")
			w.free = roomy()
			w.pod("one", "db-0", of("ReplicaSet", "db"), responders)
			w.World.Requester = known
			pod := &w.World.Pods["one"][0]
			pod.Object.UID = types.UID("db-0")
			if asked {
				pod.Request = evictionrequest.New(pod.Object)
			}
			assertTold(t, w.forecast(), "Leaves", "1 db-0 Evacuator Leaves -> two")
		}
	}
}
