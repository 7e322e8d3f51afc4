package proof

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/test/cluster"
)

// single is the application that has no second pod to stand in.
var single = story{replicas: 1, maxSurge: intstr.FromInt32(1), readyAfter: time.Second}

// alone drains with kubectl where nobody has heard of Ebbtide.
func alone(t *testing.T, s story, timeout string) (output string, endpoints *cluster.Endpoints, err error) {
	t.Helper()
	w := newWorld(t, cluster.Spec{Nodes: nodes, NoManager: true}, s)
	endpoints = w.cluster.WatchEndpoints(t, w.key())
	output, err = w.cluster.Kubectl(t, "drain", w.drained(1)[0], "--ignore-daemonsets", "--delete-emptydir-data", "--timeout="+timeout)
	return output, endpoints, err
}

// Without Ebbtide a budget that asks for the only pod stops the drain for good.
func TestLongKubectlAloneHangsOnABudget(t *testing.T) {
	t.Parallel()
	s := single
	s.minAvailable = new(intstr.FromInt32(1))

	output, endpoints, err := alone(t, s, "8s")

	if err == nil || !strings.Contains(output, "Cannot evict pod as it would violate the pod's disruption budget") ||
		!strings.Contains(output, "global timeout reached: 8s") {
		t.Errorf("kubectl drain ended with %v, want it to wait for the budget until its time is up:\n%s", err, output)
	}
	endpoints.AssertAtLeast(t, 1)
}

// Without Ebbtide and without a budget the Service is down until the pod's
// successor is ready: the watcher would see it.
func TestLongKubectlAloneTakesAServiceDown(t *testing.T) {
	t.Parallel()

	output, endpoints, err := alone(t, single, "60s")
	if err != nil {
		t.Errorf("kubectl drain: %v\n%s", err, output)
	}
	if least, history := endpoints.Stop(t); least != 0 {
		t.Errorf("the Service always had %d ready endpoints, want it to be down:\n%s", least, history)
	}
}
