package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	fake "ebbtide.dev/ebbtide/test/logind"
	"ebbtide.dev/ebbtide/test/patience"
)

// agentName is the DaemonSet of the chart and its ServiceAccount, agents is their namespace.
const agentName, agents = "ebbtide-agent", "ebbtide-agents"

const edgeText = `apiVersion: v1
kind: Pod
metadata: {name: %[1]s, namespace: kube-public, labels: {app: %[1]s}}
spec:
  terminationGracePeriodSeconds: 20
  priorityClassName: %[1]s
  containers: [{name: app, image: ` + appImage + `, args: [-graceful, -linger=1s, -diary=/diary/%[1]s], volumeMounts: [` + diaryMount + `]}]
  volumes: [` + diaryVolume + `]
`

const edgeObjects = `
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: edge-low}
value: 100
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: edge-high}
value: 1000
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: edge-daemon}
spec:
  selector: {matchLabels: {app: edge-daemon}}
  template:
    metadata: {labels: {app: edge-daemon}}
    spec:
      nodeSelector: {kubernetes.io/hostname: %s}
      terminationGracePeriodSeconds: 20
      containers: [{name: app, image: ` + appImage + `, args: [-graceful, -linger=2s, -diary=/diary/edge-daemon], volumeMounts: [` + diaryMount + `]}]
      volumes: [` + diaryVolume + `]
`

// edges are what leaves a node in this order: a pod of a DaemonSet and two static pods.
var edges = []string{"edge-daemon", "edge-low", "edge-high"}

// agents switches the agents on and has a NodeMaintenance take a DaemonSet and two static
// pods off a node, step by step. They stay away whatever happens to the agents, Ebbtide
// cannot be uninstalled meanwhile, and all come back in the end.
func (s *stage) agents(t *testing.T) {
	s.settled(t)
	node := s.withoutManager(t)
	// Whose node has D-Bus and systemd-logind, its agent holds up shutdowns.
	at := func(name string) string { return onNode(t, s.Cluster, node, name) }
	logind := fake.Start(t, fake.StartBusIn(t, at("run/dbus")), fake.Spec{DropIns: at("run/systemd/logind.conf.d")})
	s.switchAgentsOn(t)
	logind.AwaitHeld(t, "ebbtide", 1)
	diaries := s.startEdges(t, node)
	s.bound(t, node)

	// The plan has a step for the lower one; the one for all others is always added.
	s.maintain(t, "edge", node, func(m *v1alpha1.NodeMaintenance) {
		m.Spec.DrainDepth = v1alpha1.PodTypeStatic
		m.Spec.DrainPlan = []v1alpha1.DrainPlanEntry{{PodType: v1alpha1.PodTypeStatic, PodPriority: 500}}
	})
	t.Logf("drained in %s", s.drained(t, "edge"))
	for n, name := range edges[1:] {
		before, asked := diaries[edges[n]].once(t, "ended"), diaries[name].once(t, "asked to end")
		t.Logf("%s was asked to end %s after the end of %s", name, asked.Sub(before).Round(time.Millisecond), edges[n])
		if asked.Before(before) {
			t.Errorf("%s was asked to end at %s, before the end of %s at %s", name, asked, edges[n], before)
		}
	}
	s.tells(t, node, v1alpha1.StaticPodHeld)
	s.refuseUninstall(t, node)
	s.replaceAgents(t, node)
	if signals := logind.Signals(); len(signals) != 1 {
		t.Errorf("logind was sent signals %v, want one to read the delay that the agent asks for", signals)
	}
	logind.AwaitHeld(t, "ebbtide", 1)
	s.tells(t, node, v1alpha1.StaticPodHeld)
	for _, name := range edges[1:] {
		if started := diaries[name].notes(t, "serving"); len(started) != 1 {
			t.Errorf("%s was started while it was held: %v", name, started)
		}
	}

	begin := time.Now()
	s.run(t, `kubectl patch nodemaintenance edge --type=merge -p '{"spec":{"stage":"Complete"}}'`)
	for _, name := range edges[1:] {
		patience.Eventually(t, name+" to be back", func(context.Context) (string, bool) {
			started := diaries[name].notes(t, "serving")
			return fmt.Sprint(started), len(started) == 2
		})
		t.Logf("%s served %s after Complete", name, diaries[name].notes(t, "serving")[1].at.Sub(begin).Round(time.Millisecond))
	}
	s.tells(t, node, v1alpha1.StaticPodRunning)
	s.complete(t, "edge")
	s.run(t, "helm upgrade ebbtide charts/ebbtide --reuse-values --set agent.enabled=false"+values)
}

var agentLine = regexp.MustCompile("`(helm upgrade [^`]* --set agent.enabled=true)`")

// switchAgentsOn does what the page says, and waits for an agent that answers on each node.
func (s *stage) switchAgentsOn(t *testing.T) {
	t.Helper()
	page, err := os.ReadFile(root + "/docs/static-pods.md")
	if err != nil {
		t.Fatal(err)
	}
	line := agentLine.FindSubmatch(page)
	if line == nil {
		t.Fatal("docs/static-pods.md does not say how to switch the agents on")
	}
	begin := time.Now()
	s.run(t, string(line[1]))
	s.agentsReady(t)
	t.Logf("agents are ready on all nodes after %s", time.Since(begin).Round(100*time.Millisecond))
	patience.Eventually(t, "all agents to answer", func(context.Context) (string, bool) {
		out := s.run(t, "kubectl ebbtide agents")
		return out, len(regexp.MustCompile(`(?m)^node-[123] +yes `).FindAllString(out, -1)) == len(s.Nodes)
	})
	t.Log(s.run(t, "kubectl ebbtide agents"))
}

