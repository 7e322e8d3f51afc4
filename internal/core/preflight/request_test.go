package preflight_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/preflight"
)

// responders has a pod name its own.
func responders(pod *corev1.Pod) {
	pod.Spec.EvictionResponders = []corev1.EvictionResponder{{Name: "example.com/leader", Priority: new(int32(20000))}}
}

// A pod with responders leaves in a forecast whether or not it is known that anybody answers
// EvictionRequests, and also if another maintenance has asked it by one.
func TestRespondersAreAskedFirst(t *testing.T) {
	for name, known := range map[string]evictionrequest.Availability{
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
			told := w.forecast()
			assertTold(t, told, "one would be drained: 1 pod leaves in 1 wave.", "1 db-0 Evacuator Leaves -> two")
			const want = "responders of its own (example.com/leader) are asked first, if EvictionRequests are answered; the pod is evicted if they do not move it"
			if got := told.Nodes[0].Pods[0]; got.Action != preflight.ActionEvacuator || got.Why != want {
				t.Errorf("%s, asked before %t: %s: %q, want %q", name, asked, got.Action, got.Why, want)
			}
		}
	}
}
