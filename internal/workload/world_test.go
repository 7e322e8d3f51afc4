package workload

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// soon bounds what waits for no other time than that of a loaded machine.
const soon = time.Minute

// quick is a pace for tests on the real clock.
var quick = pace{
	probe: 200 * time.Millisecond, answer: 3 * time.Second, sync: soon, stale: soon, idle: 100 * time.Millisecond,
	retry: wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 3, Cap: 200 * time.Millisecond},
	hold:  time.Second, longestHold: 2 * time.Second,
}

// user is a Machine that uses clusters.
var user = types.NamespacedName{Namespace: "machines", Name: "one"}

// world is a registry on a real API server, which is also the one that the
// kubeconfigs of Clusters lead to.
type world struct {
	*cluster.Cluster
	manager   manager.Manager
	registry  *Registry
	namespace string
}

// newWorld sets up a registry that is not started.
func newWorld(t *testing.T, pace pace) *world {
	t.Helper()
	w := &world{Cluster: cluster.Start(t, cluster.Spec{OnlyAPIServer: true})}
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
	if err := kube.IndexFields(t.Context(), mgr.GetFieldIndexer()); err != nil {
		t.Fatal(err)
	}
	if err := kube.IndexMachines(t.Context(), mgr.GetFieldIndexer()); err != nil {
		t.Fatal(err)
	}
	w.manager = mgr
	if w.registry, err = NewRegistry(mgr, Options{}); err != nil {
		t.Fatal(err)
	}
	w.registry.pace = pace
	return w
}

// start runs the registry until the test ends, without its manager.
func (w *world) start(t *testing.T) {
	t.Helper()
	run(t, w.registry.Start)
}

// run runs something until the test ends, and waits for its end.
func run(t *testing.T, start func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- start(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("ended with: %v", err)
			}
		case <-time.After(soon):
			t.Error("does not end")
		}
	})
}

// secret stores a kubeconfig.
func (w *world) secret(t *testing.T, name string, data map[string][]byte) {
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
func (w *world) remote(t *testing.T, name string, kubeconfig []byte) *v1alpha1.Cluster {
	t.Helper()
	w.secret(t, name, map[string][]byte{"value": kubeconfig})
	return w.named(name, name)
}

// named is a Cluster whose kubeconfig is in the Secret of this name.
func (w *world) named(name, secret string) *v1alpha1.Cluster {
	return &v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec:       v1alpha1.ClusterSpec{KubeconfigSecretRef: &v1alpha1.SecretKeyReference{Name: secret}},
	}
}

// kubeconfig is the administrator's, changed.
func (w *world) kubeconfig(t *testing.T, change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) []byte {
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
func (w *world) connect(t *testing.T, c *v1alpha1.Cluster) *Connection {
	t.Helper()
	var connection *Connection
	patience.Eventually(t, "the connection", func(context.Context) (string, bool) {
		var err error
		connection, err = w.registry.Use(c, user)
		if err != nil {
			return err.Error(), false
		}
		return "connected", true
	})
	return connection
}

// awaitReason waits until the state of a cluster has a reason, and returns it.
func (w *world) awaitReason(t *testing.T, c *v1alpha1.Cluster, reason string) State {
	t.Helper()
	var state State
	patience.Eventually(t, "reason "+reason, func(context.Context) (string, bool) {
		state = w.registry.State(client.ObjectKeyFromObject(c))
		return state.Reason + ": " + state.Message, state.Reason == reason
	})
	return state
}
