package scenario

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// awaitRefusals waits until exactly these groups of nodes wait, with a text in the message of each.
func (w *world) awaitRefusals(rollout string, texts map[string]string) {
	w.t.Helper()
	w.awaitRollout(rollout, "waits", func(s *v1alpha1.NodeRolloutStatus) bool {
		for _, one := range s.Waiting {
			if text, known := texts[one.Reason]; !known || !strings.Contains(one.Message, text) {
				return false
			}
		}
		return len(s.Waiting) == len(texts)
	})
}

// letManagerRead gives the manager the right to read ConfigMaps of this world.
func (w *world) letManagerRead() {
	w.t.Helper()
	meta := metav1.ObjectMeta{Namespace: w.ns, Name: "gate"}
	w.create(&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}}})
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: cluster.Account.Namespace, Name: cluster.Account.Name}},
	})
}

// A gate on a ConfigMap is unknown before there is one, and closed until it opens the gate. It closes while a node drains, which continues. The next node starts when it opens again.
func TestLongRolloutWaitsForAGateThatClosesInTheMiddle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two")
	w.pods(nodes[0], pod{name: "held", held: true})
	state := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "fleet"}, Data: map[string]string{"state": "stop"}}
	say := func(text string) {
		w.change(state, state.Name, func() { state.Data = map[string]string{"state": text} })
	}
	spec := draining(nodes, 1)
	spec.Gates = []v1alpha1.RolloutGate{{Name: "fleet", Object: &v1alpha1.ObjectGate{
		APIVersion: "v1", Kind: "ConfigMap", Namespace: w.ns, Name: state.Name, JSONPath: ".data.state", Value: "go",
	}}}
	w.letManagerRead()
	w.rollOut("empty", spec)
	w.awaitRefusals("empty", map[string]string{v1alpha1.RolloutWaitsForAnswer: "ConfigMap fleet does not exist"})
	w.create(state)
	w.awaitRefusals("empty", map[string]string{v1alpha1.RolloutWaitsForGate: "Gate fleet is closed"})
	say("go")
	w.awaitWorking("empty", map[string]string{nodes[0]: v1alpha1.RolloutNodeDraining})

	say("stop")
	closed := time.Now()
	w.eventually("the end of the answers of before", func() (bool, any) { return time.Since(closed) > 31*time.Second, closed })
	w.release("held")
	w.awaitRefusals("empty", map[string]string{v1alpha1.RolloutWaitsForGate: "Gate fleet is closed"})
	w.assertUnschedulable(nodes[1], false)
	say("go")
	w.awaitRolloutComplete("empty", v1alpha1.ReasonRolloutComplete)
	w.assertStaysCordoned(nodes[0])
}

// A node with a bare pod, and one with a pod that fits on no other node, do not start before these
// are gone. The node in between them does.
func TestLongRolloutStartsNoNodeWithLossOrWithoutRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two", "three")
	w.pods(nodes[0], pod{name: "bare"})
	pinned := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "pinned"}}
	pinned.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "pinned"}}
	pinned.Spec.Template.Labels, pinned.Spec.Template.Spec = pinned.Spec.Selector.MatchLabels, w.podSpec()
	pinned.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: nodes[2]}
	w.create(pinned)
	await(w, "available", &appsv1.Deployment{}, pinned.Name, func(d *appsv1.Deployment) bool { return d.Status.AvailableReplicas == 1 })
	spec := draining(nodes, 3)
	spec.Requires = []v1alpha1.RolloutRequirement{v1alpha1.RequiresRoom, v1alpha1.RequiresNoLoss}
	w.rollOut("empty", spec)

	w.awaitRollout("empty", "one done", func(s *v1alpha1.NodeRolloutStatus) bool { return s.DoneCount == 1 })
	w.awaitRefusals("empty", map[string]string{v1alpha1.RolloutWaitsForLoss: "plan " + nodes[0], v1alpha1.RolloutWaitsForRoom: "plan " + nodes[2]})
	w.assertStaysCordoned(nodes[1])
	w.assertUnschedulable(nodes[0], false)
	w.assertUnschedulable(nodes[2], false)
	w.must("delete the pod", w.client.Delete(w.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "bare"}}))
	w.must("delete the Deployment", w.client.Delete(w.ctx, pinned))
	w.awaitRolloutComplete("empty", v1alpha1.ReasonRolloutComplete)
}
