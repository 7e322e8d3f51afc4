package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// agentWorld is an API server with two nodes, on which agents may write.
type agentWorld struct {
	t     *testing.T
	admin client.Client
	// agent has the rights of the chart, mighty all that there are: what keeps it from
	// anything is the policy alone. Both are of node a. nameless has a token without a node.
	agent, mighty, nameless client.Client
	a, b                    string
}

func newAgentWorld(t *testing.T) *agentWorld {
	t.Helper()
	server := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	installPolicies(t, server)
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.Account.Namespace}}
	if err := client.IgnoreAlreadyExists(server.Client.Create(t.Context(), space)); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"} {
		for _, o := range admission(t, kind) {
			if o.GetName() == "ebbtide-agent" || o.GetName() == "ebbtide-agent-host" {
				if err := server.Client.Create(t.Context(), o); client.IgnoreAlreadyExists(err) != nil {
					t.Fatal(err)
				}
			}
		}
	}
	prefix := notInName.ReplaceAllString(strings.ToLower(t.Name()), "-")
	w := &agentWorld{t: t, admin: server.Client, a: prefix + "-a", b: prefix + "-b"}
	w.agent, w.mighty, w.nameless = w.as(server, w.a, false), w.as(server, w.a, true), w.as(server, "", true)
	for _, node := range []string{w.a, w.b} {
		create(t, w.admin, fmt.Sprintf(`{apiVersion: v1, kind: Node, metadata: {name: %s}}`, node))
	}
	return w
}

// as is the agent of a node, by the token of its pod there.
func (w *agentWorld) as(server *cluster.Cluster, node string, mighty bool) client.Client {
	w.t.Helper()
	who := rest.ImpersonationConfig{
		UserName: "system:serviceaccount:ebbtide-agents:ebbtide-agent",
		Groups:   []string{"system:serviceaccounts", "system:authenticated"},
	}
	if mighty {
		who.Groups = append(who.Groups, "system:masters")
	}
	if node != "" {
		who.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {node}}
	}
	return as(w.t, server, who, nil)
}

func (w *agentWorld) nodeAgent(name, more string) string {
	return fmt.Sprintf("{apiVersion: ebbtide.dev/v1alpha1, kind: NodeAgent, metadata: {name: %s%s}}", name, more)
}

// evacuation is that of a pod on a node in which a class is active.
func (w *agentWorld) evacuation(name, node, class string) *unstructured.Unstructured {
	w.t.Helper()
	e := create(w.t, w.admin, fmt.Sprintf(`
apiVersion: ebbtide.dev/v1alpha1
kind: Evacuation
metadata: {namespace: default, name: %s, annotations: {ebbtide.dev/node: %s}}
spec: {podRef: {name: %s, uid: %s}}`, w.a+"-"+name, node, name, w.a))
	if err := patch(w.t, w.admin, e, fmt.Sprintf("status: {activeEvacuatorClass: %s, message: before}", class)); err != nil {
		w.t.Fatal(err)
	}
	return e
}

func (w *agentWorld) node(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("v1")
	o.SetKind("Node")
	o.SetName(name)
	return o
}

func (w *agentWorld) event(name, kind, about string) string {
	return fmt.Sprintf(`
apiVersion: events.k8s.io/v1
kind: Event
metadata: {namespace: default, name: %s}
eventTime: "2026-03-01T12:00:00.000000Z"
regarding: {kind: %s, name: %s}
type: Normal
reason: StaticPodHeld
action: Hold
reportingController: ebbtide-agent
reportingInstance: one`, name, kind, about)
}

