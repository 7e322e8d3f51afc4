package step

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/controller/nodemaintenance"
	"ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// server is a real API server and a manager on it that has the controller of
// NodeMaintenances and no other.
type server struct {
	t       *testing.T
	cluster *cluster.Cluster
	api     client.Client
	// prefix makes names this test's own.
	prefix string
}

// maintain runs the controller, with these bridges, until the test ends. It acts on all
// nodes under maintenance, also on those of other tests.
func maintain(t *testing.T, bridges bridge.Names) *server {
	t.Helper()
	c := startServer(t)
	s := &server{t: t, cluster: c, api: c.Client, prefix: c.Pool()}
	skew, reached := kube.NewSkew(), rest.CopyConfig(c.Config)
	skew.Measure(reached)
	consistent, repeated := true, true
	mgr, err := manager.New(reached, manager.Options{
		Scheme: c.Client.Scheme(), Cache: kube.CacheOptions(), Metrics: metricsserver.Options{BindAddress: "0"},
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &consistent}},
		// There is one for each test.
		Controller: config.Controller{SkipNameValidation: &repeated},
	})
	s.must("make the manager", err)
	s.must("index its cache", kube.IndexFields(t.Context(), mgr.GetFieldIndexer()))
	s.must("add the controller", nodemaintenance.Add(mgr, nodemaintenance.Options{
		Namespace: cluster.Account.Namespace, Skew: skew, Bridges: bridges,
	}))
	runUntilEnd(t, mgr.Start)
	return s
}

func (s *server) ctx() context.Context { return s.t.Context() }

func (s *server) must(what string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// until waits until the world is as wanted.
func (s *server) until(what string, reached func() (saw string, ok bool)) {
	s.t.Helper()
	patience.Eventually(s.t, what, func(context.Context) (string, bool) { return reached() })
}

// drainOf drains the nodes of a pool, and has its name.
func drainOf(pool string) *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: pool},
		Spec: v1alpha1.NodeMaintenanceSpec{
			Stage: v1alpha1.StageDrain,
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{pool}}},
			}}},
		},
	}
}

// node creates a node of a pool.
func (s *server) node(suffix, pool string) *corev1.Node {
	s.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.prefix + suffix, Labels: map[string]string{"pool": pool}}}
	s.must("create the node", s.api.Create(s.ctx(), node))
	return node
}

// pod creates a pod on a node.
func (s *server) pod(node *corev1.Node) *corev1.Pod {
	s.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: s.prefix + "-pod", Labels: map[string]string{"app": "shop"}},
		Spec:       corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{{Name: "shop", Image: "shop"}}},
	}
	s.must("create the pod", s.api.Create(s.ctx(), pod))
	return pod
}

// drain creates a maintenance that drains a pool.
func (s *server) drain(pool string) *v1alpha1.NodeMaintenance {
	s.t.Helper()
	upgrade := drainOf(pool)
	s.must("create the maintenance", s.api.Create(s.ctx(), upgrade))
	return upgrade
}

// awaitDrained waits until a maintenance is drained, whatever happens meanwhile.
func (s *server) awaitDrained(upgrade *v1alpha1.NodeMaintenance, meanwhile func()) {
	s.t.Helper()
	s.until(upgrade.Name+" to be drained", func() (string, bool) {
		meanwhile()
		s.read(upgrade)
		return upgrade.Status.Summary, meta.IsStatusConditionTrue(upgrade.Status.Conditions, v1alpha1.ConditionDrained)
	})
}

func (s *server) complete(upgrade *v1alpha1.NodeMaintenance) {
	s.t.Helper()
	s.change("complete the maintenance", upgrade, func() { upgrade.Spec.Stage = v1alpha1.StageComplete })
}

func (s *server) read(object client.Object) {
	s.t.Helper()
	s.must("get "+object.GetName(), s.api.Get(s.ctx(), client.ObjectKeyFromObject(object), object))
}

// change changes an object, also one that the managers of other tests write just then.
func (s *server) change(what string, object client.Object, edit func()) {
	s.t.Helper()
	s.must(what, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		s.read(object)
		edit()
		return s.api.Update(s.ctx(), object)
	}))
}

func (s *server) evacuationsOf(pod *corev1.Pod) []v1alpha1.Evacuation {
	s.t.Helper()
	var all v1alpha1.EvacuationList
	s.must("list evacuations", s.api.List(s.ctx(), &all, client.InNamespace(pod.Namespace)))
	var found []v1alpha1.Evacuation
	for i := range all.Items {
		if all.Items[i].Spec.PodRef.UID == pod.UID {
			found = append(found, all.Items[i])
		}
	}
	return found
}

// evacuate does what the evacuation controller does.
func (s *server) evacuate(pod *corev1.Pod) {
	s.t.Helper()
	s.must("delete the pod", s.api.Delete(s.ctx(), pod, client.GracePeriodSeconds(0)))
	for _, evacuation := range s.evacuationsOf(pod) {
		if _, err := kube.RemoveFinalizer(s.ctx(), s.api, &evacuation, v1alpha1.NodeMaintenanceInstigator); err != nil {
			s.t.Fatalf("release the evacuation: %v", err)
		}
		s.must("delete the evacuation", client.IgnoreNotFound(s.api.Delete(s.ctx(), &evacuation)))
	}
}
