package workload

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/drainrule"
	"ebbtide.dev/ebbtide/internal/kube"
)

// Find reads an object and reports whether it exists. If the cache has none, the API server decides.
func (c *Connection) Find(ctx context.Context, key types.NamespacedName, object client.Object) (found bool, err error) {
	return kube.Find(ctx, c.Client, c.Live, key, object)
}

// Pods returns the pods of a node, which must not be changed. From is Client or Live.
func (c *Connection) Pods(ctx context.Context, from client.Reader, node string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := from.List(ctx, &pods, client.MatchingFields{kube.PodNodeField: node}, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
		return nil, fmt.Errorf("list the pods of node %s: %w", node, err)
	}
	return pods.Items, nil
}

// Facts reads the namespaces and the DaemonSets of pods.
func (c *Connection) Facts(ctx context.Context, pods []corev1.Pod) drainrule.Facts {
	facts := drainrule.Facts{
		Namespaces: map[string]map[string]string{}, NamespaceErrors: map[string]string{},
		DaemonSets: map[types.NamespacedName]types.UID{}, DaemonSetErrors: map[types.NamespacedName]string{},
	}
	for i := range pods {
		c.addNamespace(ctx, pods[i].Namespace, &facts)
		if owner := metav1.GetControllerOfNoCopy(&pods[i]); owner != nil && owner.Kind == "DaemonSet" {
			c.addDaemonSet(ctx, types.NamespacedName{Namespace: pods[i].Namespace, Name: owner.Name}, &facts)
		}
	}
	return facts
}

func (c *Connection) addNamespace(ctx context.Context, name string, facts *drainrule.Facts) {
	if _, known := facts.Namespaces[name]; known || facts.NamespaceErrors[name] != "" {
		return
	}
	namespace := &corev1.Namespace{}
	switch found, err := c.Find(ctx, types.NamespacedName{Name: name}, namespace); {
	case err != nil:
		facts.NamespaceErrors[name] = err.Error()
	case found:
		facts.Namespaces[name] = namespace.Labels
	}
}

func (c *Connection) addDaemonSet(ctx context.Context, key types.NamespacedName, facts *drainrule.Facts) {
	if _, known := facts.DaemonSets[key]; known || facts.DaemonSetErrors[key] != "" {
		return
	}
	set := &appsv1.DaemonSet{}
	switch found, err := c.Find(ctx, key, set); {
	case err != nil:
		facts.DaemonSetErrors[key] = err.Error()
	case found:
		facts.DaemonSets[key] = set.UID
	}
}