// agentsReady waits until each node has one agent, of the chart as it is now.
func (s *stage) agentsReady(t *testing.T) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Log(s.managers(t))
		}
	}()
	patience.Eventually(t, "agents to be ready", func(ctx context.Context) (string, bool) {
		set := &appsv1.DaemonSet{}
		err := s.Client.Get(ctx, types.NamespacedName{Namespace: agents, Name: agentName}, set)
		status, want := set.Status, int32(len(s.Nodes))
		return fmt.Sprintf("%+v %v", status, err),
			err == nil && status.ObservedGeneration == set.Generation && status.NumberReady == want && status.UpdatedNumberScheduled == want
	})
}

// startEdges has a DaemonSet and two static pods run on a node, and returns their diaries.
func (s *stage) startEdges(t *testing.T, node string) map[string]diary {
	t.Helper()
	namespace, diaries := s.Namespace(t), map[string]diary{}
	for _, name := range edges {
		diaries[name] = newDiary(t, s.Cluster, node, name)
	}
	for _, object := range s.Apply(t, namespace, fmt.Sprintf(edgeObjects, node)) {
		if object.GetNamespace() == "" {
			t.Cleanup(func() { _ = s.Client.Delete(context.WithoutCancel(t.Context()), object) })
		}
	}
	for _, name := range edges[1:] {
		file := filepath.Join(s.Manifests(node), name+".yaml")
		if err := os.WriteFile(file, fmt.Appendf(nil, edgeText, name), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(file) })
	}
	s.tells(t, node, v1alpha1.StaticPodRunning)
	for _, name := range edges {
		patience.Eventually(t, name+" to serve", func(context.Context) (string, bool) {
			return "it does not", len(diaries[name].notes(t, "serving")) == 1
		})
	}
	return diaries
}

// tells waits until the agent of a node says so of both static pods.
func (s *stage) tells(t *testing.T, node string, state v1alpha1.StaticPodState) {
	t.Helper()
	patience.Eventually(t, "both static pods to be "+string(state), func(ctx context.Context) (string, bool) {
		agent := &v1alpha1.NodeAgent{}
		err := s.Client.Get(ctx, client.ObjectKey{Name: node}, agent)
		n := 0
		for _, pod := range agent.Status.StaticPods {
			if pod.State == state && pod.Reason == "" {
				n++
			}
		}
		return fmt.Sprintf("%+v %v", agent.Status, err), n == 2 && len(agent.Status.StaticPods) == 2
	})
}

// agentPod is the agent of a node.
func (s *stage) agentPod(t *testing.T, node string) *corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	if err := s.Client.List(t.Context(), list, client.InNamespace(agents), client.MatchingLabels{"app.kubernetes.io/name": agentName}); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list.Items, func(pod corev1.Pod) bool { return pod.Spec.NodeName == node && pod.DeletionTimestamp == nil })
	if i < 0 {
		t.Fatalf("node %s has no agent: %+v", node, list.Items)
	}
	return &list.Items[i]
}

// bound takes the identity that the agent has on its node, and finds that it is good for
// this node and for no other.
func (s *stage) bound(t *testing.T, node string) {
	t.Helper()
	pod := s.agentPod(t, node)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: agents, Name: agentName}}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	if err := s.Client.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(s.Config)
	config.BearerToken = token.Status.Token
	stolen, err := client.New(config, client.Options{Scheme: s.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"bootID":"mine"}}`))
	for _, other := range s.Nodes {
		err := stolen.Status().Patch(t.Context(), &v1alpha1.NodeAgent{ObjectMeta: metav1.ObjectMeta{Name: other}}, patch, client.DryRunAll)
		want := "the node agent of " + node + " may not write nodeagents/status of " + other
		if other == node && err != nil || other != node && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("the agent of %s writes the NodeAgent of %s: %v", node, other, err)
		}
	}
}

// refuseUninstall tries to uninstall while static pods are kept away.
func (s *stage) refuseUninstall(t *testing.T, node string) {
	t.Helper()
	out, err := s.shell(t, "helm uninstall ebbtide --namespace "+system+" --wait --timeout 4m")
	want := "static pods are down on 1 node (" + node + "): complete edge first."
	if err == nil || !strings.Contains(out, want) {
		t.Errorf("helm uninstall ends with %v, want it refused: %s\n%s", err, want, out)
	}
	s.settled(t)
	s.run(t, "helm rollback ebbtide --namespace "+system+" $(helm history ebbtide --namespace "+system+" | tail -1 | cut -f1)")
	s.agentsReady(t)
}

// replaceAgents deletes the agent of the node, and then has all of them replaced by those
// that ask systemd-logind for a longer delay.
func (s *stage) replaceAgents(t *testing.T, node string) {
	t.Helper()
	before := s.agentPod(t, node)
	if err := s.Client.Delete(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	patience.Eventually(t, "another agent on "+node, func(ctx context.Context) (string, bool) {
		agent := &v1alpha1.NodeAgent{}
		err := s.Client.Get(ctx, client.ObjectKey{Name: node}, agent)
		return fmt.Sprintf("%+v %v", agent.Status, err), agent.Status.PodName != before.Name
	})
	s.run(t, "helm upgrade ebbtide charts/ebbtide --reuse-values --set agent.shutdown.delay=40s"+values)
	s.agentsReady(t)
}
