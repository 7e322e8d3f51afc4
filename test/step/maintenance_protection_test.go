package step

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/bridge"
)

// What autoscalers read of a node is ours for the time of a maintenance and comes back, beside
// what the cache does not keep; what somebody answers meanwhile stays.
//
// The managers of other tests have no bridges, and would take back what this one writes: it
// runs before those that are parallel.
func TestAutoscalersAreKeptFromANodeOnARealAPIServer(t *testing.T) {
	s := maintain(t, bridge.Names{bridge.Karpenter, bridge.ClusterAutoscaler})
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: s.prefix + "-node", Labels: map[string]string{"pool": s.prefix},
		Annotations: map[string]string{v1alpha1.KarpenterDoNotDisruptAnnotation: "false", "example.com/rack": "7"},
	}}
	s.must("create the node", s.api.Create(s.ctx(), node))
	upgrade := drainOf(s.prefix)
	upgrade.Spec.Stage = v1alpha1.StageCordon
	s.must("create the maintenance", s.api.Create(s.ctx(), upgrade))
	shows := func(what, disrupt, scaleDown string) {
		s.until(what, func() (string, bool) {
			s.read(node)
			a := node.Annotations
			return fmt.Sprint(a), a[v1alpha1.KarpenterDoNotDisruptAnnotation] == disrupt && a[v1alpha1.ScaleDownDisabledAnnotation] == scaleDown && a["example.com/rack"] == "7"
		})
	}
	shows("autoscalers to be kept away", "true", "true")

	_, person := s.cluster.User(t, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"patch"}})
	answer := `{"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/scale-down-disabled":null}}}`
	s.must("let the autoscaler at the node", person.Patch(s.ctx(), node.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(answer))))
	shows("the answer to stay", "true", "")
	s.change("say that the node is to go", upgrade, func() { upgrade.Annotations = map[string]string{v1alpha1.AllowScaleDownAnnotation: "true"} })
	shows("the node to be let go", "false", "")
	s.change("say that it is to stay", upgrade, func() { upgrade.Annotations = nil })
	shows("the node to be kept again, but for the answer", "true", "")
	s.complete(upgrade)
	s.until("the maintenance to end", func() (string, bool) {
		s.read(upgrade)
		return upgrade.Status.Summary, len(upgrade.Finalizers) == 0
	})
	s.read(node)
	if diff := fmt.Sprint(node.Annotations); diff != "map[example.com/rack:7 karpenter.sh/do-not-disrupt:false]" || node.Spec.Unschedulable {
		t.Errorf("the node bears %s, cordoned %t", diff, node.Spec.Unschedulable)
	}
}
