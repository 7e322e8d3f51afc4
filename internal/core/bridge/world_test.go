package bridge_test

import (
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/test/golden"
)

// now is ten minutes after the Machine began to wait.
var now = time.Date(2026, 3, 1, 12, 10, 0, 0, time.UTC)

const waiting = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata:
  namespace: infra
  name: worker-1
  uid: machine-1
  deletionTimestamp: "2026-03-01T11:59:00Z"
  annotations: {pre-drain.delete.hook.machine.cluster.x-k8s.io/ebbtide: ebbtide.dev, ebbtide.dev/drain-start: "2026-03-01T12:10:00Z"}
spec:
  clusterName: prod
  providerID: "aws:///i-7"
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: Host, name: worker-1-x}
status:
  nodeRef: {name: node-7}
  conditions: [{type: Deleting, status: "True", reason: WaitingForPreDrainHook}]
  deletion: {waitForPreDrainHookStartTime: "2026-03-01T12:00:00Z"}
`

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func read(t *testing.T, text string) *bridge.Machine {
	t.Helper()
	m := bridge.Read(object(t, text))
	return &m
}

// node7 says that it is of the Machine.
func node7() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-7", UID: "node-uid-1", Annotations: map[string]string{
			"cluster.x-k8s.io/machine": "worker-1", "cluster.x-k8s.io/cluster-name": "prod", "cluster.x-k8s.io/cluster-namespace": "infra",
		}},
		Spec: corev1.NodeSpec{ProviderID: "aws:///i-7"},
	}
}

// world is a Machine that waits for our hook, in a Cluster that has opted in.
func world(t *testing.T) bridge.Snapshot {
	return bridge.Snapshot{Now: now, Machine: read(t, waiting), Around: &bridge.Around{Opt: "true"}, Node: node7()}
}

// begun is what a decision makes, in the cluster, with pods left.
func begun(t *testing.T, s bridge.Snapshot, left int32) bridge.Snapshot {
	t.Helper()
	s.Maintenance = bridge.Decide(world(t)).Create
	if s.Maintenance == nil {
		t.Fatal("no maintenance is made")
	}
	s.Held = s.Node
	s.Maintenance.Generation = 1
	s.Maintenance.Status.NodeStatuses = []v1alpha1.NodeMaintenanceNodeStatus{{PodsPendingEvacuation: left}}
	if left == 0 {
		s.Maintenance.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionDrained, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonDrained, ObservedGeneration: 1,
		}}
	}
	return s
}

// during changes a drain that has begun, with pods left.
func during(left int32, change func(*bridge.Snapshot)) func(*testing.T, *bridge.Snapshot) {
	return func(t *testing.T, s *bridge.Snapshot) {
		*s = begun(t, *s, left)
		change(s)
	}
}

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

// told is a decision, with the reason that it gives; testdata/messages.txt has its words.
func told(t *testing.T, d bridge.Decision) string {
	t.Helper()
	var all []string
	if d.Create != nil {
		all = append(all, "create "+d.Create.Name)
	}
	if d.Update != nil {
		all = append(all, map[bool]string{true: "pause", false: "resume"}[bridge.Paused(d.Update)])
	}
	if d.Delete {
		all = append(all, "delete")
	}
	if d.Remote {
		all = append(all, "elsewhere")
	}
	all = append(all, map[bridge.Step]string{bridge.Keep: "keep", bridge.Put: "put", bridge.Take: "take", bridge.Begin: "begin", bridge.Finish: "finish"}[d.Hook])
	if d.RequeueAfter > 0 {
		all = append(all, "again in "+d.RequeueAfter.String())
	}
	text := strings.Join(all, ", ")
	if d.Said != nil {
		golden.Message(t, d.Said.Reason, d.Said.Message)
		text += "; " + d.Said.Reason
	}
	return text
}
