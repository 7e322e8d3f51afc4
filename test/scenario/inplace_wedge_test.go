package scenario

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/test/cluster"
)

const (
	myApp   = "myapp"
	yourApp = "yourapp"
	// refused is what the API server says about a budget that is used up.
	refused = "Cannot evict pod as it would violate the pod's disruption budget."
)

// The wedge of skip-drain-on-upgrade, in a cluster that has not heard of Ebbtide:
// of two drains each wins one application, and waits for the other for ever. What
// was evicted has nowhere to go.
func TestLongTwoKubectlDrainsWedge(t *testing.T) {
	t.Parallel()
	w := newWorldIn(t, cluster.Spec{Workload: true})
	nodes := w.nodes("one", "two", "three")
	w.replicated(myApp, yourApp)
	third := w.replica(yourApp, nodes[2])
	// While another replica of YourAPP is being restarted, the first drain gets only
	// its replica of MyAPP.
	w.mark(corev1.ConditionFalse, third)
	w.awaitAllowed(yourApp, 0)

	first := w.drain(nodes[0], "12s")
	w.awaitSaid(first, `pods/"`+w.replica(yourApp, nodes[0]).Name+`"`)
	w.mark(corev1.ConditionTrue, third)
	w.awaitAllowed(yourApp, 1)
	second := w.drain(nodes[1], "12s")

	w.assertTimedOut(first, w.replica(yourApp, nodes[0]))
	w.assertTimedOut(second, w.replica(myApp, nodes[1]))
	w.assertRunsOn(myApp, nodes[1:]...)
	w.assertRunsOn(yourApp, nodes[0], nodes[2])
	for _, app := range []string{myApp, yourApp} {
		w.awaitAllowed(app, 0)
	}

	w.cordon(nodes[0], false)
	w.cordon(nodes[1], false)
	w.awaitPods("all as before", readyPods(6))
}

// drain is kubectl drain of a node.
func (w *world) drain(node, timeout string) *cluster.Kubectl {
	w.t.Helper()
	return w.cluster.StartKubectl(w.t, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout="+timeout)
}

// awaitSaid waits until kubectl has printed the words.
func (w *world) awaitSaid(k *cluster.Kubectl, words string) {
	w.t.Helper()
	w.eventually("kubectl to say "+words, func() (bool, any) { return contains(k.Output(), words), k.Output() })
}

// assertTimedOut waits for the end of a drain, and wants it to have waited for this
// pod's budget until its time was up.
func (w *world) assertTimedOut(k *cluster.Kubectl, blocked *corev1.Pod) {
	w.t.Helper()
	output, err := k.Wait()
	if err == nil || !contains(output, "global timeout reached") || !contains(output, refused) || !contains(output, `pods/"`+blocked.Name+`"`) {
		w.t.Errorf("kubectl drain ended with %v, want it to wait for the budget of pod %s until its time is up:\n%s", err, blocked.Name, output)
	}
}

// assertRunsOn wants an application to be ready on these nodes, and its other
// replicas to be nowhere.
func (w *world) assertRunsOn(app string, nodes ...string) {
	w.t.Helper()
	w.awaitPods(app+" on some nodes only", func(pods []corev1.Pod) bool {
		var ready []string
		nowhere := 0
		for i := range pods {
			switch {
			case pods[i].Labels["name"] != app:
			case pods[i].Spec.NodeName == "" && pods[i].Status.Phase == corev1.PodPending:
				nowhere++
			case available(&pods[i]):
				ready = append(ready, pods[i].Spec.NodeName)
			}
		}
		slices.Sort(ready)
		return slices.Equal(ready, slices.Sorted(slices.Values(nodes))) && len(ready)+nowhere == 3
	})
}
