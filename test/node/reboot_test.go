package node

import (
	"context"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/patience"
)

// required has a sentinel file appear on a node. The rollout drains the node, its agent reboots it
// once, and it takes pods again after the boot. The other node, which has no agent, is left alone.
func (s *shutdowns) required(t *testing.T) {
	s.serve(t)
	s.budget(t, 1)
	before := s.bootID(t)
	s.requires(t, corev1.ConditionFalse)
	if err := os.WriteFile(s.path("run/reboot-required.pkgs"), []byte("linux-image\nlibc6\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.path("run/reboot-required"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.requires(t, corev1.ConditionTrue)
	s.rollOut(t)
	patience.Eventually(t, "the agent to reboot the node", func(context.Context) (string, bool) {
		return fmt.Sprint(s.logind.Reboots(), " reboots, ", s.rollout(t).Status), s.logind.Reboots() == 1
	})
	s.event(t, v1alpha1.EventNodeRebooting, "for NodeMaintenance reboot-")
	if pod := s.pod(t); pod.Name != "" {
		t.Errorf("pod %s is on the node when it reboots", pod.Name)
	}

	s.agent.Kill()
	// A boot clears /run.
	if err := os.Remove(s.path("run/reboot-required")); err != nil {
		t.Fatal(err)
	}
	s.PowerOff(t, s.node)
	s.PowerOn(t, s.node)
	waitReady(t, s.Cluster, s.node, before)
	s.boot(t)
	patience.Eventually(t, "the rollout to be complete", func(context.Context) (string, bool) {
		r := s.rollout(t)
		return fmt.Sprintf("%+v", r.Status), meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionRolloutComplete)
	})
	s.requires(t, corev1.ConditionFalse)
	s.awaitNode(t, "to take pods again", func(node *corev1.Node) bool { return !node.Spec.Unschedulable })
	if status := s.rollout(t).Status; status.DoneCount != 2 || status.FailedCount != 0 || s.logind.Reboots() != 0 {
		t.Errorf("%+v, and %d reboots since, want both nodes done and none", status, s.logind.Reboots())
	}
	waitAvailable(t, s.Cluster, s.namespace, "held")
}

func (s *shutdowns) bootID(t *testing.T) string {
	t.Helper()
	node, err := getNode(t.Context(), s.Cluster, s.node)
	if err != nil {
		t.Fatal(err)
	}
	return node.Status.NodeInfo.BootID
}

// rollOut reboots the nodes that require it.
func (s *shutdowns) rollOut(t *testing.T) {
	t.Helper()
	selector := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpExists},
	}}}}
	r := &v1alpha1.NodeRollout{ObjectMeta: metav1.ObjectMeta{Name: "reboot"}, Spec: v1alpha1.NodeRolloutSpec{
		NodeSelector: selector, When: &v1alpha1.RolloutWhen{RebootRequired: true}, Reboot: true, ControlPlane: v1alpha1.ControlPlaneLast,
	}}
	if err := s.Client.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

func (s *shutdowns) rollout(t *testing.T) *v1alpha1.NodeRollout {
	t.Helper()
	r := &v1alpha1.NodeRollout{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "reboot"}, r); err != nil {
		t.Fatal(err)
	}
	return r
}

// requires waits until the node reports whether it requires a reboot.
func (s *shutdowns) requires(t *testing.T, status corev1.ConditionStatus) {
	t.Helper()
	s.awaitNode(t, "to report that a reboot is required: "+string(status), func(node *corev1.Node) bool {
		for _, c := range node.Status.Conditions {
			if c.Type == v1alpha1.NodeRebootRequired {
				return c.Status == status
			}
		}
		return false
	})
}
