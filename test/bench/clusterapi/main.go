// Command clusterapi drains nodes with Cluster API's own drain package in the loop of its
// machine controller: 20 queries a second with a burst of 30, and a retry every 20 seconds. It
// is a module of its own, with the library versions of Cluster API. It prints "ready", reads
// lines with node names, drains those nodes and prints "done".
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/cluster-api/core/reconcilers/machine/drain"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The settings that Cluster API v1.14.2 ships with: its flags
// --clustercache-client-qps and --clustercache-client-burst, and the retry
// interval of its machine controller.
const (
	qps           = 20
	burst         = 30
	retryInterval = 20 * time.Second
)

func main() {
	ctrl.SetLogger(logr.Discard())
	orders := flag.Int("orders", 0, "how many Deployments leave one after the other, app-1 first; 0 for no order")
	flag.Parse()
	if err := run(ctrl.SetupSignalHandler(), *orders); err != nil {
		fmt.Fprintln(os.Stderr, "clusterapi:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, orders int) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS, config.Burst = qps, burst
	helper, err := newHelper(ctx, config, orders)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if err := drainAll(ctx, helper, strings.Fields(lines.Text())); err != nil {
			return err
		}
		fmt.Println("done")
	}
	return nil
}

// newHelper wires the drain helper as the machine controller does: pods and
// DaemonSets are read live, nodes and namespaces from a cache. There is no
// management cluster here, so the rules come from one in memory.
func newHelper(ctx context.Context, config *rest.Config, orders int) (*drain.Helper, error) {
	management, err := newManagement(orders)
	if err != nil {
		return nil, err
	}
	reader, err := warmCache(ctx, config)
	if err != nil {
		return nil, err
	}
	remote, err := client.New(config, client.Options{Cache: &client.CacheOptions{
		Reader:       reader,
		DisableFor:   []client.Object{&corev1.Pod{}, &appsv1.DaemonSet{}, &storagev1.VolumeAttachment{}, &corev1.PersistentVolume{}},
		Unstructured: true,
	}})
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return &drain.Helper{Client: management, RemoteClient: remote, GracePeriodSeconds: -1}, nil
}

func warmCache(ctx context.Context, config *rest.Config) (cache.Cache, error) {
	reader, err := cache.New(config, cache.Options{DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return nil, fmt.Errorf("make cache: %w", err)
	}
	go func() {
		if err := reader.Start(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "clusterapi: cache:", err)
		}
	}()
	for _, kind := range []client.Object{&corev1.Node{}, &corev1.Namespace{}} {
		if _, err := reader.GetInformer(ctx, kind); err != nil {
			return nil, fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	return reader, nil
}

func drainAll(ctx context.Context, helper *drain.Helper, nodes []string) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, node := range nodes {
		group.Go(func() error { return drainNode(ctx, helper, node) })
	}
	return group.Wait()
}

// drainNode repeats the machine controller's pass over one node until nothing
// is left to drain.
func drainNode(ctx context.Context, helper *drain.Helper, name string) error {
	for {
		finished, err := pass(ctx, helper, name)
		if err != nil || finished {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryInterval):
		}
	}
}

func pass(ctx context.Context, helper *drain.Helper, name string) (finished bool, err error) {
	node := &corev1.Node{}
	if err := helper.RemoteClient.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return false, fmt.Errorf("get node: %w", err)
	}
	if err := helper.CordonNode(ctx, node); err != nil {
		return false, fmt.Errorf("cordon node: %w", err)
	}
	pods, err := helper.GetPodsForEviction(ctx, cluster, machine, name)
	if err != nil {
		return false, fmt.Errorf("list pods: %w", err)
	}
	if len(pods.Pods()) == 0 {
		return true, nil
	}
	return helper.EvictPods(ctx, pods).DrainCompleted(), nil
}
