package scenario

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// A node is away when its DrainRecord is deleted, and its budget is deleted and made anew.
// It keeps its place by the promise on the Node: no other node goes before it is back.
func TestWhatIsDeletedWhileANodeIsAwayLetsNoOtherNodeGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two", "three")
	w.replicated(myApp)
	outages := w.watchOutages(myApp)
	w.maintainInPlace("upgrade", minutes, nodes[0], nodes[1])
	away := w.awaitAnnounced(nodes)
	other := nodes[0]
	if other == away {
		other = nodes[1]
	}
	w.goDown(away)
	w.awaitAllowed(myApp, 0)

	record := &v1alpha1.DrainRecord{}
	w.get(record, away)
	was := record.UID
	w.must("delete the record", w.client.Delete(w.ctx, record))
	await(w, "another record that knows of the promise", &v1alpha1.DrainRecord{}, away, func(r *v1alpha1.DrainRecord) bool {
		return r.UID != was && r.Status.Boots != nil
	})
	// Under another name, as by another release of its chart, and back.
	w.remakeBudget(myApp, myApp+"-again")
	w.remakeBudget(myApp+"-again", myApp)
	await(w, "a node that waits", &v1alpha1.DrainRecord{}, other, func(r *v1alpha1.DrainRecord) bool {
		b := &policyv1.PodDisruptionBudget{}
		w.get(b, myApp)
		c := apimeta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionLocked)
		return c != nil && len(r.Spec.Budgets) == 1 && r.Spec.Budgets[0].UID == b.UID && c.Status == metav1.ConditionFalse &&
			(c.Reason == v1alpha1.ReasonWaitingForNode || c.Reason == v1alpha1.ReasonWaitingForBudget)
	})
	w.boot(away)
	w.recover(away)
	w.awaitState("upgrade", away, v1alpha1.NodeStateReturned)
	w.awaitNode(other, "Drained", func(n *corev1.Node) bool {
		return n.Annotations[v1alpha1.RebootPromiseAnnotation] != "" && isDrained(n)
	})
	w.rebootOnly(other)
	w.awaitDrained("upgrade")
	w.setStage("upgrade", v1alpha1.StageComplete)
	w.awaitNothingLocked(nodes...)
	outages.assertOneAtATime()
}

// remakeBudget deletes a budget and creates it again under a name, as when an application is
// applied again.
func (w *world) remakeBudget(name, again string) {
	w.t.Helper()
	b := &policyv1.PodDisruptionBudget{}
	w.get(b, name)
	w.must("delete the budget", w.client.Delete(w.ctx, b, client.GracePeriodSeconds(0)))
	w.must("make the budget anew", w.client.Create(w.ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: again}, Spec: b.Spec,
	}))
}
