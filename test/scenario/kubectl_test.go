package scenario

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/test/cluster"
)

// surging is an application of one pod that is moved by surging, and its Service.
const surging = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 1
  selector: {matchLabels: {name: %[1]s}}
  template:
    metadata:
      labels: {name: %[1]s}
      annotations:
        evacuation.coordination.k8s.io/priority_deployment.apps.k8s.io: 10000/controller
        sandbox.ebbtide.dev/ready-after: 1s
    spec:
      automountServiceAccountToken: false
      containers: [{name: app, image: app}]
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec:
  selector: {name: %[1]s}
  ports: [{port: 80}]
`

// surging creates such an application and waits until it serves.
func (w *world) surging(name string) {
	w.t.Helper()
	w.cluster.Apply(w.t, w.ns, fmt.Sprintf(surging, name))
	w.eventually(name+" serves", func() (bool, any) {
		ready, err := w.cluster.ReadyEndpoints(w.ctx, client.ObjectKey{Namespace: w.ns, Name: name})
		w.must("list endpoint slices", err)
		return ready == 1, ready
	})
}

// kubectl drain, as it is shipped, tries again for as long as Ebbtide moves the
// pods, and ends when they are gone. No Service is ever down, with and without a
// budget that kubectl alone would wait for in vain.
func TestLongKubectlDrainTakesNoServiceDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("old", "new")
	w.cordon(nodes[1], true)
	apps := []string{"web", "protected"}
	for _, app := range apps {
		w.surging(app)
	}
	w.createBudget("protected", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1))})
	w.pods(nodes[0], pod{name: "ordinary"})
	w.cordon(nodes[1], false)
	var endpoints []*cluster.Endpoints
	for _, app := range apps {
		endpoints = append(endpoints, w.cluster.WatchEndpoints(t, client.ObjectKey{Namespace: w.ns, Name: app}))
	}

	output, err := w.cluster.Kubectl(t, "drain", nodes[0], "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=120s")
	if err != nil {
		t.Fatalf("kubectl drain: %v\n%s", err, output)
	}
	if times := strings.Count(output, "evacuation in progress: deployment.apps.k8s.io"); times < len(apps) {
		t.Errorf("kubectl was told %d times that an evacuation is in progress, want it for each of %v:\n%s", times, apps, output)
	}
	if times := strings.Count(output, "Warning: no NodeMaintenance selects node "+nodes[0]); times != 1 {
		t.Errorf("kubectl told %d times how a NodeMaintenance would drain %s, want once:\n%s", times, nodes[0], output)
	}
	w.awaitNoEvacuations()
	w.awaitPods("a pod of each application on the new node, and no trace", func(pods []corev1.Pod) bool {
		for i := range pods {
			if pods[i].Spec.NodeName != nodes[1] || !untouched(&pods[i]) {
				return false
			}
		}
		return readyPods(len(apps))(pods)
	})
	for _, e := range endpoints {
		e.AssertAtLeast(t, 1)
	}
}

// untouched says whether a pod is as its ReplicaSet has made it.
func untouched(p *corev1.Pod) bool {
	for key := range p.Annotations {
		if strings.HasPrefix(key, "ebbtide.dev/") || key == corev1.PodDeletionCost {
			return false
		}
	}
	return metav1.GetControllerOf(p) != nil
}

const (
	myApp   = "myapp"
	yourApp = "yourapp"
)

// drain is kubectl drain of a node.
func (w *world) drain(node, timeout string) *cluster.Kubectl {
	w.t.Helper()
	return w.cluster.StartKubectl(w.t, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout="+timeout)
}

// awaitSaid waits until kubectl has printed the words.
func (w *world) awaitSaid(k *cluster.Kubectl, words string) {
	w.t.Helper()
	w.eventually("kubectl to say "+words, func() (bool, any) { return contains(k.Output(), words), k.Output() })
}
