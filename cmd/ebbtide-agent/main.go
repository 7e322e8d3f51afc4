//go:build linux

// Command ebbtide-agent runs on a node, beside its kubelet: it takes static pods down when
// a NodeMaintenance has come to them, brings them back after it, and holds up shutdowns of
// the node until its pods have left.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/agent"
	"ebbtide.dev/ebbtide/internal/agent/logind"
	"ebbtide.dev/ebbtide/internal/agent/reboot"
	"ebbtide.dev/ebbtide/internal/agent/shutdown"
	"ebbtide.dev/ebbtide/internal/core/nodeagent"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/version"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "restore" {
		os.Exit(end(restore(os.Args[2:])))
	}
	f, err := parseFlags(flag.CommandLine, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
	if f.version {
		fmt.Println(version.Line("ebbtide-agent"))
		return
	}
	logger := logr.FromSlogHandler(f.logFormat.Handler(os.Stderr, slog.Level(-f.verbosity)))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	os.Exit(end(run(ctrl.SetupSignalHandler(), f, logger)))
}

func end(err error) (code int) {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	default:
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
}

// restore is the verb for nodes whose agent does not come back.
func restore(args []string) error {
	set := flag.NewFlagSet("ebbtide-agent restore", flag.ContinueOnError)
	dir := set.String("manifest-dir", defaultManifests, "the kubelet's staticPodPath")
	if err := set.Parse(args); err != nil {
		return err
	}
	if err := checkFolder("manifest-dir", *dir); err != nil {
		return err
	}
	return agent.Restore(*dir, func(line string) { fmt.Println(line) })
}

// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// run returns when the context ends, or if the agent cannot begin.
func run(ctx context.Context, f flags, logger logr.Logger) error {
	pod, namespace := os.Getenv("POD_NAME"), os.Getenv("POD_NAMESPACE")
	boot, err := agent.BootID()
	if err != nil {
		return fmt.Errorf("read the boot ID: %w", err)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("there is no way to an API server: %w", err)
	}
	if f.controlPlane.host {
		pod, namespace = "", ""
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("make the client: %w", err)
	}
	sink, err := eventsclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make the client of events: %w", err)
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: sink})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("publish events: %w", err)
	}
	defer broadcaster.Shutdown()
	emit := kube.Emitter(broadcaster.NewRecorder(scheme, "ebbtide-agent"))
	bus := logind.New(f.shutdownDelay)
	a := agent.New(agent.Options{
		Self:      nodeagent.Self{Node: f.nodeName, PodName: pod, PodNamespace: namespace, Version: version.Number(), BootID: boot, Dir: f.manifestDir},
		Manifests: agent.NewFolder(f.manifestDir), Records: agent.NewJournal(f.stateDir), Client: c, Log: logger,
		Emit: emit, ControlPlane: f.controlPlane.options(config),
		Shutdown: shutdown.New(shutdown.Options{
			Wish: shutdownModes[f.shutdown], BootID: boot, Logind: bus, StateDir: f.stateDir, Emit: emit, Log: logger,
		}),
		Reboot: reboot.New(reboot.Options{
			BootID: boot, Sentinel: f.rebootSentinel, Enabled: f.reboot, Logind: bus, Client: c, Emit: emit, Log: logger,
		}),
	})
	if f.healthAddress != "0" {
		if err := a.Serve(ctx, f.healthAddress); err != nil {
			return err
		}
	}
	return a.Run(ctx)
}
