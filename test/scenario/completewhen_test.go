package scenario

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// An administrator says in advance when the work is done. The node is drained, somebody
// who waits for its label upgrades and reboots it, and it takes pods again without anybody
// else: not before it runs what is wanted.
func TestAMaintenanceEndsByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.nodes("one")[0]
	w.pods(node, pod{name: "web"})
	w.reports(node, "v1.36.4")
	w.maintainUntil("upgrade", node, v1alpha1.CompleteWhen{NewBoot: true, KubeletVersion: ">=1.37.0", ReadySeconds: new(int32(2))}, nil)

	w.awaitHandedOver(node, "upgrade")
	w.awaitGone("web")
	w.awaitDrained("upgrade")
	w.awaitReturned("upgrade", v1alpha1.ReasonWaitingForBoot, node+" has not booted, a new boot is wanted; it was handed over at ")
	w.goDown(node)
	w.boot(node)
	w.awaitReturned("upgrade", v1alpha1.ReasonWaitingForVersion, node+" runs kubelet v1.36.4, >=1.37.0 is wanted; it was handed over at ")
	w.assertStaysCordoned(node)
	w.reports(node, "v1.37.1")

	w.awaitMaintenance("upgrade", "complete by itself", func(m *v1alpha1.NodeMaintenance) bool {
		return m.Spec.Stage == v1alpha1.StageComplete && apimeta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionReturned) &&
			apimeta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionSucceeded)
	})
	w.awaitEvent("upgrade", v1alpha1.EventCompletedByItself)
	w.awaitHandedOver(node)
	w.awaitHolders(node)
	w.assertUnschedulable(node, false)
}

// maintainUntil drains a node until it has come back.
func (w *world) maintainUntil(name, node string, when v1alpha1.CompleteWhen, inPlace *v1alpha1.InPlace) {
	w.t.Helper()
	m := w.planned(name, v1alpha1.StageDrain, corev1.NodeSelectorRequirement{}, nil)
	m.Spec.NodeSelector.NodeSelectorTerms = []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
	}}
	m.Spec.CompleteWhen, m.Spec.InPlace = &when, inPlace
	w.create(m)
	w.t.Cleanup(func() { w.forget(name) })
}

// reports has the kubelet of a node say which version it is.
func (w *world) reports(node, kubelet string) {
	w.t.Helper()
	version := fmt.Sprintf(`{"status":{"nodeInfo":{"kubeletVersion":%q}}}`, kubelet)
	n := &corev1.Node{}
	n.Name = node
	w.must("report a version", w.client.Status().Patch(w.ctx, n, client.RawPatch(types.MergePatchType, []byte(version))))
}

// awaitHandedOver waits until a node says that it is handed over for these maintenances;
// none is that it does not.
func (w *world) awaitHandedOver(node string, maintenances ...string) {
	w.t.Helper()
	var names []string
	for _, one := range maintenances {
		names = append(names, w.name(one))
	}
	by := strings.Join(names, ",")
	w.awaitNode(node, "handed over by "+by, func(n *corev1.Node) bool {
		_, labelled := n.Labels[v1alpha1.HandedOverLabel]
		return labelled == (by != "") && n.Annotations[v1alpha1.HandedOverByAnnotation] == by
	})
}

// awaitReturned waits until a maintenance says why its node has not come back.
func (w *world) awaitReturned(maintenance, reason, words string) {
	w.t.Helper()
	w.awaitMaintenance(maintenance, reason+": "+words, func(m *v1alpha1.NodeMaintenance) bool {
		c := apimeta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReturned)
		return c != nil && c.Status == "False" && c.Reason == reason && strings.HasPrefix(c.Message, words)
	})
}
