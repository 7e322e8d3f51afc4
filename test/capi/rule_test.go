package capi

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// reachable lets Ebbtide at the cluster of prod, by its kubeconfig.
func (w *world) reachable() {
	w.t.Helper()
	w.bindKubeconfigs()
	w.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "prod-kubeconfig"}, Data: map[string][]byte{"value": w.kubeconfigOf()},
	})
}

// skip is a rule by which a pod stays on its node.
func (w *world) skip(group, pod string) *unstructured.Unstructured {
	w.t.Helper()
	return w.c.Apply(w.t, w.ns, fmt.Sprintf(`
apiVersion: %s
kind: MachineDrainRule
metadata: {name: %s}
spec:
  drain: {behavior: Skip}
  pods: [{selector: {matchLabels: {app: %s}}}]
`, group, pod, pod))[0]
}

// A rule is made in the middle of a drain, of Cluster API's kind or of ours, here or for a node
// of another cluster: it is obeyed at once.
func TestLongARuleThatComesInTheMiddleOfADrain(t *testing.T) {
	w, _ := bareWorld(t)
	w.reachable()
	for _, of := range []struct{ name, group, owner string }{
		{"here", "cluster.x-k8s.io/v1beta2", ""},
		{"here-ours", "ebbtide.dev/v1alpha1", ""},
		{"there", "cluster.x-k8s.io/v1beta2", "nobody"},
		{"there-ours", "ebbtide.dev/v1alpha1", "nobody"},
	} {
		owner := of.owner
		if owner == "" {
			owner = of.name
		}
		node := w.bareNode(w.ns+"-"+of.name, "sandbox:///"+of.name, w.ns, owner)
		w.stuckPod(node.Name)
		machine := newMachine(w.ns, of.name, "sandbox:///"+of.name)
		w.create(machine)
		w.waitsAtHooks(w.c.Client, machine, node.Name)
		w.awaitEvent(machine, v1alpha1.EventBridgeDraining, "1 pod left")
		if of.owner != "" {
			w.awaitShown(machine, v1alpha1.EventBridgeDraining, "1 pod left on "+node.Name, w.ns+"/"+node.Name, "disruption budget "+node.Name)
		}
		w.delete(w.skip(of.group, "of-another-app"))
		w.delete(w.ruled(machine, of.group, node.Name))
		w.letGoOf(machine)
		w.delete(node)
		w.awaitNoMaintenance(of.name)
	}
}

// ruled waits until a Machine goes on because of a rule.
func (w *world) ruled(machine *unstructured.Unstructured, group, pod string) *unstructured.Unstructured {
	w.t.Helper()
	rule := w.skip(group, pod)
	w.awaitEvent(machine, v1alpha1.EventBridgeDone, "is drained; the hook is removed")
	return rule
}
