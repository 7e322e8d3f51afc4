// Package webhook asks the webhooks of the manager as users do: through a real API server,
// which calls them in the process of the test. There is no other part of the manager.
package webhook

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/internal/webhook"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(cluster.Main(m))
}

// started is the one webhook server of this process; it ends with it.
var started struct {
	once    sync.Once
	address string
}

// newAPI returns a real API server that asks our webhooks, all of which run in
// this process under a manager without controllers. Tests share it.
func newAPI(t *testing.T) *cluster.Cluster {
	t.Helper()
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true, OnlyWebhooks: true})
	started.once.Do(func() {
		address := serve(t, c)
		awaitAnswer(t, c)
		started.address = address
	})
	if started.address == "" {
		t.Fatal("the webhooks did not start, see the first test")
	}
	return c
}

// serve runs a manager with nothing but the webhooks until the process ends.
func serve(t *testing.T, c *cluster.Cluster) (address string) {
	t.Helper()
	address = fmt.Sprintf("127.0.0.1:%d", c.WebhookPort(t))
	consistent := true
	options := kube.CacheOptions()
	// What is read from the cache has to be watched before the first request.
	options.ReaderFailOnMissingInformer = true
	mgr, err := manager.New(c.Config, manager.Options{
		Scheme:  c.Client.Scheme(),
		Cache:   options,
		Client:  client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &consistent}},
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatalf("set up the manager: %v", err)
	}
	ctx := context.WithoutCancel(t.Context())
	if err := kube.IndexFields(ctx, mgr.GetFieldIndexer()); err != nil {
		t.Fatal(err)
	}
	server, err := webhook.Add(mgr, webhook.Options{
		Now:     rightTime,
		Address: address, Namespace: cluster.Account.Namespace, Surge: surge.Annotated, EvictionNotice: true,
		Client:      webhook.ClientCertificate{CAFile: c.CallerCA(), Names: []string{sandbox.CallerName}},
		Certificate: &webhook.Certificate{}, MachineKinds: rollout.AllMachineKinds(),
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := server.Serve(ctx); err != nil {
			t.Errorf("the webhooks have ended: %v", err)
		}
	}()
	go func() {
		if err := mgr.Start(ctx); err != nil {
			t.Errorf("the manager has ended: %v", err)
		}
	}()
	return address
}

// awaitAnswer waits until the API server gets answers from our webhooks.
func awaitAnswer(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	patience.Eventually(t, "the API server to call our webhooks", func(ctx context.Context) (string, bool) {
		err := c.Client.Create(ctx, sample.Maintenance("probe", "nobody"), client.DryRunAll)
		return fmt.Sprint(err), err == nil
	})
}

// rightTime is a clock that is not skewed.
func rightTime() (time.Time, bool) { return time.Now(), false }
