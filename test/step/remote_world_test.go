package step

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/eviction"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/workload"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// quick is a pace for tests on the real clock.
var quick = workload.Pace{
	Probe: 200 * time.Millisecond, Answer: 10 * time.Second, Message: asSlow, Sync: asSlow, Stale: asSlow, Idle: 100 * time.Millisecond,
	Retry: wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 3, Cap: 200 * time.Millisecond},
	Hold:  time.Second, LongestHold: 2 * time.Second,
}

// asSlow is how long a cluster has that is only as slow as this machine.
const asSlow = 5 * time.Minute

// usingMachine is a Machine that uses clusters.
var usingMachine = types.NamespacedName{Namespace: "machines", Name: "one"}

// remotes is a registry on a real API server, which is also the one that the
// kubeconfigs of Clusters lead to.
type remotes struct {
	*cluster.Cluster
	manager   manager.Manager
	registry  *workload.Registry
	namespace string
}

// startRemotes sets up a registry and starts it.
func startRemotes(t *testing.T, options workload.Options) *remotes {
	t.Helper()
	w := newRemotes(t, options)
	w.start(t)
	return w
}

// newRemotes sets up a registry that is not started.
func newRemotes(t *testing.T, options workload.Options) *remotes {
	t.Helper()
	w := &remotes{Cluster: startServer(t)}
	w.namespace = w.Namespace(t)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	mgr, err := manager.New(w.Config, manager.Options{
		Scheme: scheme, Cache: kube.CacheOptions(), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatalf("make a manager: %v", err)
	}
	if err := errors.Join(kube.IndexFields(t.Context(), mgr.GetFieldIndexer()), kube.IndexMachines(t.Context(), mgr.GetFieldIndexer())); err != nil {
		t.Fatal(err)
	}
	w.manager = mgr
	options.Dispatcher = w.dispatcher(t, options.Clock)
	if w.registry, err = workload.NewRegistry(mgr, options); err != nil {
		t.Fatal(err)
	}
	return w
}

// dispatcher is told of the disruption budgets, as the controller of Evacuations does it.
func (w *remotes) dispatcher(t *testing.T, clock clock.WithTickerAndDelayedExecution) *eviction.Dispatcher {
	t.Helper()
	d := eviction.NewDispatcher(eviction.DispatcherOptions{Reader: w.manager.GetClient(), Now: time.Now, Clock: clock})
	informer, err := w.manager.GetCache().GetInformer(t.Context(), &policyv1.PodDisruptionBudget{}, cache.BlockUntilSynced(false))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(old, now any) {
			d.BudgetChanged(old.(*policyv1.PodDisruptionBudget), now.(*policyv1.PodDisruptionBudget))
		},
	}); err != nil {
		t.Fatal(err)
	}
	return d
}

// start runs the registry until the test ends, without its manager.
func (w *remotes) start(t *testing.T) {
	t.Helper()
	runUntilEnd(t, w.registry.Start)
}

// runUntilEnd runs something until the test ends, and waits for its end.
func runUntilEnd(t *testing.T, start func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("ended with: %v", err)
		}
	})
}

// secret stores a kubeconfig.
func (w *remotes) secret(t *testing.T, name string, data map[string][]byte) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	if err := client.IgnoreNotFound(w.Client.Delete(t.Context(), secret)); err != nil {
		t.Fatalf("delete the Secret: %v", err)
	}
	secret.Data = data
	if err := w.Client.Create(t.Context(), secret); err != nil {
		t.Fatalf("create the Secret: %v", err)
	}
}

// remote is a Cluster with this kubeconfig. It is not stored: nobody reads it.
func (w *remotes) remote(t *testing.T, name string, kubeconfig []byte) *v1alpha1.Cluster {
	t.Helper()
	w.secret(t, name, map[string][]byte{"value": kubeconfig})
	return w.named(name, name)
}

// named is a Cluster whose kubeconfig is in the Secret of this name.
func (w *remotes) named(name, secret string) *v1alpha1.Cluster {
	return &v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec:       v1alpha1.ClusterSpec{KubeconfigSecretRef: &v1alpha1.SecretKeyReference{Name: secret}},
	}
}

// kubeconfig is the administrator's, changed.
func (w *remotes) kubeconfig(t *testing.T, change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) []byte {
	t.Helper()
	config, err := clientcmd.LoadFromFile(w.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	at := config.Contexts[config.CurrentContext]
	change(config.Clusters[at.Cluster], config.AuthInfos[at.AuthInfo])
	content, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// connect waits for the connection.
func (w *remotes) connect(t *testing.T, c *v1alpha1.Cluster) *workload.Connection {
	t.Helper()
	var connection *workload.Connection
	patience.Eventually(t, "the connection", func(context.Context) (string, bool) {
		var err error
		connection, err = w.registry.Use(c, usingMachine)
		if err != nil {
			return err.Error(), false
		}
		return "connected", true
	})
	return connection
}

// awaitReason waits until the state of a cluster has a reason, and returns it.
func (w *remotes) awaitReason(t *testing.T, c *v1alpha1.Cluster, reason string) workload.State {
	t.Helper()
	var state workload.State
	patience.Eventually(t, "reason "+reason, func(context.Context) (string, bool) {
		state = w.registry.State(client.ObjectKeyFromObject(c))
		return state.Reason + ": " + state.Message, state.Reason == reason
	})
	return state
}
