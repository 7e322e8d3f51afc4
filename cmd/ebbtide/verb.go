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

// verb is a command for the jobs of the chart.
type verb func(ctx context.Context, set *flag.FlagSet, args []string, out io.Writer) error

var verbs = map[string]verb{"certificate": runCertificate, "uninstall": runUninstall, "check": runCheck}

// errUsage is an error that the flag package has printed.
type errUsage struct{ error }

// runVerb runs a verb and returns its exit code: 0 done, 1 not done, 2 usage, 3 interrupted (for example
// because its node is drained), which can be retried.
func runVerb(ctx context.Context, name string, args []string) int {
	do, known := verbs[name]
	if !known {
		fmt.Fprintf(os.Stderr, "error: unknown command %q; use certificate, uninstall or check, or none to run the manager\n", name)
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

// runCertificate runs the hook before and after installs and upgrades.
func runCertificate(ctx context.Context, set *flag.FlagSet, args []string, out io.Writer) error {
	h, phase := certificate.Hook{Heard: 2 * time.Second, Now: time.Now, Out: out}, certificate.Before
	set.StringVar(&h.Namespace, "namespace", "ebbtide-system", "namespace of the managers")
	set.Func("phase", "before (default) an install or upgrade: create a certificate unless there is a valid one, and let the API server also trust it; or after: let it trust no other",
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

// runUninstall runs the hook before Helm deletes the chart.
func runUninstall(ctx context.Context, set *flag.FlagSet, args []string, out io.Writer) error {
	h := uninstall.Hook{Mode: uninstall.Refuse, Out: out}
	set.StringVar(&h.Namespace, "namespace", "ebbtide-system", "namespace of the managers")
	set.StringVar(&h.ServiceAccount, "service-account", "", "ServiceAccount of the managers, to own the objects that they have created in their namespace")
	set.DurationVar(&h.Timeout, "timeout", 2*time.Minute, "timeout of the uninstall")
	set.Func("on-maintenances", "work in progress, such as NodeMaintenances: Refuse (default) to uninstall, or Complete it",
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

// runCheck runs helm test.
func runCheck(ctx context.Context, set *flag.FlagSet, args []string, out io.Writer) error {
	c := check.Check{Out: out}
	set.StringVar(&c.Namespace, "namespace", "ebbtide-system", "namespace of the managers")
	set.DurationVar(&c.Timeout, "timeout", time.Minute, "timeout of all checks")
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
		return nil, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	reach, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("load the kubeconfig: %w", err)
	}
	reach.QPS, reach.Burst = 200, 400
	// The warnings are about what is intended here.
	reach.WarningHandler = rest.NoWarnings{}
	return client.NewWithWatch(reach, client.Options{Scheme: newScheme()})
}
