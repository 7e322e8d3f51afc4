package step

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	controller "ebbtide.dev/ebbtide/internal/controller/cluster"
	"ebbtide.dev/ebbtide/internal/eviction"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/internal/workload"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// followClusters runs the controller of Clusters and a registry until the test ends.
func followClusters(t *testing.T, c *cluster.Cluster) *workload.Registry {
	t.Helper()
	scheme, err := sandbox.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	consistent, repeated := true, true
	mgr, err := manager.New(c.Config, manager.Options{
		Scheme: scheme, Cache: kube.CacheOptions(), Metrics: metricsserver.Options{BindAddress: "0"},
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &consistent}},
		// The test may be repeated in one process.
		Controller: config.Controller{SkipNameValidation: &repeated},
	})
	if err != nil {
		t.Fatal(err)
	}
	registry, err := workload.NewRegistry(mgr, workload.Options{
		Dispatcher: eviction.NewDispatcher(eviction.DispatcherOptions{Reader: mgr.GetClient(), Now: time.Now}),
	})
	if err := errors.Join(err, kube.IndexFields(t.Context(), mgr.GetFieldIndexer()), kube.IndexMachines(t.Context(), mgr.GetFieldIndexer()), controller.Add(mgr, registry)); err != nil {
		t.Fatal(err)
	}
	runUntilEnd(t, mgr.Start)
	return registry
}

// awaitOfCluster waits until the status of a condition and its reason are these.
func awaitOfCluster(t *testing.T, c *cluster.Cluster, key types.NamespacedName, kind, want string) *metav1.Condition {
	t.Helper()
	var condition *metav1.Condition
	patience.Eventually(t, kind+" "+want, func(ctx context.Context) (string, bool) {
		stored := &v1alpha1.Cluster{}
		if err := c.Client.Get(ctx, key, stored); err != nil {
			return err.Error(), false
		}
		condition = meta.FindStatusCondition(stored.Status.Conditions, kind)
		return fmt.Sprintf("%+v", stored), condition != nil && string(condition.Status)+"/"+condition.Reason == want
	})
	return condition
}

// A Cluster from its creation to its end, with a connection that is cut.
func TestTheLifeOfACluster(t *testing.T) {
	t.Parallel()
	c := startServer(t)
	registry := followClusters(t, c)
	namespace, proxy := c.Namespace(t), c.Proxy(t)
	key := types.NamespacedName{Namespace: namespace, Name: "east"}
	user := types.NamespacedName{Namespace: namespace, Name: "one"}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "east-kubeconfig"},
		Data:       map[string][]byte{"value": proxy.Kubeconfig(t)},
	}
	if err := c.Client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	c.Apply(t, namespace, lifeOfACluster)
	awaitOfCluster(t, c, key, v1alpha1.ConditionReachable, "Unknown/NotInUse")

	stored := &v1alpha1.Cluster{}
	if err := c.Client.Get(t.Context(), key, stored); err != nil {
		t.Fatal(err)
	}
	_, _ = registry.Use(stored, user)
	awaitOfCluster(t, c, key, v1alpha1.ConditionReachable, "True/Reachable")
	proxy.Cut()
	lost := awaitOfCluster(t, c, key, v1alpha1.ConditionReachable, "False/Unreachable")
	if since := registry.State(key).Since.Truncate(time.Second); !lost.LastTransitionTime.Time.Equal(since) {
		t.Errorf("it is unreachable since %s, but the condition says %s", since, lost.LastTransitionTime)
	}
	proxy.Restore()
	awaitOfCluster(t, c, key, v1alpha1.ConditionReachable, "True/Reachable")

	if err := c.Client.Delete(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	awaitOfCluster(t, c, key, v1alpha1.ConditionDeleting, "True/MachinesLeft")
	if err := c.Client.Delete(t.Context(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}}); err != nil {
		t.Fatal(err)
	}
	patience.Eventually(t, "the end of the Cluster", func(ctx context.Context) (string, bool) {
		err := c.Client.Get(ctx, key, stored)
		return fmt.Sprintf("%+v", stored), apierrors.IsNotFound(err)
	})
}

const lifeOfACluster = `
apiVersion: ebbtide.dev/v1alpha1
kind: Cluster
metadata: {name: east}
spec: {kubeconfigSecretRef: {name: east-kubeconfig}}
---
apiVersion: ebbtide.dev/v1alpha1
kind: Machine
metadata: {name: one}
spec:
  clusterName: east
  infrastructureRef: {apiVersion: infrastructure.example.com/v1, kind: Host, name: one}
`
