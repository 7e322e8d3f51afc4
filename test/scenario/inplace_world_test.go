package scenario

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox"
)

// replicas is how many pods an application has whose pods stay.
const replicas = 3

// staying is an application of three replicas that keep their data on their
// nodes: no two share one, and each stays on it.
const staying = `
apiVersion: apps/v1
kind: %[2]s
metadata: {name: %[1]s}
spec:
  replicas: 3
  %[3]s
  selector: {matchLabels: {name: %[1]s}}
  template:
    metadata:
      labels: {name: %[1]s, ebbtide.dev/on-upgrade: stay}
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 0
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector: {matchLabels: {name: %[1]s}}
      containers: [{name: app, image: app}]
`

// replicated creates such applications, each under a budget of one, and waits
// until all their pods are ready and counted.
func (w *world) replicated(apps ...string) {
	w.t.Helper()
	w.replicatedAs("StatefulSet", "podManagementPolicy: Parallel", apps...)
}

// replicatedAs is replicated for another kind, with a line of its own.
func (w *world) replicatedAs(kind, line string, apps ...string) {
	w.t.Helper()
	for _, app := range apps {
		w.cluster.Apply(w.t, w.ns, fmt.Sprintf(staying, app, kind, line))
		w.budget(app, 1)
	}
	for _, app := range apps {
		w.awaitAllowed(app, 1)
	}
}

// replica is the pod of an application on a node; nil if there is none.
func (w *world) replica(app, node string) *corev1.Pod {
	w.t.Helper()
	list := &corev1.PodList{}
	w.must("list pods", w.client.List(w.ctx, list, client.InNamespace(w.ns), client.MatchingLabels{"name": app}))
	for i := range list.Items {
		if list.Items[i].Spec.NodeName == node {
			return &list.Items[i]
		}
	}
	return nil
}

// mark makes pods ready or not, as their kubelet does.
func (w *world) mark(status corev1.ConditionStatus, pods ...*corev1.Pod) {
	w.t.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%[1]q},{"type":"ContainersReady","status":%[1]q}]}}`, status)
	for _, pod := range pods {
		err := w.client.Status().Patch(w.ctx, pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(patch)))
		w.must("mark "+pod.Name, client.IgnoreNotFound(err))
	}
}

// goDown is the first half of a reboot: nobody hears of the node any more, and its
// pods are not ready.
func (w *world) goDown(node string) {
	w.t.Helper()
	w.must("stop the node", sandbox.StopNode(w.ctx, w.client, node))
	w.mark(corev1.ConditionFalse, w.podsOn(node)...)
}

// boot is the second half: the node is ready again, and its pods are not yet.
func (w *world) boot(node string) {
	w.t.Helper()
	n := &corev1.Node{}
	w.must("get the node", w.client.Get(w.ctx, client.ObjectKey{Name: node}, n))
	booted := fmt.Sprintf(`{"status":{"nodeInfo":{"bootID":%q}}}`, "boot-"+n.ResourceVersion)
	w.must("boot the node", w.client.Status().Patch(w.ctx, n, client.RawPatch(types.MergePatchType, []byte(booted))))
	w.change(n, node, func() { n.Annotations[sandbox.NodeAnnotation] = "fake" })
	w.awaitNode(node, "ready", func(n *corev1.Node) bool { return nodeReady(n) == corev1.ConditionTrue })
	w.awaitBootSeen(node, n.Status.NodeInfo.BootID)
}

// awaitBootSeen waits until the manager has seen a boot of a node, if it is to look for
// one: what pods show at the same moment would be believed two minutes later only.
func (w *world) awaitBootSeen(node, boot string) {
	w.t.Helper()
	record := &v1alpha1.DrainRecord{}
	if err := w.client.Get(w.ctx, client.ObjectKey{Name: node}, record); err != nil || record.Status.Boots == nil || record.Status.Boots.ReturnedTime != nil {
		return // Nobody waits for it.
	}
	await(w, "record that has seen boot "+boot, record, node, func(r *v1alpha1.DrainRecord) bool { return r.Status.Boots.BootID == boot })
}

// recover starts the pods of a node, and makes them ready.
func (w *world) recover(node string) {
	w.t.Helper()
	w.start(w.podsOn(node)...)
}

// start gives pods new containers and makes them ready, as their kubelet does.
func (w *world) start(pods ...*corev1.Pod) {
	w.t.Helper()
	for _, pod := range pods {
		started := fmt.Sprintf(`{"status":{"containerStatuses":[{"name":"app","containerID":"fake://%s"}]}}`, pod.ResourceVersion)
		err := w.client.Status().Patch(w.ctx, pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(started)))
		w.must("start "+pod.Name, client.IgnoreNotFound(err))
	}
	w.mark(corev1.ConditionTrue, pods...)
}

// sayBack is a person who knows that a node is back, or was never away.
func (w *world) sayBack(nodes ...string) {
	w.t.Helper()
	for _, node := range nodes {
		record := &v1alpha1.DrainRecord{}
		record.Name = node
		word := fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, v1alpha1.BackAnnotation)
		w.must("say that the node is back", w.client.Patch(w.ctx, record, client.RawPatch(types.MergePatchType, []byte(word))))
	}
}

func (w *world) podsOn(node string) []*corev1.Pod {
	w.t.Helper()
	list := &corev1.PodList{}
	w.must("list pods", w.client.List(w.ctx, list, client.InNamespace(w.ns)))
	var pods []*corev1.Pod
	for i := range list.Items {
		if list.Items[i].Spec.NodeName == node {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods
}

// awaitAllowed waits until a budget, counted by Kubernetes, allows so many
// disruptions.
func (w *world) awaitAllowed(budget string, disruptions int32) {
	w.t.Helper()
	await(w, fmt.Sprintf("%d disruptions allowed", disruptions), &policyv1.PodDisruptionBudget{}, budget, func(b *policyv1.PodDisruptionBudget) bool {
		return b.Status.ObservedGeneration == b.Generation && b.Status.ExpectedPods == replicas && b.Status.DisruptionsAllowed == disruptions
	})
}
