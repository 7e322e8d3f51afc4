package bridge

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A node that registers again, which a watch may show as one change, is another node for its
// Machine; a heartbeat is none.
func TestANodeThatRegistersAgainWakesItsMachine(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-7", UID: "1", Annotations: map[string]string{
		"cluster.x-k8s.io/machine": "worker-1", "cluster.x-k8s.io/cluster-namespace": "infra",
	}}}
	again, beats := node.DeepCopy(), node.DeepCopy()
	again.UID, beats.ResourceVersion = "2", "3"
	if woken := ofNode(node, again); len(woken) == 0 || woken[0].Name != "worker-1" {
		t.Errorf("a node that registers again wakes %v", woken)
	}
	if woken := ofNode(node, beats); len(woken) > 0 {
		t.Errorf("a heartbeat wakes %v", woken)
	}
}
