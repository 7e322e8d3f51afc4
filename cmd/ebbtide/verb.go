package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"ebbtide.dev/ebbtide/internal/certificate"
	"ebbtide.dev/ebbtide/internal/check"
	"ebbtide.dev/ebbtide/internal/uninstall"
)

// verb is what the binary does once instead of running the manager, in jobs of the chart.
type verb func(ctx context.Context, set *flag.FlagSet, args []string, out io.Writer) error

var verbs = map[string]verb{"certificate": runCertificate, "uninstall": runUninstall, "check": runCheck}

// errUsage is an error that the flags have told of.
type errUsage struct{ error }

// runVerb does something else than to run the manager, and returns the exit code: 0 done,
// 1 not done, 2 not understood, 3 interrupted, as when its node is drained: try it again.
func runVerb(ctx context.Context, name string, args []string) int {
	do, known := verbs[name]
	if !known {
		fmt.Fprintf(os.Stderr, "error: there is no verb %q: it is certificate, uninstall or check; without one the manager runs\n", name)
		return 2
	}
	ctrl.SetLogger(logr.Discard())
	err := do(ctx, flag.NewFlagSet("ebbtide "+name, flag.ContinueOnError), args, os.Stdout)
	switch {
	case err == nil:
		return 0
	case errors.As(err, new(errUsage)):
		return 2
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	if ctx.Err() != nil {
		return 3
	}
	return 1
}

// runCertificate is the hook that Helm runs before and after it installs or upgrades the chart.
func runCertificate(ctx context.Context, set *flag.FlagSet, args []string, out io.Writer) error {
	h, phase := certificate.Hook{Heard: 2 * time.Second, Now: time.Now, Out: out}, certificate.Before
	set.StringVar(&h.Namespace, "namespace", "ebbtide-system", "namespace of the managers")
	set.Func("phase", "before (default) Helm installs or upgrades: make a certificate unless there is a good one, and have the API server trust it, too; or after: have it trust nothing else",
		func(text string) (err error) {
			phase, err = certificate.ParsePhase(text)
			return err
		})
	reached, err := connect(set, args)
	if err != nil {
		return err
	}
	h.Client = reached
	return h.Run(ctx, phase)
}

// runUninstall is the hook that Helm runs before it deletes the chart.
func runUninstall(ctx context.Context, set *flag.FlagSet, args []string, out io.Writer) error {
	h := uninstall.Hook{Mode: uninstall.Refuse, Out: out}
	set.StringVar(&h.Namespace, "namespace", "ebbtide-system", "namespace of the managers")
	set.StringVar(&h.ServiceAccount, "service-account", "", "ServiceAccount of the managers, with which goes what they have made in their namespace")
	set.DurationVar(&h.Timeout, "timeout", 2*time.Minute, "how long all of it may take")
	set.Func("on-maintenances", "what becomes of NodeMaintenances and whatever else is going on: Refuse (default) to uninstall, or Complete them",
		func(text string) (err error) {
			h.Mode, err = uninstall.ParseMode(text)
			return err
		})
	reached, err := connect(set, args)
	if err != nil {
		return err
	}
	h.Client = reached
	return h.Run(ctx)
}

// runCheck is what helm test runs.
func runCheck(ctx context.Context, set *flag.FlagSet, args []string, out io.Writer) error {
	c := check.Check{Out: out}
	set.StringVar(&c.Namespace, "namespace", "ebbtide-system", "namespace of the managers")
	set.DurationVar(&c.Timeout, "timeout", time.Minute, "how long all checks together may take")
	reached, err := connect(set, args)
	if err != nil {
		return err
	}
	c.Client = reached
	return c.Run(ctx)
}

// connect parses the flags of a verb and returns the client of its account.
func connect(set *flag.FlagSet, args []string) (client.WithWatch, error) {
	config.RegisterFlags(set)
	if err := set.Parse(args); err != nil {
		return nil, errUsage{err}
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("%q is no flag", set.Arg(0))
	}
	reach, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("load the kubeconfig: %w", err)
	}
	reach.QPS, reach.Burst = 200, 400
	// What we do is what people are warned of.
	reach.WarningHandler = rest.NoWarnings{}
	return client.NewWithWatch(reach, client.Options{Scheme: newScheme()})
}
