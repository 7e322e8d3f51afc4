package step

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/test/patience"
)

// One kind that a manager reads, and does not need for all that it does, is forbidden. What acts
// on other kinds begins all the same, and what acts on this one when it is allowed.
func TestAKindThatCannotBeReadHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	c := startServer(t)
	reads := func(resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"list", "watch"}}
	}
	user, _ := c.User(t, reads("nodes"))
	as := rest.CopyConfig(c.Config)
	as.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	mgr, err := ctrl.NewManager(as, manager.Options{
		Scheme: c.Client.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		NewCache:   kube.NewCacheApart(func(r schema.GroupResource) bool { return r.Resource == "nodes" }),
		Controller: config.Controller{CacheSyncTimeout: time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	nodes, maps := follow(t, mgr, "apart-nodes", &corev1.Node{}), follow(t, mgr, "apart-maps", &corev1.ConfigMap{})
	runUntilEnd(t, mgr.Start)
	for _, object := range []client.Object{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: user}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace(t), Name: user}},
	} {
		if err := c.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Client.Delete(context.WithoutCancel(t.Context()), object) })
	}
	nodes.await(t, user)
	role := &rbacv1.ClusterRole{}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: user}, role); err != nil {
		t.Fatal(err)
	}
	if maps.has(user) {
		t.Error("a ConfigMap was read without the right to")
	}
	role.Rules = append(role.Rules, reads("configmaps"))
	if err := c.Client.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	maps.await(t, user)
}

// followed are the names of objects that a controller was told of.
type followed struct {
	mu    sync.Mutex
	names []string
}

// follow has a manager run a controller of a kind.
func follow(t *testing.T, mgr manager.Manager, name string, kind client.Object) *followed {
	t.Helper()
	f := &followed{}
	note := reconcile.Func(func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.names = append(f.names, r.Name)
		return reconcile.Result{}, nil
	})
	err := kube.AddController(mgr, name, kube.ByNamespace(note, 1),
		[]source.Source{source.Kind(mgr.GetCache(), kind, &handler.EnqueueRequestForObject{})})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *followed) has(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(f.names, name)
}

func (f *followed) await(t *testing.T, name string) {
	t.Helper()
	patience.Eventually(t, "object "+name+" to be reconciled", func(context.Context) (string, bool) { return "nothing", f.has(name) })
}
