// Package provider simulates an infrastructure provider for Machines that follows Cluster API's
// contract: it creates the nodes of SandboxMachines and the data of SandboxConfigs, and attaches
// volumes of the CSI driver sandbox.ebbtide.dev. It creates nothing before a Machine owns the
// object, and nothing twice. A node whose object is deleted stops responding and stays, like a
// real instance.
package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

// workers bounds how many objects of a kind are worked on at the same time.
const workers = 16

// Run runs the provider in a cluster until the context ends. The kinds have to be installed.
func Run(ctx context.Context, config *rest.Config, logger logr.Logger) error {
	scheme, err := sandbox.Scheme()
	if err != nil {
		return fmt.Errorf("run the provider: %w", err)
	}
	consistent := true
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme:  scheme,
		Logger:  logger,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Client:  client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &consistent}},
	})
	if err != nil {
		return fmt.Errorf("run the provider: %w", err)
	}
	for _, add := range []func(manager.Manager) error{addMachines, addConfigs, addVolumes} {
		if err := add(mgr); err != nil {
			return fmt.Errorf("run the provider: %w", err)
		}
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the provider: %w", err)
	}
	return nil
}

// Start has a provider run until stop is called, which returns why it ended if it
// did not run until then.
func Start(ctx context.Context, config *rest.Config, logger logr.Logger) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, config, logger) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// controllerOptions let a process run several providers, and try again soon what
// has failed: a cluster that was cut off comes back.
func controllerOptions() controller.Options {
	several := true
	return controller.Options{
		MaxConcurrentReconciles: workers,
		SkipNameValidation:      &several,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
			5*time.Millisecond, 5*time.Second),
	}
}
