package scenario

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox/provider/api"
	"ebbtide.dev/ebbtide/test/cluster"
)

// A manager without --machines drains nodes, by their rules, and does nothing to
// Machines: neither to one that is created, nor to one that is deleted with its Node. It
// asks for nothing that the chart gives it no right to, which the suite holds it to.
func TestLongAManagerWithoutMachinesDrainsNodesAndLeavesMachinesAlone(t *testing.T) {
	t.Parallel()
	w := newWorldIn(t, cluster.Spec{NoMachines: true})
	w.cluster.StartProvider(t)
	w.clusterOf(hosts)
	node := w.nodes("one")[0]
	w.mayNot("delete", "", "nodes")
	w.mayNot("list", v1alpha1.SchemeGroupVersion.Group, "machines")
	w.mayNot("patch", v1alpha1.SchemeGroupVersion.Group, "machines/status")
	w.mayNot("get", "", "secrets")
	w.mayNot("patch", api.SchemeGroupVersion.Group, "sandboxmachines")
	awaited := w.machine("awaited")
	known := &corev1.Node{}
	w.change(known, node, func() { known.Spec.ProviderID = "scenario://" + node })
	w.machineOnly(node, func(m *v1alpha1.Machine) { m.Spec.ProviderID = known.Spec.ProviderID })
	w.rule(node, "agent", v1alpha1.MachineDrainRuleDrain{Behavior: v1alpha1.DrainBehaviorSkip})
	w.pods(node, pod{name: "web"}, pod{name: "agent", labels: of("agent")})

	w.maintain("maintenance-a", v1alpha1.StageDrain, []string{node})

	w.awaitGone("web")
	w.awaitDrained("maintenance-a")
	w.awaitPod("agent", "left by its rule", running)
	w.deleteMachines(node)
	w.awaitAbsent(&v1alpha1.Machine{}, node)
	w.setStage("maintenance-a", v1alpha1.StageComplete)
	w.awaitCondition("maintenance-a", v1alpha1.ConditionSucceeded, "True", v1alpha1.ReasonDrained)

	w.awaitNode(node, "given back", func(n *corev1.Node) bool { return n.DeletionTimestamp == nil && !n.Spec.Unschedulable })
	m, c := &v1alpha1.Machine{}, &v1alpha1.Cluster{}
	w.get(m, awaited)
	w.get(c, hosts)
	if len(m.Finalizers) > 0 || len(m.Status.Conditions) > 0 || m.Status.Phase != "" || len(c.Status.Conditions) > 0 {
		t.Errorf("somebody has looked after Machine %v with %+v or Cluster %+v", m.Finalizers, m.Status, c.Status)
	}
	instance := w.instance()
	w.get(instance, awaited)
	if len(instance.OwnerReferences) > 0 {
		t.Errorf("the instance is adopted: %v", instance.OwnerReferences)
	}
}

// mayNot asks the API server what the manager's account may do anywhere.
func (w *world) mayNot(verb, group, resource string) {
	w.t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: cluster.Account.User(), Groups: cluster.Account.Groups(),
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource},
	}}
	w.must("review the manager's rights", w.client.Create(w.ctx, review))
	if review.Status.Allowed || review.Status.EvaluationError != "" {
		w.t.Errorf("the manager may %s %s: %+v", verb, resource, review.Status)
	}
}
