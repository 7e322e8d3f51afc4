package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/agent/host"
	core "ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/test/cluster"
)

// hostWorld has agents that are units of their hosts.
type hostWorld struct {
	*agentWorld
	server *cluster.Cluster
}

func newHostWorld(t *testing.T) *hostWorld {
	t.Helper()
	return &hostWorld{agentWorld: newAgentWorld(t), server: cluster.Start(t, cluster.Spec{OnlyAPIServer: true})}
}

// user is somebody whom the API server knows by a certificate.
func (w *hostWorld) user(name string, groups ...string) client.WithWatch {
	w.t.Helper()
	return as(w.t, w.server, rest.ImpersonationConfig{UserName: name, Groups: append(groups, "system:authenticated")}, nil)
}

// lease is one of Ebbtide's namespace.
func lease(namespace, name, holder string) string {
	return fmt.Sprintf("{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: %s, name: %s}, spec: {holderIdentity: %q}}", namespace, name, holder)
}

func holds(t *testing.T, admin client.Client, want string) error {
	t.Helper()
	seen, err := host.Read(t.Context(), admin, cluster.Account.Namespace)
	if err == nil && seen.Claim != want {
		err = fmt.Errorf("it is %q's, want %q", seen.Claim, want)
	}
	return err
}

// Somebody has the certificate of the agent of host a, and every right that RBAC can give.
func TestAnAgentOfAHostWritesForNoOtherNode(t *testing.T) {
	w := newHostWorld(t)
	space := cluster.Account.Namespace
	agent := w.user("ebbtide:agent:"+w.a, "ebbtide:agents", "system:masters")
	outsider := w.user("ebbtide:agent:"+w.a, "system:masters")
	member := w.user("bob", "ebbtide:agents", "system:masters")
	nobody := w.user("ebbtide:agent:", "ebbtide:agents", "system:masters")
	pod := w.as(w.server, w.a, true)
	others := create(t, w.admin, w.nodeAgent(w.b, ""))
	theirs := w.evacuation("theirs", w.b, v1alpha1.KubeletEvacuatorClass)
	beat := create(t, w.admin, lease(space, core.AgentLease(w.b), w.b))
	leader := create(t, w.admin, lease(space, w.a+"-leader", "manager"))
	elsewhere := create(t, w.admin, lease("kube-system", w.a+"-scheduler", "x"))
	kubelets := create(t, w.admin, lease("kube-node-lease", w.b, w.b))
	of := func(what string) string { return "the node agent of " + w.a + " may not write " + what }
	shutdown := "status: {conditions: [{type: GracefulNodeShutdownInProgress, status: 'True', reason: NodeShutdown}]}"
	taken := "a Lease that another node holds is not taken from it, nor given to it"
	for what, attack := range map[string]struct {
		err  error
		want string
	}{
		"another's NodeAgent":              {patch(t, agent, others, "status: {podName: x}"), of("nodeagents/status of " + w.b)},
		"another's condition":              {patch(t, agent, w.node(w.b), shutdown), of("nodes/status of " + w.b)},
		"another condition of its own":     {patch(t, agent, w.node(w.a), "status: {conditions: [{type: Drained, status: 'True'}]}"), "and nothing else of it"},
		"its own Node":                     {patch(t, agent, w.node(w.a), "spec: {unschedulable: true}"), "may not update nodes"},
		"another's progress":               {patch(t, agent, theirs, "status: {message: held}"), of("evacuations/status of " + w.b)},
		"an event on another node":         {try(t, agent, w.event(w.a+"-e1", "Node", w.b)), of("events of Node " + w.b)},
		"another's sign of life":           {patch(t, agent, beat, "spec: {leaseDurationSeconds: 9}"), of("leases of " + space + "/" + core.AgentLease(w.b))},
		"its deletion":                     {agent.Delete(t.Context(), beat), "may not delete leases"},
		"the Lease of the leader":          {patch(t, agent, leader, "spec: {holderIdentity: "+w.a+"}"), of("leases of " + space)},
		"a new Lease":                      {try(t, agent, lease(space, w.a+"-new", w.a)), of("leases of " + space)},
		"a Lease of another namespace":     {patch(t, agent, elsewhere, "spec: {holderIdentity: "+w.a+"}"), of("leases of kube-system/")},
		"its own, in another namespace":    {try(t, agent, lease("default", core.AgentLease(w.a), w.a)), of("leases of default/")},
		"the Lease of another kubelet":     {patch(t, agent, kubelets, "spec: {leaseDurationSeconds: 9}"), of("leases of kube-node-lease/")},
		"its own in another's name":        {try(t, agent, lease(space, core.AgentLease(w.a), w.b)), taken},
		"a name without the group":         {patch(t, outsider, w.node(w.a), shutdown), "names no node"},
		"the group without the name":       {patch(t, member, w.node(w.a), shutdown), "names no node"},
		"a name of no node":                {patch(t, nobody, w.node(w.a), shutdown), "names no node"},
		"the claim, by a pod":              {try(t, pod, lease(space, core.AgentLease(w.a), w.a)), "may not create leases"},
		"a NodeMaintenance":                {try(t, agent, maintenanceOf(w.a)), "may not create nodemaintenances"},
		"another's claim":                  {w.rob(agent, w.b, w.a), taken},
		"the release of another's claim":   {w.rob(agent, w.b, ""), taken},
		"its own claim, given to somebody": {w.rob(agent, w.a, w.b), taken},
		"its claim in another namespace":   {try(t, agent, lease("default", host.ClaimName, w.a)), of("leases of default/")},
	} {
		if attack.err == nil || !strings.Contains(attack.err.Error(), attack.want) {
			t.Errorf("%s: %v, want %q", what, attack.err, attack.want)
		}
	}
}

