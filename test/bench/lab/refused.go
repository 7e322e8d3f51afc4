package lab

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// refusing is the namespace of the pods whose Evacuations are refused.
func (load *Load) refusing() string { return load.Namespace + "-refused" }

// addRefused fills the first nodes with pods that can never go.
func (l *Lab) addRefused(ctx context.Context, load *Load) error {
	if load.work.Refused == 0 {
		return nil
	}
	if err := l.createNamespace(ctx, load.refusing()); err != nil {
		return err
	}
	if err := l.addWebhook(ctx, load); err != nil {
		return err
	}
	pods := load.refusedPods()
	add := func() error { return create(ctx, l.Client, pods...) }
	if load.work.Slow == SlowSurges {
		add = func() error { return create(ctx, l.Client, load.surging(pods)...) }
	}
	if err := add(); err != nil {
		return err
	}
	return l.until(ctx, "refused pods to run", func(ctx context.Context) (bool, error) {
		there := &corev1.PodList{}
		err := l.Client.List(ctx, there, client.InNamespace(load.refusing()))
		waits := func(pod corev1.Pod) bool { return pod.Status.Phase != corev1.PodRunning }
		return len(there.Items) == len(pods) && !slices.ContainsFunc(there.Items, waits), err
	})
}

// surging has a Deployment for each pod, which surges.
func (load *Load) surging(pods []*corev1.Pod) []*appsv1.Deployment {
	var all []*appsv1.Deployment
	for _, pod := range pods {
		one := load.deployment(app{name: pod.Name, replicas: 1, surge: 1})
		one.Namespace = pod.Namespace
		one.Spec.Template.Spec = pod.Spec
		all = append(all, one)
	}
	return all
}

// refusedPods lie on the first twenty of the nodes by name: a drain that begins
// there and does not get on harms all nodes after them.
func (load *Load) refusedPods() []*corev1.Pod {
	nodes := slices.Sorted(slices.Values(load.Nodes))
	nodes = nodes[:min(20, len(nodes))]
	var pods []*corev1.Pod
	for n := range load.work.Refused {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: load.refusing(), Name: fmt.Sprintf("refused-%d", n+1)},
			Spec:       podSpec(),
		}
		pod.Spec.NodeName = nodes[n%len(nodes)]
		pods = append(pods, pod)
	}
	return pods
}
