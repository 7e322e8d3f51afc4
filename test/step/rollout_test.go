package step

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/controller/rollout"
	"ebbtide.dev/ebbtide/internal/kube"
)

// A manager that is ahead of the CRDs runs without NodeRollouts, and begins with them when their CRD
// is installed.
func TestRolloutsBeginWithTheirKind(t *testing.T) {
	t.Parallel()
	c := startServer(t)
	s := &server{t: t, cluster: c, api: c.Client, prefix: c.Pool()}
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	s.must("get the CRD", s.api.Get(s.ctx(), client.ObjectKey{Name: "noderollouts.ebbtide.dev"}, crd))
	s.must("delete the CRD", s.api.Delete(s.ctx(), crd.DeepCopy()))
	s.until("the CRD is gone", func() (string, bool) {
		err := s.api.Get(s.ctx(), client.ObjectKeyFromObject(crd), crd.DeepCopy())
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
	served := s.rollOut()
	s.until("the kind is known not to be served", func() (string, bool) {
		is, known := served.Asked()
		return fmt.Sprint(is, known), known && !is
	})

	crd.SetResourceVersion("")
	crd.SetUID("")
	unstructured.RemoveNestedField(crd.Object, "status")
	s.must("install the CRD", s.api.Create(s.ctx(), crd))
	node := s.node("one", s.prefix)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	s.must("report the node", s.api.Status().Update(s.ctx(), node))
	s.until("a rollout is accepted", func() (string, bool) {
		err := s.api.Create(s.ctx(), &v1alpha1.NodeRollout{
			ObjectMeta: metav1.ObjectMeta{Name: s.prefix},
			Spec:       v1alpha1.NodeRolloutSpec{NodeSelector: drainOf(s.prefix).Spec.NodeSelector, After: v1alpha1.AfterStayDrained},
		})
		return fmt.Sprint(err), err == nil
	})
	s.until("its node starts", func() (string, bool) {
		var list v1alpha1.NodeMaintenanceList
		err := s.api.List(s.ctx(), &list, client.MatchingLabels{v1alpha1.RolloutLabel: s.prefix})
		return fmt.Sprint(len(list.Items), err), len(list.Items) == 1
	})
}

// rollOut runs the controller of NodeRollouts until the test ends.
func (s *server) rollOut() *kube.Served {
	s.t.Helper()
	skew, reached := kube.NewSkew(), rest.CopyConfig(s.cluster.Config)
	skew.Measure(reached)
	repeated := true
	mgr, err := manager.New(reached, manager.Options{
		Scheme: s.cluster.Client.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, Cache: kube.CacheOptions(),
		NewCache:   kube.NewCacheApart(func(r schema.GroupResource) bool { return r.Resource != "noderollouts" && r.Resource != "nodebudgets" }),
		Controller: config.Controller{SkipNameValidation: &repeated},
	})
	s.must("make the manager", err)
	served, err := kube.NewServed(mgr, rollout.API())
	s.must("ask for the kind", err)
	rollout.Add(mgr, rollout.Options{Served: served, Skew: skew})
	runUntilEnd(s.t, mgr.Start)
	return served
}