// What agents do every day, with the rights of the chart and no others.
func TestAnAgentWritesForItsNode(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t)
	owner := &corev1.Node{}
	if err := w.admin.Get(t.Context(), client.ObjectKey{Name: w.a}, owner); err != nil {
		t.Fatal(err)
	}
	own := &v1alpha1.NodeAgent{ObjectMeta: metav1.ObjectMeta{Name: w.a, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Node", Name: w.a, UID: owner.UID},
	}}}
	if err := w.agent.Create(t.Context(), own); err != nil {
		t.Fatalf("its NodeAgent: %v", err)
	}
	t.Cleanup(func() { _ = w.admin.Delete(context.WithoutCancel(t.Context()), own) })
	said := own.DeepCopy()
	said.Status.StaticPods = []v1alpha1.StaticPod{{Namespace: "kube-system", Name: "proxy", State: v1alpha1.StaticPodHeld}}
	asked := w.evacuation("own", w.a, v1alpha1.KubeletEvacuatorClass)
	for what, err := range map[string]error{
		"the status of its NodeAgent": w.agent.Status().Patch(t.Context(), said, client.MergeFrom(own)),
		"a condition of its Node":     patch(t, w.mighty, w.node(w.a), "status: {conditions: [{type: GracefulNodeShutdownInProgress, status: 'True', reason: NodeShutdown}]}"),
		"that it requires a reboot":   patch(t, w.mighty, w.node(w.a), "status: {conditions: [{type: RebootRequired, status: 'True', reason: RebootSentinel}]}"),
		"progress": patch(t, w.agent, asked,
			`status: {evacuationProgressTimestamp: "2026-03-01T12:00:00Z", expectedEvacuationFinishTime: "2026-03-01T12:00:30Z", message: terminating}`),
		"an event on its Node":      try(t, w.agent, w.event(w.a+"-1", "Node", w.a)),
		"an event on its NodeAgent": try(t, w.agent, w.event(w.a+"-2", "NodeAgent", w.a)),
	} {
		if err != nil {
			t.Errorf("%s is refused: %v", what, err)
		}
	}
}

const (
	belongs       = "a NodeAgent belongs to its Node and to nothing else"
	onlyCondition = "a node agent writes the conditions GracefulNodeShutdownInProgress and RebootRequired of its Node, and nothing else of it"
	onlyProgress  = "a node agent reports progress, expected end and message of Evacuations in which kubelet.k8s.io is active, and nothing else"
	shutdown      = "status: {conditions: [{type: GracefulNodeShutdownInProgress, status: 'True', reason: NodeShutdown}]}"
)

