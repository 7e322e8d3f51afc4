// Command ebbtide is the controller manager: it drains nodes as NodeMaintenances
// ask for, sees every Evacuation through, and looks after Machines.
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/controller/cluster"
	"ebbtide.dev/ebbtide/internal/controller/daemonset"
	"ebbtide.dev/ebbtide/internal/controller/evacuation"
	"ebbtide.dev/ebbtide/internal/controller/machine"
	"ebbtide.dev/ebbtide/internal/controller/nodemaintenance"
	"ebbtide.dev/ebbtide/internal/controller/surge"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/webhook"
	"ebbtide.dev/ebbtide/internal/workload"
)

func main() {
	f := parseFlags()
	// slog numbers levels the other way round: what logr calls V(1) is -1.
	level := slog.Level(-f.verbosity)
	logger := logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	if err := run(ctrl.SetupSignalHandler(), f); err != nil {
		logger.Error(err, "The manager has stopped")
		os.Exit(1)
	}
}

// run returns when the context ends or the manager cannot go on; by then the
// leader election lease is released.
func run(ctx context.Context, f flags) error {
	mgr, err := newManager(f)
	if err != nil {
		return err
	}
	if err := kube.IndexFields(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := add(mgr, f); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add the health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add the readiness check: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the manager: %w", err)
	}
	return nil
}

// add has the manager run everything that Ebbtide is made of.
func add(mgr manager.Manager, f flags) error {
	if err := nodemaintenance.Add(mgr, nodemaintenance.Options{Namespace: f.namespace, Workers: f.nodeWorkers, Surge: f.surge}); err != nil {
		return err
	}
	if err := evacuation.Add(mgr, evacuation.Options{Workers: f.evacuationWorkers, Surge: f.surge}); err != nil {
		return err
	}
	if err := daemonset.Add(mgr); err != nil {
		return err
	}
	if err := surge.Add(mgr, surge.Options{Surge: f.surge}); err != nil {
		return err
	}
	if err := addMachines(mgr, f); err != nil {
		return err
	}
	if !f.webhooks {
		return nil
	}
	return webhook.Add(mgr, webhook.Options{Address: f.webhookAddress, Namespace: f.namespace, Surge: f.surge})
}

// addMachines has it run what looks after Machines and their Clusters.
func addMachines(mgr manager.Manager, f flags) error {
	registry, err := workload.NewRegistry(mgr, workload.Options{Workers: f.evacuationWorkers})
	if err != nil {
		return err
	}
	if err := cluster.Add(mgr, registry); err != nil {
		return err
	}
	return machine.Add(mgr, registry, machine.Options{Workers: f.machineWorkers})
}

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create;get;update,namespace=ebbtide-system
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch,namespace=ebbtide-system
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

func newManager(f flags) (manager.Manager, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("load the kubeconfig: %w", err)
	}
	config.QPS, config.Burst = float32(f.qps), f.burst
	consistent := true
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme: newScheme(),
		Cache:  kube.CacheOptions(),
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &consistent}},
		Metrics: metricsserver.Options{
			BindAddress: f.metricsAddress, SecureServing: true,
			FilterProvider: filters.WithAuthenticationAndAuthorization,
			TLSOpts:        []func(*tls.Config){func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }},
		},
		HealthProbeBindAddress:        f.probeAddress,
		LeaderElection:                f.leaderElect,
		LeaderElectionID:              "ebbtide.dev",
		LeaderElectionNamespace:       f.namespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	return mgr, nil
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}
