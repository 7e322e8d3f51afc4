// Command ebbtide is the controller manager: it drains nodes as NodeMaintenances
// ask for, sees every Evacuation through, and looks after Machines.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	_ "time/tzdata" // images have no zoneinfo

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/version"
	"ebbtide.dev/ebbtide/internal/webhook"
)

func main() {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(runVerb(ctrl.SetupSignalHandler(), os.Args[1], os.Args[2:]))
	}
	f, err := parseFlags(flag.CommandLine, os.Args[1:])
	if err != nil {
		os.Exit(2) // The flags have said why.
	}
	if f.version {
		fmt.Println(version.Line("ebbtide"))
		return
	}
	// slog numbers levels the other way round: what logr calls V(1) is -1.
	logger := logr.FromSlogHandler(f.logFormat.Handler(os.Stderr, slog.Level(-f.verbosity)))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	ctx := ctrl.SetupSignalHandler()
	err = run(ctx, f)
	if errors.Is(err, errRightsChanged) && ctx.Err() == nil {
		logger.Info("Restarting the manager", "reason", err.Error())
		err = restart()
	}
	if err != nil {
		logger.Error(err, "The manager has stopped")
		os.Exit(1)
	}
}

// restart has the process begin from scratch, which takes no time like a container that has
// ended. It returns only if it fails.
func restart() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(self, os.Args, os.Environ())
}

// run returns when the context ends or the manager cannot go on; by then the
// leader election lease is released.
func run(ctx context.Context, f flags) error {
	g := guards{fence: &kube.Fence{}, skew: kube.NewSkew(), certificate: &webhook.Certificate{}}
	mgr, account, err := newManager(ctx, &f, g)
	if err != nil {
		return err
	}
	if err := kube.IndexFields(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if f.machines {
		if err := kube.IndexMachines(ctx, mgr.GetFieldIndexer()); err != nil {
			return err
		}
	}
	if err := g.serveRequests(mgr, f); err != nil {
		return err
	}
	if err := add(mgr, f, g); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add the health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("rights", account.ready); err != nil {
		return fmt.Errorf("add the readiness check: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	if f.webhooks {
		options := f.webhookOptions()
		options.Now, options.EvictionRequests, options.Certificate = g.skew.Now, g.requests, g.certificate
		server, err := webhook.Add(mgr, options)
		if err != nil {
			return err
		}
		group.Go(func() error { return server.Serve(ctx) })
	}
	group.Go(func() error { return account.watch(ctx, kube.Emitter(mgr.GetEventRecorder("ebbtide"))) })
	group.Go(func() error {
		if err := mgr.Start(ctx); err != nil {
			return fmt.Errorf("run the manager: %w", err)
		}
		return nil
	})
	return group.Wait()
}
