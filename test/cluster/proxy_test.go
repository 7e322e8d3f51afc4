package cluster_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/test/cluster"
)

func TestAProxyCutsTheWayToTheAPIServer(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	proxy := c.Proxy(t)
	config, err := clientcmd.RESTConfigFromKubeConfig(proxy.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != proxy.URL() || config.Host == c.Config.Host {
		t.Fatalf("the kubeconfig leads to %s, want %s", config.Host, proxy.URL())
	}
	through, err := client.New(config, client.Options{Scheme: c.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	read := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		return through.Get(ctx, client.ObjectKey{Name: "default"}, &corev1.Namespace{})
	}
	for range 2 {
		if err := read(time.Minute); err != nil {
			t.Errorf("read: %v", err)
		}
		proxy.Hang()
		if err := read(time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("read while nothing goes through = %v, want no answer", err)
		}
		proxy.Restore()
		if err := read(time.Minute); err != nil {
			t.Errorf("read after that: %v", err)
		}
		proxy.Cut()
		if err := read(time.Minute); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("read while the way is cut = %v, want that the connection ends", err)
		}
		proxy.Restore()
	}
}