// Somebody has the token of the agent of node a, and every right that RBAC can give.
func TestAnAgentWritesForNoOtherNode(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t)
	own, others := create(t, w.admin, w.nodeAgent(w.a, "")), create(t, w.admin, w.nodeAgent(w.b, ""))
	ours, theirs := w.evacuation("ours", w.a, v1alpha1.KubeletEvacuatorClass), w.evacuation("theirs", w.b, v1alpha1.KubeletEvacuatorClass)
	surging := w.evacuation("surging", w.a, v1alpha1.DeploymentEvacuatorClass)
	event := create(t, w.admin, w.event(w.a+"-event", "Node", w.b))
	pod := create(t, w.admin, annotated(w.a+"-pod", map[string]string{"example.com/note": "any"}))
	of := func(what string) string { return "the node agent of " + w.a + " may not write " + what + " of " + w.b }
	may := func(what string) string { return "the node agent of " + w.a + " may not " + what }
	for what, attack := range map[string]struct {
		err  error
		want string
	}{
		"a NodeAgent of another name":                 {try(t, w.mighty, w.nodeAgent(w.b+"-new", "")), "may not write nodeagents of " + w.b + "-new"},
		"the NodeAgent of another node":               {patch(t, w.mighty, others, "metadata: {labels: {a: b}}"), of("nodeagents")},
		"its status":                                  {patch(t, w.mighty, others, "status: {podName: x}"), of("nodeagents/status")},
		"its deletion":                                {w.mighty.Delete(t.Context(), others), may("delete nodeagents")},
		"the deletion of its own":                     {w.mighty.Delete(t.Context(), own), may("delete nodeagents")},
		"a NodeAgent that deletes others":             {patch(t, w.mighty, own, "metadata: {ownerReferences: [{apiVersion: v1, kind: Node, name: "+w.b+", uid: u}]}"), belongs},
		"one that belongs to a Pod":                   {patch(t, w.mighty, own, "metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: "+w.a+", uid: u}]}"), belongs},
		"one that holds its Node up":                  {patch(t, w.mighty, own, "metadata: {ownerReferences: [{apiVersion: v1, kind: Node, name: "+w.a+", uid: u, blockOwnerDeletion: true}]}"), belongs},
		"one that cannot be deleted":                  {patch(t, w.mighty, own, "metadata: {finalizers: [example.com/forever]}"), belongs},
		"another node's condition":                    {patch(t, w.mighty, w.node(w.b), shutdown), of("nodes/status")},
		"another condition":                           {patch(t, w.mighty, w.node(w.a), "status: {conditions: [{type: Drained, status: 'True'}]}"), onlyCondition},
		"the capacity of its node":                    {patch(t, w.mighty, w.node(w.a), "status: {capacity: {cpu: '64'}}"), onlyCondition},
		"the addresses of its node":                   {patch(t, w.mighty, w.node(w.a), "status: {addresses: [{type: InternalIP, address: 192.0.2.1}]}"), onlyCondition},
		"annotations of its node, through the status": {w.mighty.Status().Patch(t.Context(), w.node(w.a), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"example.com/note":"mine"}}}`))), onlyCondition},
		"labels of its node, through the status":      {w.mighty.Status().Patch(t.Context(), w.node(w.a), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"pool":"other"}}}`))), onlyCondition},
		"its own Node":                                {patch(t, w.mighty, w.node(w.a), "spec: {unschedulable: true}"), may("update nodes")},
		"the deletion of a Node":                      {w.mighty.Delete(t.Context(), w.node(w.b)), may("delete nodes")},
		"progress on another node":                    {patch(t, w.mighty, theirs, "status: {message: held}"), of("evacuations/status")},
		"progress where another class is active":      {patch(t, w.mighty, surging, "status: {message: held}"), onlyProgress},
		"who is active":                               {patch(t, w.mighty, ours, "status: {activeEvacuatorClass: deployment.apps.k8s.io}"), onlyProgress},
		"that it may not be cancelled":                {patch(t, w.mighty, ours, "status: {evacuationCancellationPolicy: Forbid}"), onlyProgress},
		"that it has completed":                       {patch(t, w.mighty, ours, "status: {activeEvacuatorCompleted: true}"), onlyProgress},
		"the node of an Evacuation":                   {patch(t, w.mighty, theirs, "metadata: {annotations: {ebbtide.dev/node: "+w.a+"}}"), may("update evacuations")},
		"the same, through the status":                {w.mighty.Status().Patch(t.Context(), theirs.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"ebbtide.dev/node":"`+w.a+`"}},"status":{"message":"held"}}`))), of("evacuations/status")},
		"a NodeMaintenance":                           {try(t, w.mighty, "{apiVersion: ebbtide.dev/v1alpha1, kind: NodeMaintenance, metadata: {name: "+w.a+"}, spec: {stage: Drain, nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: ["+w.b+"]}]}]}}}"), may("create nodemaintenances")},
		"an event on another node":                    {try(t, w.mighty, w.event(w.a+"-e1", "Node", w.b)), "may not write events of Node " + w.b},
		"an event on a pod":                           {try(t, w.mighty, w.event(w.a+"-e2", "Pod", w.a)), "may not write events of Pod " + w.a},
		"an event on a maintenance":                   {try(t, w.mighty, w.event(w.a+"-e4", "NodeMaintenance", "kernel-update")), "may not write events of NodeMaintenance kernel-update"},
		"an event in the name of others":              {try(t, w.mighty, strings.Replace(w.event(w.a+"-e5", "Node", w.a), "ebbtide-agent", "kubelet", 1)), "writes events of the reportingController ebbtide-agent"},
		"a condition of a megabyte":                   {patch(t, w.mighty, w.node(w.a), "status: {conditions: [{type: GracefulNodeShutdownInProgress, status: 'True', message: "+strings.Repeat("m", 1<<20)+"}]}"), "a message of at most 1,024 characters"},
		"that another node requires a reboot":         {patch(t, w.mighty, w.node(w.b), "status: {conditions: [{type: RebootRequired, status: 'True', reason: RebootSentinel}]}"), of("nodes/status")},
		"a required reboot of a megabyte":             {patch(t, w.mighty, w.node(w.a), "status: {conditions: [{type: RebootRequired, status: 'True', message: "+strings.Repeat("m", 1<<20)+"}]}"), "a message of at most 1,024 characters"},
		"the event of another":                        {patch(t, w.mighty, event, "series: {count: 2, lastObservedTime: '2026-03-01T12:00:00.000000Z'}"), "may not write events of Node " + w.b},
		"a pod":                                       {patch(t, w.mighty, pod, "metadata: {labels: {a: b}}"), may("update pods")},
		"the deletion of a pod":                       {w.mighty.Delete(t.Context(), pod), may("delete pods")},
		"a new pod":                                   {try(t, w.mighty, annotated(w.a+"-pod2", nil)), may("create pods")},
		"its NodeAgent by a token without a node":     {patch(t, w.nameless, own, "status: {podName: x}"), "names no node"},
		"its condition by a token without a node":     {patch(t, w.nameless, w.node(w.a), shutdown), "names no node"},
		"progress by a token without a node":          {patch(t, w.nameless, ours, "status: {message: held}"), "names no node"},
		"an Evacuation of no node, by such a token":   {patch(t, w.nameless, w.evacuation("nowhere", `""`, v1alpha1.KubeletEvacuatorClass), "status: {message: held}"), "names no node"},
		"an event by such a token":                    {try(t, w.nameless, w.event(w.a+"-e3", "Node", w.a)), "names no node"},
	} {
		if attack.err == nil || !strings.Contains(attack.err.Error(), attack.want) {
			t.Errorf("%s: %v, want %q", what, attack.err, attack.want)
		}
	}
}

// The rights of the chart are these and no more.
func TestTheRightsOfAnAgent(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t)
	own := create(t, w.admin, w.nodeAgent(w.a, ""))
	pod := create(t, w.admin, annotated(w.a+"-pod", map[string]string{"example.com/note": "any"}))
	for what, err := range map[string]error{
		"its own Node":        patch(t, w.agent, w.node(w.a), "spec: {unschedulable: true}"),
		"its NodeAgent":       patch(t, w.agent, own, "metadata: {labels: {a: b}}"),
		"its deletion":        w.agent.Delete(t.Context(), own),
		"a pod":               patch(t, w.agent, pod, "metadata: {labels: {a: b}}"),
		"an eviction":         w.agent.SubResource("eviction").Create(t.Context(), pod.DeepCopy(), object(t, "{apiVersion: policy/v1, kind: Eviction, metadata: {namespace: default, name: "+pod.GetName()+"}}")),
		"the Secrets":         w.agent.List(t.Context(), &corev1.SecretList{}),
		"the ConfigMaps":      w.agent.List(t.Context(), &corev1.ConfigMapList{}),
		"all maintenances":    w.agent.List(t.Context(), &v1alpha1.NodeMaintenanceList{}),
		"the deletion of one": w.agent.Delete(t.Context(), &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "any"}}),
	} {
		if err == nil || !strings.Contains(err.Error(), "forbidden") {
			t.Errorf("%s: %v, want it forbidden", what, err)
		}
	}
}

// An agent fills no API server: what it can write of its status has bounds.
func TestAHugeStatusOfAnAgent(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t)
	own := create(t, w.admin, w.nodeAgent(w.a, ""))
	long := strings.Repeat("x", 10<<20)
	pods := make([]string, 257)
	for i := range pods {
		pods[i] = fmt.Sprintf("{namespace: n, name: p%d, state: Running}", i)
	}
	for what, attack := range map[string]struct{ status, want string }{
		"10 MB":              {"{manifestDir: " + long + "}", "too large"},
		"a long folder":      {"{manifestDir: " + long[:4097] + "}", "status.manifestDir"},
		"a long message":     {"{staticPods: [{namespace: n, name: p, state: Running, message: " + long[:1025] + "}]}", "message"},
		"257 pods":           {"{staticPods: [" + strings.Join(pods, ", ") + "]}", "must have at most 256 items"},
		"a state of its own": {"{staticPods: [{namespace: n, name: p, state: Gone}]}", "Unsupported value"},
		"a pod twice":        {"{staticPods: [{namespace: n, name: p, state: Running}, {namespace: n, name: p, state: Held}]}", "Duplicate value"},
	} {
		if err := patch(t, w.agent, own, "status: "+attack.status); err == nil || !strings.Contains(err.Error(), attack.want) {
			text := fmt.Sprint(err)
			t.Errorf("%s: %s, want %q", what, text[:min(len(text), 300)], attack.want)
		}
	}
}
