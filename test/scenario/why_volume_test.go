package scenario

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// local is a StatefulSet with a volume of a node.
const local = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  claimRef: {namespace: %[2]s, name: data-db-0}
  local: {path: /data}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%[3]s]}]}]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 1
  serviceName: db
  selector: {matchLabels: {name: db}}
  template:
    metadata: {labels: {name: db}}
    spec:
      automountServiceAccountToken: false
      containers: [{name: app, image: app, volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: "", resources: {requests: {storage: 1Gi}}}
`

// A pod whose volume is on the node that is drained starts only there. Whoever asks why it is
// Pending is told which maintenance has the node, and what ends it, which has the pod start again.
func TestWhyAPodWaitsForItsVolume(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("old", "new")
	w.cluster.Apply(t, w.ns, fmt.Sprintf(local, w.name("data"), w.ns, nodes[0]))
	w.awaitPods("the application to run", readyPods(1))

	w.maintain("upgrade", v1alpha1.StageDrain, nodes[:1])
	w.awaitPods("the next pod on no node", func(pods []corev1.Pod) bool {
		return len(pods) == 1 && pods[0].Spec.NodeName == "" && len(pods[0].Status.Conditions) > 0
	})
	w.awaitDrained("upgrade")
	got := w.plugin(w.ctx, "why", "db-0", "-n", w.ns)
	help := "kubectl ebbtide complete upgrade"
	for _, want := range []string{"(Unschedulable): ", "(claim data-db-0) can only be used on node old,", "NodeMaintenance upgrade (stage Drain) holds the node: ", help} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("why does not say %q: %+v", want, got)
		}
	}
	if strings.Contains(got.Out, "delete") {
		t.Errorf("why speaks of deleting: %s", got.Out)
	}

	if got := w.plugin(w.ctx, "complete", w.name("upgrade")); got.Code != 0 {
		t.Fatalf("complete says %+v", got)
	}
	w.awaitPods("the pod on its node", func(pods []corev1.Pod) bool { return readyPods(1)(pods) && pods[0].Spec.NodeName == nodes[0] })
}
