package step

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// claim has somebody say that the node is being drained, as its condition shows it then.
func (s *server) claim(as client.Client, node *corev1.Node, status corev1.ConditionStatus) corev1.NodeCondition {
	s.t.Helper()
	claimed := corev1.NodeCondition{
		Type: v1alpha1.NodeDrainInProgress, Status: status, Reason: "KubectlDrainStarted", Message: "go away",
		LastTransitionTime: metav1.NewTime(time.Now()).Rfc3339Copy(),
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{claimed}}})
	s.must("encode the claim", err)
	s.must("claim a drain", as.Status().Patch(s.ctx(), node.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, patch)))
	return claimed
}

func conditionOn(node *corev1.Node, conditionType corev1.NodeConditionType) string {
	for _, c := range node.Status.Conditions {
		if c.Type == conditionType {
			return fmt.Sprintf("%s/%s/%s", c.Status, c.Reason, c.Message)
		}
	}
	return ""
}

// Whoever may patch the status of nodes can make up a drain of somebody else. Nothing follows
// from it but words: pods leave, the node is given back, and the claim is theirs to take back.
func TestAMadeUpDrainStopsNothing(t *testing.T) {
	t.Parallel()
	s := maintain(t, nil)
	name, mallory := s.cluster.User(t, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}})
	node := s.node("-node", s.prefix)
	s.claim(mallory, node, corev1.ConditionTrue)
	pod, upgrade := s.pod(node), s.drain(s.prefix)
	const theirs = "True/KubectlDrainStarted/go away"
	s.until("the pod to be asked to leave, and the drain that "+name+" has made up to be told", func() (string, bool) {
		s.read(upgrade)
		s.read(node)
		told := fmt.Sprintf("%+v", upgrade.Status.NodeStatuses)
		is := len(upgrade.Status.NodeStatuses) == 1 && len(upgrade.Status.NodeStatuses[0].Blockers) == 1 &&
			upgrade.Status.NodeStatuses[0].Blockers[0].Type == v1alpha1.BlockerForeignDrain
		return told + conditionOn(node, v1alpha1.NodeDrainInProgress), is && len(s.evacuationsOf(pod)) == 1
	})
	s.evacuate(pod)
	s.awaitDrained(upgrade, func() { s.claim(mallory, node, corev1.ConditionTrue) })
	s.complete(upgrade)
	s.until("the node to be given back", func() (string, bool) {
		s.read(node)
		s.read(upgrade)
		return fmt.Sprintf("cordoned %t, finalizers %v", node.Spec.Unschedulable, upgrade.Finalizers), !node.Spec.Unschedulable && len(upgrade.Finalizers) == 0
	})
	if got := conditionOn(node, v1alpha1.NodeDrainInProgress); got != theirs || conditionOn(node, v1alpha1.NodeDrained) != "" {
		t.Errorf("the node says %s and drained %s, want what %s has written: %s", got, conditionOn(node, v1alpha1.NodeDrained), name, theirs)
	}
}

// A person who taints nodes, with a time that no time can be, does not have a status refused,
// and holds up the end of one maintenance only as long as the taint is there.
func TestAMadeUpRemovalHoldsUpOneMaintenanceOnly(t *testing.T) {
	t.Parallel()
	s := maintain(t, nil)
	_, mallory := s.cluster.User(t, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"patch"}})
	var nodes []*corev1.Node
	var all []*v1alpha1.NodeMaintenance
	for _, which := range []string{"a", "b"} {
		nodes, all = append(nodes, s.node(which, s.prefix+which)), append(all, s.drain(s.prefix+which))
	}
	for _, one := range all {
		s.awaitDrained(one, func() {})
	}
	patch := `{"spec":{"taints":[{"key":"ToBeDeletedByClusterAutoscaler","value":"99999999999999999","effect":"NoSchedule"}]}}`
	s.must("taint the node", mallory.Patch(s.ctx(), nodes[0].DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(patch))))
	for _, one := range all {
		s.complete(one)
	}
	const waits = "complete, was drained, 1 node cordoned until others are through with draining"
	s.until("one to end and the other to say what it waits for", func() (string, bool) {
		s.read(all[0])
		s.read(all[1])
		s.read(nodes[0])
		return fmt.Sprint(all[0].Status.Summary, all[1].Finalizers), all[0].Status.Summary == waits && len(all[1].Finalizers) == 0 && nodes[0].Spec.Unschedulable
	})
	s.change("take the taint away", nodes[0], func() { nodes[0].Spec.Taints = nil })
	s.until("the other to end", func() (string, bool) {
		s.read(all[0])
		s.read(nodes[0])
		return all[0].Status.Summary, len(all[0].Finalizers) == 0 && !nodes[0].Spec.Unschedulable
	})
}
