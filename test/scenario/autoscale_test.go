package scenario

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// perPod is the load that one pod bears.
const perPod = 100 << 20

// autoscale has Kubernetes keep as many pods of a Deployment as its load needs.
// One look at a moment in between does not count, as with every autoscaler in earnest.
func (w *world) autoscale(name string, most int32) {
	w.t.Helper()
	settled := &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32(3))}
	w.create(&autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			MinReplicas:    new(int32(1)), MaxReplicas: most,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceMemory,
				Target: autoscalingv2.MetricTarget{
					Type: autoscalingv2.AverageValueMetricType, AverageValue: resource.NewQuantity(perPod, resource.BinarySI),
				},
			}}},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: settled, ScaleDown: settled},
		},
	})
}

// awaitScaled waits until the autoscaler has come to so many replicas, by the
// metrics and not for want of them.
func (w *world) awaitScaled(name string, replicas int32) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%s is scaled to %d", name, replicas), func() (bool, any) {
		autoscaler, d := &autoscalingv2.HorizontalPodAutoscaler{}, &appsv1.Deployment{}
		w.get(autoscaler, name)
		w.get(d, name)
		active := slices.ContainsFunc(autoscaler.Status.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
			return c.Type == autoscalingv2.ScalingActive && c.Status == corev1.ConditionTrue
		})
		return active && *d.Spec.Replicas == replicas && autoscaler.Status.DesiredReplicas == replicas, autoscaler.Status
	})
}

// watchReplicas collects how many replicas a Deployment gets from now on, and who
// writes that. The result ends it.
func (w *world) watchReplicas(name string) func() []string {
	w.t.Helper()
	list, only := &appsv1.DeploymentList{}, []client.ListOption{client.InNamespace(w.ns), client.MatchingFields{"metadata.name": name}}
	w.must("list Deployments", w.client.List(w.ctx, list, only...))
	history := []string{writtenReplicas(&list.Items[0])}
	follower := w.cluster.Follow(w.t, list, func(_ watch.EventType, object client.Object) {
		if d, ok := object.(*appsv1.Deployment); ok {
			history = append(history, writtenReplicas(d))
		}
	}, only...)
	return func() []string {
		follower.Stop(w.t)
		return slices.Compact(history)[1:]
	}
}

// writtenReplicas are those that a Deployment is to have, and whose word that is.
func writtenReplicas(d *appsv1.Deployment) string {
	var writers []string
	for _, entry := range d.ManagedFields {
		if entry.Subresource != "status" && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:replicas"`) {
			writers = append(writers, entry.Manager)
		}
	}
	return fmt.Sprintf("%d by %s", *d.Spec.Replicas, strings.Join(writers, ", "))
}

// awaitPending waits until there are so many pods of which one is detached and one,
// its replacement, waits for a node.
func (w *world) awaitPending(count int) {
	w.t.Helper()
	w.awaitPods(fmt.Sprintf("%d pods, one detached and one without a node", count), func(pods []corev1.Pod) bool {
		detached := slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Annotations[v1alpha1.SurgeAnnotation] != "" })
		pending := slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Spec.NodeName == "" })
		return detached && pending && len(pods) == count
	})
}

// An application under an autoscaler has one pod while little is to be done, so no
// budget could protect it without holding up every drain. It is drained while it is
// scaled up, and drained again while it is scaled down. It always serves with the
// pods that the load needs, and nobody but the autoscaler writes its replicas: it
// is not led astray by the pod that serves beside its ReplicaSet.
func TestLongAnAutoscaledApplicationIsDrainedWhileItScales(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes, letNew := w.oldAndNew()
	load := w.cluster.ServeLoad(t, w.ns)
	load.Set(perPod)
	w.serve(app{name: "web", replicas: 1, ready: "500ms"})
	w.autoscale("web", 5)
	w.awaitScaled("web", 1)
	always := w.cluster.WatchEndpoints(t, w.key("web"))
	replicas := w.watchReplicas("web")

	w.maintain("first", v1alpha1.StageDrain, nodes[:1]) // No node takes a replacement yet.
	w.awaitPending(2)
	load.Set(3 * perPod)
	w.awaitScaled("web", 3)
	w.assertNotDrained("first")
	letNew()
	w.awaitDrained("first")
	w.awaitServing(app{name: "web", replicas: 3})
	w.awaitClean(3)

	busy := w.cluster.WatchEndpoints(t, w.key("web"))
	w.setStage("first", v1alpha1.StageComplete)
	w.awaitHolders(nodes[0])
	w.cordon(nodes[0], true)
	w.maintain("second", v1alpha1.StageDrain, nodes[1:])
	w.awaitPending(4)
	busy.AssertAtLeast(t, 3)
	load.Set(perPod)
	w.awaitScaled("web", 1)
	w.awaitPending(2)
	w.assertNotDrained("second")
	w.cordon(nodes[0], false)
	w.awaitDrained("second")
	w.awaitServing(app{name: "web", replicas: 1})
	w.awaitClean(1)

	w.awaitScaled("web", 1)
	always.AssertAtLeast(t, 1)
	const autoscaler = "kube-controller-manager"
	if diff := cmp.Diff([]string{"3 by " + autoscaler, "1 by " + autoscaler}, replicas()); diff != "" {
		t.Errorf("replicas were written (-want +got):\n%s", diff)
	}
}