func maintenanceOf(node string) string {
	return "{apiVersion: ebbtide.dev/v1alpha1, kind: NodeMaintenance, metadata: {name: " + node + "}, spec: {stage: Drain, " +
		"nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [" + node + "]}]}]}}}"
}

// rob gives a claim that one node has to another.
func (w *hostWorld) rob(agent client.Client, from, to string) error {
	w.t.Helper()
	claim := object(w.t, lease(cluster.Account.Namespace, host.ClaimName, from))
	ctx := context.WithoutCancel(w.t.Context())
	_ = w.admin.Delete(ctx, claim.DeepCopy())
	if err := w.admin.Create(ctx, claim); err != nil {
		w.t.Fatal(err)
	}
	if err := unstructured.SetNestedField(claim.Object, to, "spec", "holderIdentity"); err != nil {
		w.t.Fatal(err)
	}
	err := agent.Update(ctx, claim.DeepCopy())
	_ = w.admin.Delete(ctx, claim)
	return err
}

// The rights of the chart are these and no more.
func TestTheRightsOfAnAgentOfAHost(t *testing.T) {
	t.Parallel()
	w := newHostWorld(t)
	agent := w.user("ebbtide:agent:"+w.a, "ebbtide:agents")
	elsewhere := create(t, w.admin, lease("kube-system", w.a+"-scheduler", "x"))
	for what, err := range map[string]error{
		"a Lease of kube-system": patch(t, agent, elsewhere, "spec: {holderIdentity: me}"),
		"a new one there":        try(t, agent, lease("kube-system", w.a+"-new", "me")),
		"the Secrets":            agent.List(t.Context(), &corev1.SecretList{}),
		"its own Node":           patch(t, agent, w.node(w.a), "spec: {unschedulable: true}"),
		"a token of its own":     agent.SubResource("token").Create(t.Context(), object(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: "+cluster.Account.Namespace+", name: ebbtide}}"), object(t, "{apiVersion: authentication.k8s.io/v1, kind: TokenRequest}")),
	} {
		if err == nil || !strings.Contains(err.Error(), "forbidden") {
			t.Errorf("%s: %v, want it forbidden", what, err)
		}
	}
}
