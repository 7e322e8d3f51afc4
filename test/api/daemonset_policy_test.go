package api

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// The API server itself holds back new pods of DaemonSets from a node that a drain has come so
// far on: no manager runs, and nobody who answers in its place sees them.
func TestTheAPIServerHoldsBackPodsOfDaemonSets(t *testing.T) {
	t.Parallel()
	if !sandbox.ServesMutatingPolicies(sandbox.RequestedVersion()) {
		return // The webhook does it there: test/scenario TestDaemonSetsStayAwayUntilComplete.
	}
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	for _, o := range append(admission(t, "MutatingAdmissionPolicy"), admission(t, "MutatingAdmissionPolicyBinding")...) {
		must(t, c.Client.Create(t.Context(), o))
	}
	namespace, drained, other := c.Namespace(t), c.Pool()+"-drained", c.Pool()+"-other"
	for name, labels := range map[string]map[string]string{drained: {v1alpha1.DaemonSetDrainLabel: "true"}, other: nil} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		keep(t, c.Mighty(t, cluster.Account.User()), node)
	}
	gates := func(change func(*corev1.Pod)) []string {
		t.Helper()
		pod := sample.DaemonPod(namespace, "log", drained)
		pod.Labels["controller-revision-hash"] = "5d4f"
		change(pod)
		must(t, c.Client.Create(t.Context(), pod, client.DryRunAll))
		return namesOf(pod.Spec.SchedulingGates)
	}
	patience.Eventually(t, "the policy to know the node", func(context.Context) (string, bool) {
		got := gates(func(*corev1.Pod) {})
		return fmt.Sprint(got), slices.Equal(got, []string{v1alpha1.MaintenanceGate})
	})
	const theirs = "example.com/theirs"
	gated := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: name}} }
	}
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   []string
	}{
		"held by others, too": {gated(theirs), []string{theirs, v1alpha1.MaintenanceGate}},
		"held already":        {gated(v1alpha1.MaintenanceGate), []string{v1alpha1.MaintenanceGate}},
		"retained":            {func(p *corev1.Pod) { p.Labels[v1alpha1.DrainLabel] = "skip" }, nil},
		"for another node":    {func(p *corev1.Pod) { p.Spec.Affinity = sample.DaemonPod("", "", other).Spec.Affinity }, nil},
		"for no node":         {func(p *corev1.Pod) { p.Spec.Affinity = nil }, nil},
		"on its node already": {func(p *corev1.Pod) { p.Spec.NodeName = drained }, nil},
		"of a StatefulSet":    {func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "StatefulSet" }, nil},
		"of another API":      {func(p *corev1.Pod) { p.OwnerReferences[0].APIVersion = "example.com/v1" }, nil},
		"not controlled":      {func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }, nil},
		"of nobody":           {func(p *corev1.Pod) { p.OwnerReferences = nil }, nil},
	} {
		if got := gates(test.change); !slices.Equal(got, test.want) {
			t.Errorf("%s: gates are %v, want %v", name, got, test.want)
		}
	}
}

func namesOf(gates []corev1.PodSchedulingGate) (names []string) {
	for _, gate := range gates {
		names = append(names, gate.Name)
	}
	return names
}
