package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

const (
	staticFile = "edge.yaml"
	heldFile   = ".edge.yaml.ebbtide-held"
	staticText = `apiVersion: v1
kind: Pod
metadata: {name: edge, labels: {app: edge}}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 20
  containers: [{name: app, image: ` + appImage + `, args: [-listen=:8081, -graceful, -linger=3s, -diary=/diary/edge], volumeMounts: [` + diaryMount + `]}]
  volumes: [` + diaryVolume + `]
`
	agentRights = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: agent, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: static-agent}
rules:
- {apiGroups: [""], resources: [nodes, pods], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [nodes/status], verbs: [patch]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, list, watch]}
- {apiGroups: [ebbtide.dev], resources: [nodeagents], verbs: [get, list, watch, create]}
- {apiGroups: [ebbtide.dev], resources: [nodeagents/status, evacuations/status], verbs: [patch]}
- {apiGroups: [ebbtide.dev], resources: [evacuations], verbs: [get, list, watch]}
- {apiGroups: [ebbtide.dev], resources: [nodemaintenances], verbs: [get]}
- {apiGroups: [events.k8s.io], resources: [events], verbs: [create, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: static-agent}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: static-agent}
subjects: [{kind: ServiceAccount, name: agent, namespace: default}]
`
)

// statics is a cluster with a real node, and a static pod on it.
type statics struct {
	*cluster.Cluster
	node, dir, state, kubeconfig string
	agent                        *sandbox.Program
	diary                        diary
	test                         testing.TB // of all stories, which the agent outlives
}

func newStatics(t testing.TB, spec cluster.Spec) *statics {
	t.Helper()
	c := cluster.Start(t, spec)
	importApp(t, c)
	c.Apply(t, "default", agentRights)
	s := &statics{
		Cluster: c, test: t, node: c.Nodes[0], dir: c.Manifests(c.Nodes[0]), state: filepath.Join(t.TempDir(), "state"),
		kubeconfig: c.ServiceAccountKubeconfig(t, "default", "agent"), diary: newDiary(t, c, c.Nodes[0], "edge"),
	}
	s.write(t, staticText)
	t.Cleanup(func() { _ = os.Remove(filepath.Join(s.dir, staticFile)) })
	s.awaitMirror(t, "to run", func(pod *corev1.Pod) bool { return isPodReady(pod) })
	s.startAgent(s.dir)
	s.awaitState(t, v1alpha1.StaticPodRunning)
	awaitLease(t, c, s.node, time.Time{})
	return s
}

func (s *statics) startAgent(dir string) {
	s.agent = s.StartProgram(s.test, "cmd/ebbtide-agent", "--node-name="+s.node, "--manifest-dir="+dir, "--state-dir="+s.state,
		"--kubeconfig="+s.kubeconfig, "--health-address=0", "--shutdown=off")
}

func (s *statics) write(t testing.TB, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, staticFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// has says which of the two names there is, and what is in it.
func (s *statics) has(name string) (sum string, found bool) {
	data, err := os.ReadFile(filepath.Join(s.dir, name))
	all := sha256.Sum256(data)
	return hex.EncodeToString(all[:]), err == nil
}

// mirror is the mirror pod; nil if there is none.
func (s *statics) mirror(ctx context.Context) *corev1.Pod {
	pod := &corev1.Pod{}
	if s.Client.Get(ctx, types.NamespacedName{Namespace: "default", Name: "edge-" + s.node}, pod) != nil {
		return nil
	}
	return pod
}

func (s *statics) awaitMirror(t testing.TB, what string, wanted func(*corev1.Pod) bool) (pod *corev1.Pod) {
	t.Helper()
	patience.Eventually(t, "the mirror pod "+what, func(ctx context.Context) (string, bool) {
		pod = s.mirror(ctx)
		return fmt.Sprint(pod), pod != nil && wanted(pod)
	})
	return pod
}

// awaitState waits until the agent says so of the pod.
func (s *statics) awaitState(t testing.TB, state v1alpha1.StaticPodState) (told v1alpha1.StaticPod) {
	t.Helper()
	patience.Eventually(t, "the pod to be "+string(state), func(ctx context.Context) (string, bool) {
		agent := &v1alpha1.NodeAgent{}
		err := s.Client.Get(ctx, types.NamespacedName{Name: s.node}, agent)
		i := slices.IndexFunc(agent.Status.StaticPods, func(pod v1alpha1.StaticPod) bool { return pod.Name == "edge-"+s.node })
		if i < 0 {
			return fmt.Sprintf("%+v %v", agent.Status, err), false
		}
		told = agent.Status.StaticPods[i]
		return fmt.Sprintf("%+v %v", agent.Status, err), told.State == state
	})
	return told
}

// target has the Node name static pods up to a priority; none if it is empty.
func (s *statics) target(t testing.TB, priority string) {
	t.Helper()
	value := "null"
	if priority != "" {
		value = strconv.Quote(`[{"podPriority":` + priority + `,"podType":"Static"}]`)
	}
	patch := `{"metadata":{"annotations":{"` + v1alpha1.DrainTargetsAnnotation + `":` + value + `}}}`
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.node}}
	if err := s.Mighty(t, cluster.Account.User()).Patch(t.Context(), node, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// evacuate makes an Evacuation of the mirror pod, at the agent's turn.
func (s *statics) evacuate(t testing.TB) types.NamespacedName {
	t.Helper()
	pod := s.awaitMirror(t, "to run", func(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil })
	e := &v1alpha1.Evacuation{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: string(pod.UID) + "-" + pod.Name, Finalizers: []string{v1alpha1.NodeMaintenanceInstigator},
			Labels: map[string]string{"app": "edge"}, Annotations: map[string]string{v1alpha1.NodeAnnotation: s.node},
		},
		Spec: v1alpha1.EvacuationSpec{
			PodRef:     v1alpha1.LocalPodReference{Name: pod.Name, UID: pod.UID},
			Evacuators: []v1alpha1.Evacuator{{EvacuatorClass: v1alpha1.KubeletEvacuatorClass, Priority: 10000, Role: "controller"}},
		},
	}
	if err := s.Client.Create(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	// Others may write the Evacuation in between.
	created := e.DeepCopy()
	e.Status = v1alpha1.EvacuationStatus{
		ActiveEvacuatorClass: v1alpha1.KubeletEvacuatorClass, EvacuationProgressTimestamp: &metav1.Time{Time: time.Now()}, Message: "Its turn.",
	}
	if err := s.Client.Status().Patch(t.Context(), e, client.MergeFrom(created)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		_ = s.Client.Patch(context.WithoutCancel(t.Context()), e, patch)
		_ = s.Client.Delete(context.WithoutCancel(t.Context()), e)
	})
	return client.ObjectKeyFromObject(e)
}

// aside waits until the manifest is put aside, or back.
func (s *statics) aside(t testing.TB, want bool) {
	t.Helper()
	patience.Eventually(t, fmt.Sprintf("the manifest to be aside: %t", want), func(context.Context) (string, bool) {
		_, held := s.has(heldFile)
		_, there := s.has(staticFile)
		return fmt.Sprintf("aside: %t, in place: %t", held, there), held == want && there != want
	})
}

// kubelet is the process of a node's kubelet; 0 if there is none.
func kubelet(t testing.TB, c *cluster.Cluster, node string) int {
	t.Helper()
	ours, err := os.Stat(c.Manifests(node))
	if err != nil {
		t.Fatal(err)
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		text, _ := os.ReadFile(line)
		proc := filepath.Dir(line)
		theirs, err := os.Stat(filepath.Join(proc, "root/etc/kubernetes/manifests"))
		if err == nil && os.SameFile(ours, theirs) && strings.Contains(string(text), "/kubelet\x00") {
			pid, _ := strconv.Atoi(filepath.Base(proc))
			return pid
		}
	}
	return 0
}

// restartKubelet kills a kubelet and waits for the next one to be at work: it renews its
// Lease.
func restartKubelet(t testing.TB, c *cluster.Cluster, node string) {
	t.Helper()
	before := 0
	patience.Eventually(t, "a kubelet on node "+node, func(context.Context) (string, bool) {
		before = kubelet(t, c, node)
		return "none", before != 0
	})
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitLease(t, c, node, time.Now())
}

// awaitLease waits for a kubelet that has renewed its Lease after a time. One that has just
// been started may try for a while to make it.
func awaitLease(t testing.TB, c *cluster.Cluster, node string, after time.Time) {
	t.Helper()
	patience.Eventually(t, "the Lease of the kubelet of "+node, func(ctx context.Context) (string, bool) {
		lease := &coordinationv1.Lease{}
		err := c.Client.Get(ctx, types.NamespacedName{Namespace: corev1.NamespaceNodeLease, Name: node}, lease)
		return fmt.Sprintf("%+v %v", lease.Spec, err), err == nil && lease.Spec.RenewTime != nil && lease.Spec.RenewTime.After(after)
	})
}
