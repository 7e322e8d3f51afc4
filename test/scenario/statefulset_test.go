package scenario

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const stateful = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 1
  serviceName: db
  selector: {matchLabels: {name: db}}
  template:
    metadata:
      labels: {name: db}
      annotations: {evacuation.coordination.k8s.io/priority_mover.example.com: "20"}
    spec:
      automountServiceAccountToken: false
      containers: [{name: app, image: app}]
`

// kubectl drain calls by name. When the pod of a StatefulSet has moved it is done,
// and leaves the next pod of the name alone.
func TestKubectlDrainEndsWhenAStatefulSetHasMoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("old", "new")
	w.cordon(nodes[1], true)
	w.cluster.Apply(t, w.ns, stateful)
	w.awaitPods("the application to run", readyPods(1))
	w.cordon(nodes[1], false)
	first := &corev1.Pod{}
	first.Name = "db-0"
	w.get(first, first.Name)

	drained := make(chan error, 1)
	var output string
	go func() {
		var err error
		output, err = w.cluster.Kubectl(t, "drain", nodes[0], "--ignore-daemonsets", "--timeout=120s")
		drained <- err
	}()
	w.awaitTurn(first, mover)
	w.evacuator(first, completes)
	if err := <-drained; err != nil {
		t.Fatalf("kubectl drain: %v\n%s", err, output)
	}
	w.awaitPods("the next pod on the new node", func(pods []corev1.Pod) bool {
		return readyPods(1)(pods) && pods[0].Spec.NodeName == nodes[1] && pods[0].UID != first.UID
	})
	w.awaitNoEvacuations()
}
