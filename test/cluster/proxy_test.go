package cluster_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

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
	through, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	read := func(within time.Duration) error { return ready(t, through, proxy.URL(), within) }
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

// ready asks an API server once whether it is ready.
func ready(t *testing.T, through *http.Client, server string, within time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := through.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}
